"""The tests themselves: each stands where what it tests does, and holds something."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
# What fails where something does not hold, beside `assert` and `raise`.
HOLDING = re.compile(r"(assert|check|verify|raises|warns|fail)")


def parsed() -> dict[Path, ast.Module]:
    return {p: ast.parse(p.read_text(encoding="utf-8")) for p in TESTS.rglob("*.py")}


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]


def holds(f: ast.FunctionDef, helpers: set[str]) -> bool:
    """Whether a function asserts something, itself or by a helper."""
    for node in ast.walk(f):
        if isinstance(node, (ast.Assert, ast.Raise)):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).split(".")[-1]
            if HOLDING.match(name) or name in helpers:
                return True
    return False


def test_every_test_asserts_something_or_says_what_it_holds() -> None:
    """One whose claim is that nothing is raised says so in its first line."""
    trees = parsed()
    helpers: set[str] = set()
    for _ in range(4):  # helpers of helpers
        for tree in trees.values():
            helpers |= {f.name for f in functions(tree) if holds(f, helpers)}
    silent = [
        f"{path.relative_to(ROOT)}:{f.lineno}"
        for path, tree in trees.items()
        for f in functions(tree)
        if f.name.startswith("test")
        and not holds(f, helpers - {f.name})
        and not ast.get_docstring(f)
    ]
    assert silent == []


def test_no_file_is_named_for_an_event() -> None:
    names = [p.stem for p in TESTS.rglob("test_*.py")]
    assert names
    event = re.compile(r"(review|trial|issue|regression|bug|fix(es)?|wip)(_|$)")
    assert [n for n in names if event.search(n)] == []


def test_every_pass_of_ad_has_its_test() -> None:
    passes = {p.stem for p in (ROOT / "engine" / "ad").glob("*.py")} - {"__init__"}
    tested = {p.stem.removeprefix("test_") for p in (TESTS / "unit" / "ad").glob("test_*.py")}
    assert passes == tested
