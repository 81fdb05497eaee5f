"""Verdicts and comparisons: which one counts, and what is remembered of the errors."""

from __future__ import annotations

import dataclasses
import math

import pytest

from engine.autograd.comparison.judgement import (
    FAIL,
    KINK,
    NAN,
    ORDER,
    PASS,
    TRUST,
    Comparison,
    Judgement,
    judge,
)


def test_the_worst_verdict_counts_whatever_the_order() -> None:
    verdicts = [Judgement(v, f"because of {v}") for v in ORDER]
    for first in verdicts:
        for second in verdicts:
            if "nondeterministic" in (first.verdict, second.verdict):
                continue
            found = Comparison().judged(first, second)
            assert found == Comparison().judged(second, first)
            worst = min(first, second, key=lambda j: ORDER.index(j.verdict))
            assert found.verdict == worst.verdict
            # "skipped" is where every comparison begins, so that it brings no reason.
            assert found.reason == ("" if worst.verdict == "skipped" else worst.reason)


def test_after_results_that_differ_nothing_else_is_said() -> None:
    restless = Comparison().judged(Judgement("nondeterministic", "its results differ"))
    assert restless.judged(FAIL, NAN, PASS) == restless


def test_a_comparison_is_a_value() -> None:
    begun = Comparison()
    assert begun.judged(FAIL).measured(1.0, 2.0, 0.1) != begun == Comparison()
    with pytest.raises(dataclasses.FrozenInstanceError):
        begun.verdict = "pass"  # type: ignore[misc]


def test_the_worst_entry_has_errors_of_its_own() -> None:
    found = Comparison(tolerance=1e-5).measured(9.0, 10.0, 0.1).measured(1.0, 4.0, 0.01, 2, 3)
    worst = found.worst
    assert worst is not None and (worst.row, worst.ad, worst.oracle) == (2, 1.0, 4.0)
    assert (worst.relative, worst.allowed) == (0.75, 0.01)
    assert (found.max_abs, found.max_rel) == (3.0, 0.75)


@pytest.mark.parametrize(
    ("ad", "reference", "allowed"), [(0.0, -9.25e-12, 1e-8), (1.0, 0.0, 1e-8), (3.0, 1.0, 1.0)]
)
def test_no_error_is_relative_to_what_may_be_zero(
    ad: float, reference: float, allowed: float
) -> None:
    found = Comparison().measured(ad, reference, allowed)
    assert found.worst is not None and found.worst.relative is None
    assert found.max_rel == 0.0 and found.max_abs == abs(ad - reference)


def test_the_error_of_a_direction_is_relative_to_its_parts() -> None:
    found = Comparison().measured(1.0, 2.0, 0.1, size=8.0)
    assert found.worst is not None and found.worst.relative == 0.125 == found.max_rel


@pytest.mark.parametrize("verdict", ["fail", "inconclusive", "kink"])
def test_a_closer_look_forgets_what_it_is_about(verdict) -> None:
    before = Comparison(checked=3).measured(1.0, 2.0, 0.1, 4, 5).judged(Judgement(verdict, "why"))
    after = before.reopened()
    assert (after.verdict, after.reason, after.worst) == ("skipped", "", None)
    assert (after.checked, after.max_abs) == (3, 0.0 if verdict == "inconclusive" else 1.0)
    assert after.judged(PASS).verdict == "pass"


@pytest.mark.parametrize("judgement", [PASS, NAN])
def test_a_closer_look_does_not_forget_the_rest(judgement) -> None:
    found = Comparison().judged(judgement)
    assert found.reopened() == found


def test_the_worst_entry_is_the_one_furthest_over_its_tolerance() -> None:
    found = Comparison().measured(1.0, 0.0, 0.5, 1, 1).measured(10.0, 0.0, 100.0, 2, 2)
    assert found.worst is not None and (found.worst.row, found.worst.col) == (1, 1)
    assert found.max_abs == 10.0
    spoilt = found.measured(math.nan, 1.0, 1.0, 3, 3)
    assert spoilt.worst is not None and spoilt.worst.row == 3 and spoilt.max_abs == 10.0


def test_no_error_is_relative_to_a_reference_of_zero() -> None:
    assert Comparison().measured(1e-9, 1e-12, 1e-8).max_rel == 0.0
    assert Comparison().measured(3.0, 2.0, 0.1).max_rel == 0.5
    assert Comparison().measured(3.0, 2.0, 0.1, size=10.0).max_rel == 0.1


@pytest.mark.parametrize(
    ("difference", "allowed", "error", "verdict"),
    [
        (0.5, 1.0, 0.0, "pass"),
        (2.0, 1.0, 0.0, "fail"),
        (2.0, 1.0, 2.0 / TRUST, "inconclusive"),
        (2.0, 1.0, 1.9 / TRUST, "fail"),
        (math.inf, 1.0, 1.0, "fail"),
        (2.0, 1.0, math.inf, "inconclusive"),
    ],
)
def test_only_what_exceeds_the_error_of_the_reference_is_wrong(
    difference, allowed, error, verdict
) -> None:
    assert judge(difference, allowed, error).verdict == verdict
    assert judge(difference, allowed, error, finite=False).verdict == "inconclusive"


def test_results_say_all_of_it() -> None:
    found = Comparison(checked=2, directional=3).measured(3.0, 2.0, 0.1, 1, 0).judged(KINK)
    pair = found.result("x", "y")
    assert (pair.input, pair.output, pair.verdict, pair.checked) == ("x", "y", "kink", 2)
    assert (pair.directional, pair.max_abs_error, pair.max_rel_error) == (3, 1.0, 0.5)
    assert pair.worst is not None and pair.worst.oracle == 2.0 and pair.reason == KINK.reason
