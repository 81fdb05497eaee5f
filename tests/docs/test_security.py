"""SECURITY.md: every promise names tests, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[c.strip() for c in line.strip("|").split("|")] for line in lines]


def promises() -> list[list[str]]:
    return [r for r in rows() if r[0] != "promise"]


def test_every_promise_names_a_test_that_is_there() -> None:
    found = promises()
    assert len(found) > 15
    for row in found:
        named = _NAMED.findall(row[-1])
        assert named, row[0]
        for file, name in named:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
            assert name in functions and name.startswith("test_"), f"{file}::{name}"
