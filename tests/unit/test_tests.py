"""The tests themselves: each stands where what it tests does, and holds something."""

from __future__ import annotations

import ast
import functools
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


def last_name(of: ast.expr) -> str:
    match of:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ast.unparse(of).split(".")[-1]


@functools.cache
def called(f: ast.FunctionDef) -> frozenset[str] | None:
    """What a function calls; None where it asserts something itself."""
    names = set()
    for node in ast.walk(f):
        if isinstance(node, (ast.Assert, ast.Raise)):
            return None
        if isinstance(node, ast.Call):
            names.add(last_name(node.func))
    return None if any(map(HOLDING.match, names)) else frozenset(names)


def holds(f: ast.FunctionDef, helpers: set[str]) -> bool:
    """Whether a function asserts something, itself or by a helper."""
    names = called(f)
    return names is None or not names.isdisjoint(helpers)


def test_every_test_asserts_something_or_says_what_it_holds() -> None:
    """One whose claim is that nothing is raised says so in its first line."""
    found = {path: functions(tree) for path, tree in parsed().items()}
    helpers: set[str] = set()
    for _ in range(4):  # helpers of helpers
        for fns in found.values():
            helpers |= {f.name for f in fns if holds(f, helpers)}
    silent = [
        f"{path.relative_to(ROOT)}:{f.lineno}"
        for path, fns in found.items()
        for f in fns
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
