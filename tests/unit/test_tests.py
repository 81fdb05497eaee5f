"""The tests themselves: each stands where what it tests does, and holds something."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
# What fails where something does not hold, beside `assert` and `raise`.
HOLDING = re.compile(r"(assert|check|verify|raises|warns|fail)")


class Made(NamedTuple):
    """A function of a test file. calls: what it calls; None where it asserts something itself."""

    name: str
    place: str
    documented: bool
    calls: set[str] | None

    def holds(self, helpers: set[str]) -> bool:
        """Whether it asserts something, itself or by a helper."""
        return self.calls is None or not self.calls.isdisjoint(helpers)


def functions(path: Path) -> list[Made]:
    return [
        Made(f.name, f"{path.relative_to(ROOT)}:{f.lineno}", bool(ast.get_docstring(f)), called(f))
        for f in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(f, ast.FunctionDef)
    ]


def called(f: ast.FunctionDef) -> set[str] | None:
    names = set()
    for node in ast.walk(f):
        if isinstance(node, (ast.Assert, ast.Raise)):
            return None
        if isinstance(node, ast.Call):
            names.add(last_name(node.func))
    return None if any(map(HOLDING.match, names)) else names


def last_name(of: ast.expr) -> str:
    match of:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ast.unparse(of).split(".")[-1]


def test_every_test_asserts_something_or_says_what_it_holds() -> None:
    """One whose claim is that nothing is raised says so in its first line."""
    found = [f for path in TESTS.rglob("*.py") for f in functions(path)]
    helpers: set[str] = set()
    for _ in range(4):  # helpers of helpers
        helpers |= {f.name for f in found if f.holds(helpers)}
    silent = [
        f.place
        for f in found
        if f.name.startswith("test") and not f.holds(helpers - {f.name}) and not f.documented
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
