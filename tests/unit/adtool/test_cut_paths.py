"""A cut gradient is reported once, and no adjoint is called wrong for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adtool.rules import load_rules
from engine.autograd import Blame, Broken, Cause, TapeResult, WholeResult
from engine.diagnostics import Span
from tests.unit.adtool.test_rules import outside

Make = Callable[..., Any]
CUT = Span("springs.py", 30, 5, 30, 9)
RULES = ("G001", "G004", "G008", "G010", "G012")


def found(session: Any) -> list[Any]:
    return [f for r in load_rules() if r.code in RULES for f in r.check(session)]


def test_a_native_function_without_an_adjoint(session: Make, launch: Make, pair: Make) -> None:
    failing = launch(0, pair("fail"), stops=(("wall", CUT),))
    (f,) = found(session([failing], [replace(failing, index=1)]))
    assert (f.code, f.severity, f.line, f.count) == ("G004", "error", 30, 2)
    assert "`wall`" in f.message and "adj_snippet" in f.message


def test_a_wrong_derivative_beside_it_is_no_less_wrong(
    session: Make, launch: Make, pair: Make
) -> None:
    blame = Blame("soft", "adj_soft", Span("springs.py", 40, 1, 40, 8))
    (f,) = found(session([launch(0, pair("fail"), stops=(("wall", CUT),), blame=(blame,))]))
    assert (f.code, f.line) == ("G001", 40)


def test_a_native_function_that_no_gradient_needs(session: Make, launch: Make, pair: Make) -> None:
    assert found(session([launch(0, pair(), stops=(("wall", CUT),))])) == []


def test_an_array_that_a_kernel_reads_back(session: Make, launch: Make, pair: Make) -> None:
    cut = launch(0, pair("fail"), detached=("vel",), site=CUT)
    (f,) = found(session([cut], [cut]))
    assert (f.code, f.severity, f.line, f.count) == ("G004", "error", 30, 2)
    assert "through `vel`" in f.message and "reads back in 2 launches" in f.message


def without_gradient(site: Span, variable: str) -> WholeResult:
    return WholeResult("fail", cause=Cause("no gradient", 2, "k", "h", site, variable=variable))


def test_that_array_is_read_by_the_next_launch_too(session: Make, launch: Make, pair: Make) -> None:
    """The same call in a loop: the tape as a whole has named it."""
    cut = launch(0, pair("fail"), detached=("vel",), site=CUT)
    tape = TapeResult(0, (cut,), whole=without_gradient(CUT, "vel"))
    (f,) = found(session(tape))
    assert (f.code, f.line) == ("G004", 30)


@pytest.mark.parametrize(
    ("text", "variable", "said"),
    [
        ("wp.copy(hist[s], xn)", "hist", 1),
        ("hist[s].assign(xn)", "hist", 1),
        ("wp.copy(self.hist, xn)", "self.hist", 1),
        ("wp.copy(history, xn)", "hist", 2),
        ("wp.copy(other.hist, xn)", "hist", 2),
    ],
)
def test_a_copy_into_the_array_that_has_no_gradient(
    text: str, variable: str, said: int, session: Make, launch: Make, pair: Make
) -> None:
    copy = Broken("copy", text, Span("springs.py", 20, 5, 20, 9), ("x",))
    whole = without_gradient(CUT, variable)
    codes = [f.code for f in found(session(TapeResult(0, (launch(0, pair()),), facts=(copy,),
                                                      whole=whole)))]  # fmt: skip
    assert codes == ["G004"] * said
    assert len(found(session(TapeResult(0, (launch(0, pair()),), facts=(copy,))))) == 1


def test_accesses_of_one_line(session: Make, launch: Make, pair: Make, source: Path) -> None:
    """Those to one array are one finding; another array, or line, is another."""
    again = outside(span=Span("springs.py", 6, 20, 6, 26))
    often = replace(outside(span=Span("springs.py", 6, 30, 6, 36)), count=7)
    (f,) = found(session([launch(0, pair())], faults=(outside(), again, often)))
    assert (f.code, f.line, f.column, f.count) == ("G008", 6, 5, 7)
    assert "first of 7 launches" in f.message
    assert f.notes == ("5 more such accesses in the same launch",)
    others = (outside(), outside(name="vel"), outside(span=Span("springs.py", 7, 5, 7, 9)))
    assert len(found(session([launch(0, pair())], faults=others))) == 3


def test_nan_that_an_access_outside_made(session: Make, launch: Make, pair: Make) -> None:
    """What lies outside reads as NaN in a check: the access is the cause, and is said once."""
    wild = launch(0, pair("nan"), kernel=outside().fault.kernel)
    whole = WholeResult("nan", 1, float("nan"))
    rules = [r for r in load_rules() if r.code in ("G002", "G008")]
    with_fault = session(TapeResult(0, (wild,), whole=whole), faults=(outside(),))
    assert [f.code for r in rules for f in r.check(with_fault)] == ["G008"]
    without = session(TapeResult(0, (wild,), whole=whole))
    assert {f.code for r in rules for f in r.check(without)} == {"G002"}
