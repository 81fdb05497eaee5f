"""A suppressed finding hides no other one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adtool.accuracy.entries import Expected, Known
from adtool.accuracy.judging import compare_report
from adtool.assemble import build_report
from adtool.faults import Seen
from adtool.report import Report
from adtool.suppressions import Choice
from engine import Fault
from engine.autograd import TapeResult, WholeResult
from engine.diagnostics import Span

Make = Callable[..., Any]


@pytest.fixture
def wrong(session: Make, launch: Make, pair: Make) -> Any:
    """A wrong gradient of a kernel whose threads race."""
    fault = Fault(
        "race", "spring_forces", Span("springs.py", 7, 5, 7, 9), "forward", "store", "force",
        (0,), (0,), (3,), 1, (1,), Span("springs.py", 7, 5, 7, 9), "store",
    )  # fmt: skip
    found = session(TapeResult(0, (launch(0, pair("fail")),)))
    return replace(found, faults=(Seen(fault, 0, 1, 0, 0),))


def codes(report: Report) -> list[tuple[str, bool]]:
    return [(f.code, f.suppressed) for f in report.findings]


def test_a_race_explains_a_wrong_gradient(wrong: Any) -> None:
    assert codes(build_report(wrong, "error")) == [("G009", False)]


@pytest.mark.parametrize("choice", [Choice(ignore=("G009",)), Choice(select=("G001",))])
def test_but_not_where_it_is_suppressed(wrong: Any, choice: Choice) -> None:
    report = build_report(wrong, "error", choice)
    assert sorted(codes(report)) == [("G001", False), ("G009", True)]
    assert (report.ok, report.exit_code) == (False, 1)


def test_nor_where_a_baseline_knows_it(wrong: Any) -> None:
    (race,) = build_report(wrong, "error").findings
    known = Known("s.py", "G009", race.fingerprint, "error", race.kernel, "springs.py")
    expected = Expected("s.py", "/", (), (known,))
    report = build_report(replace(wrong, expected=expected), "error")
    assert sorted(codes(report)) == [("G001", False), ("G009", True)]


def test_nor_where_it_is_reckoned_with(wrong: Any) -> None:
    report = build_report(wrong, "error", Choice(known=("G009",)))
    assert sorted(codes(report)) == [("G001", False), ("G009", False)]


def test_a_report_in_which_it_is_hidden_does_not_pass(wrong: Any) -> None:
    """Its findings were chosen before the baseline excused what hid one of them."""
    report = build_report(wrong, "error")
    (race,) = report.findings
    known = Known("s.py", "G009", race.fingerprint, "error", race.kernel, "springs.py")
    found, _ = compare_report(report, Expected("s.py", "/", (), (known,)))
    assert (found.ok, found.exit_code, codes(found)) == (False, 1, [("G009", True)])
    assert any("are wrong, but another finding hid" in n for n in found.notes)


@pytest.mark.parametrize(
    ("error", "checked", "code"), [(1e-9, 8, 0), (0.0, 8, 2), (0.5, 8, 2), (1e-9, 0, 2)]
)
def test_some_entries_are_enough_to_have_checked_something(
    session: Make, launch: Make, pair: Make, error: float, checked: int, code: int
) -> None:
    """At the edge of a domain one entry has no reference, and the others agree."""
    edge = pair("inconclusive", max_rel_error=error, checked=checked, max_abs_error=error)
    whole = WholeResult("inconclusive", 1, reason="differences do not tell")
    report = build_report(session(TapeResult(0, (launch(0, edge),), whole=whole)), "error")
    assert report.exit_code == code
