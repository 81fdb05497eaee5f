"""The help of G001 where iterations that were cut off may explain the difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adtool.report import Finding
from adtool.rules.g001_wrong_gradient import WrongGradient
from engine.autograd import NOT_LINEAR, Blame, Entry, PairResult
from engine.diagnostics import Span

Make = Callable[..., Any]

HERE = Span("grads.py", 7, 5, 7, 20)
ITERATED = {"culprits": (("root", HERE),), "iterated": (("root", 1e-3),)}


def off_by(error: float, pair: Make) -> PairResult:
    worst = Entry(3, 2, 1.0 + error, 1.0, error, 1e-5)
    made: PairResult = pair("fail", max_rel_error=error, max_abs_error=error, worst=worst)
    return made


def found_in(session: Any) -> Finding:
    (found,) = WrongGradient().check(session)
    return found


@pytest.mark.parametrize("error", [6e-5, 9e-4])
def test_says_that_iterations_may_explain_the_difference(
    session: Make, launch: Make, pair: Make, error: float
) -> None:
    for blame in ((), (Blame("root", "adj_root", HERE),)):
        found = found_in(session([launch(0, off_by(error, pair), **ITERATED, blame=blame)]))
        assert "a comparison of floats ends the loop of `root`" in found.help
        assert "the derivative of the iterations that ran" in found.help
        assert "`--rtol 0.001`" in found.help


def test_they_explain_no_other_error(session: Make, launch: Make, pair: Make) -> None:
    near, far = off_by(6e-5, pair), off_by(2e-3, pair)
    assert near.worst is not None
    no_slope = replace(near, worst=replace(near.worst, oracle=0.0, relative=None))
    not_linear = replace(near, reason=NOT_LINEAR)
    for pairs in ((far,), (near, replace(far, input="k")), (no_slope,), (not_linear,)):
        found = found_in(session([launch(0, *pairs, **ITERATED)]))
        assert "`root`" in found.help and "--rtol" not in found.help


def test_they_explain_no_error_of_another_function(session: Make, launch: Make, pair: Make) -> None:
    blame = (Blame("cube", "adj_cube", HERE),)
    found = found_in(session([launch(0, off_by(6e-5, pair), **ITERATED, blame=blame)]))
    assert "`adj_cube`" in found.help and "--rtol" not in found.help
