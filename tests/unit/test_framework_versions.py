"""Documentation, extras and CI agree about versions of frameworks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from engine.foreign.seams import SEAMS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOLD = {"torch": "PyTorch", "jax": "JAX"}


def _oldest(root: Path) -> dict[str, str]:
    lines = (root / "tests/interop/oldest.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def test_the_oldest_versions_are_those_of_the_extras_and_of_the_documentation(root: Path) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (root / "docs/frameworks.md").read_text(encoding="utf-8")
    for name, told in TOLD.items():
        version = _oldest(root)[name].removesuffix(".0")
        assert extras["optional-dependencies"][name] == [f"{name}>={version}"]
        assert f"{told} {version}" in text


def test_the_newest_versions_are_not_pinned(root: Path) -> None:
    text = (root / "tests/interop/requirements.txt").read_text(encoding="utf-8")
    names = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert set(TOLD) <= set(names)
    assert not any(re.search("[=<]", line.replace(">=", "")) for line in names)


def test_the_documentation_lists_every_seam(root: Path) -> None:
    text = (root / "docs/frameworks.md").read_text(encoding="utf-8")
    part = text.partition("### Versions")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (PyTorch|JAX|Warp) \| (.*) \|$", part, re.MULTILINE)
    assert rows == [(s.framework, s.name) for s in SEAMS]
