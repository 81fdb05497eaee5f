"""The tests themselves: each stands where what it tests does, and can fail."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.proofs.reached import Proofs

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent


def test_every_test_reaches_an_assertion_that_can_fail() -> None:
    """`test_proofs` shows that this names a test that cannot."""
    files = sorted(TESTS.rglob("test_*.py"))
    proofs = Proofs(ROOT)
    assert [f"{p.relative_to(ROOT)}: {name}" for p in files for name in proofs.silent(p)] == []
    assert len(files) > 500 and proofs.seen > 3500


def test_no_file_is_named_for_an_event() -> None:
    names = [p.stem for p in TESTS.rglob("test_*.py")]
    assert names
    event = re.compile(r"(review|trial|issue|regression|bug|fix(es)?|wip)(_|$)")
    assert [n for n in names if event.search(n)] == []


def test_no_test_draws_numbers_that_depend_on_those_before_it() -> None:
    """`conftest` begins those of a file's `RNG` anew for each test."""
    made = {"default_rng", "RandomState", "Random"}
    names = {
        (str(p.relative_to(ROOT)), ast.unparse(s.targets[0]))
        for p in TESTS.rglob("test_*.py")
        for s in ast.parse(p.read_text(encoding="utf-8")).body
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)
        if ast.unparse(s.value.func).rpartition(".")[2] in made
    }
    assert names
    assert {(p, name) for p, name in names if name != "RNG"} == set()


def test_every_pass_of_ad_has_its_test() -> None:
    passes = {p.stem for p in (ROOT / "engine" / "ad").glob("*.py")} - {"__init__"}
    tested = {p.stem.removeprefix("test_") for p in (TESTS / "unit" / "ad").glob("test_*.py")}
    assert passes == tested
