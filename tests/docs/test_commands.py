"""Command lines in the documents: options stand where the command takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.adtool.test_targets import split

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CALL = re.compile(r"adtool (?:check|baseline) [^\n#|<>`;&]*")


def calls(page: Path) -> Iterator[str]:
    """Calls of commands that take several scripts, in blocks of code."""
    for block in re.findall(r"^```.*?^```", page.read_text("utf-8"), re.M | re.S):
        for found in CALL.findall(block):
            yield found.removeprefix("adtool ").strip()


def misplaced(line: str) -> list[str]:
    """Words that look like options, and stand between scripts."""
    head, words = split(re.sub("^baseline (write|compare)", "baseline", line))
    first, *rest = words.partition(" -- ")[0].split() or [""]
    one = first.endswith((".py", ".adt")) and not any(c in first for c in "*?[")
    alone = one or first in ("-", "SCRIPT") or "-m" in head.split()
    several = "--each" in head.split() or not alone
    return [w for w in rest if several and w.startswith("-")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_option_stands_between_scripts(page: Path) -> None:
    assert {line: found for line in calls(page) if (found := misplaced(line))} == {}


def test_options_between_scripts_are_seen() -> None:
    assert misplaced("check --each scripts --out junit=x.xml") == ["--out"]
    assert misplaced("check 'samples/**/*.py' --exclude 'old*'") == ["--exclude"]
    assert misplaced("check --each --out junit=x.xml scripts") == []
    assert misplaced("check train.py --steps 3") == []
    assert sum(len(list(calls(p))) for p in PAGES) > 30
