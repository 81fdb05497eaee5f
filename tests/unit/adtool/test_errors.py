"""Every code that the engine or the tool can give has a page, whose example raises it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adtool.errors import PAGES, text_of
from adtool.rules import load_rules
from adtool.suppressions import UNUSED
from engine.diagnostics import CODES

ROOT = Path(__file__).resolve().parents[3]

# Codes whose example is no program: a full disk, and a chain of twenty functions.
# `tests/unit/compile/test_compiler.py` and `test_call_graphs.py` raise these.
TOLD = {"E302", "E305"}


def raised() -> dict[str, str]:
    """Every text of the sources that is a code of an error or a finding, with a place."""
    found: dict[str, str] = {}
    for folder in ("engine", "adtool"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    if re.fullmatch(r"[EG]\d{3}", node.value):
                        found.setdefault(node.value, f"{path}:{node.lineno}")
    return found


def test_every_code_has_a_page() -> None:
    explained = {*PAGES, *(rule.code for rule in load_rules())}
    missing = {code: place for code, place in raised().items() if code not in explained}
    assert missing == {}
    assert set(PAGES) == set(CODES) and list(PAGES) == sorted(PAGES)
    assert UNUSED not in explained  # a note on a comment, which says all itself


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_whole(code: str) -> None:
    page = PAGES[code]
    assert all(len(part.split()) > 5 for part in (page.what, page.cure)) and page.code
    text = text_of(code)
    assert text.startswith(f"{code} {CODES[code]} (") and max(map(len, text.splitlines()[1:])) <= 80
    mentioned = set(re.findall(r"\b[EG]\d{3}\b", text)) - {code}
    assert mentioned <= {*PAGES, *(rule.code for rule in load_rules())}


@pytest.mark.parametrize("code", sorted(set(CODES) - TOLD))
def test_its_example_raises_it(code: str, tmp_path: Path, kernels: Path) -> None:
    if "import torch" in PAGES[code].code and find_spec("torch") is None:
        pytest.skip("needs torch")
    # Some are only found when a kernel is compiled.
    more = "\nwp.force_load()\n" if code.startswith("E1") else "\n"
    program = tmp_path / "program.py"
    program.write_text(PAGES[code].code + more, encoding="utf-8")
    env: dict[str, Any] = os.environ | {"PYTHONPATH": str(ROOT), "ENGINE_CACHE_DIR": str(kernels)}
    done = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, env=env, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"Error: error[{code}]: " in done.stderr, done.stderr
