"""The examples of docs/concepts.md run as they stand, each as a file, and print what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")


def _examples() -> dict[str, str]:
    """The program of each section that has one, by the section's heading."""
    sections = re.split(r"^## (.+)\n", PAGE, flags=re.MULTILINE)[1:]
    found = {}
    for head, text in zip(sections[::2], sections[1::2], strict=True):
        for program in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            assert head not in found, f"two examples in {head}"
            found[head] = program
    return found


EXAMPLES = _examples()


def test_every_concept_has_an_example() -> None:
    assert list(EXAMPLES) == ["Array", "Kernel", "Launch", "Tape", "Struct", "Optimizer"]
    assert len(re.findall(r"^```\w", PAGE, re.MULTILINE)) == len(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_prints_its_comments(name: str, tmp_path: Path) -> None:
    shown = re.findall(r"^print\(.*\)  # (.+)$", EXAMPLES[name], re.MULTILINE)
    assert len(shown) == EXAMPLES[name].count("print(") > 0
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[name], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == shown
