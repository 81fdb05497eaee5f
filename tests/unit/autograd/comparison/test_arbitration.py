"""Three opinions on one derivative: who is asked, and who is believed."""

from __future__ import annotations

import math

import pytest

from engine.autograd.comparison.arbitration import ABSORBED, Opinions, arbitrate

TRUE, ALLOWED, SHARP, ROUGH = 2.0, 1e-6, 1e-9, 1e-3


def verdict(ad, ref, error, forward, again=(math.nan, math.inf)) -> str:
    return arbitrate(
        Opinions(ad, ref, error, ALLOWED, lambda: forward, lambda scale: again)
    ).verdict  # fmt: skip


@pytest.mark.parametrize(
    ("ad", "ref", "error", "forward", "again", "expected"),
    [
        # the adjoint is wrong: differences that are sure of themselves, and forward mode, agree
        (2.1, TRUE, SHARP, TRUE, None, "fail"),
        # they are not sure, but forward mode is with them
        (2.1, TRUE, 1.0, TRUE, None, "fail"),
        # there is no forward mode: the differences' own error decides
        (2.1, TRUE, SHARP, math.nan, None, "fail"),
        (2.1, TRUE, 1.0, math.nan, None, "inconclusive"),
        # adjoint and forward mode agree: the differences are looked at again
        (TRUE, 2.1, SHARP, TRUE, (TRUE, SHARP), "pass"),
        (TRUE, 2.1, SHARP, TRUE, (2.1, SHARP), "inconclusive"),
        (TRUE, 2.1, SHARP, TRUE, (2.1, 0.02), "pass"),
        (TRUE, 2.1, SHARP, TRUE, (2.1, 0.5), "inconclusive"),
        (TRUE, 2.1, SHARP, TRUE, (math.nan, math.inf), "inconclusive"),
        # the error that counts beside forward mode is by its size, not by that of the differences
        (1e10, -8.0, SHARP, 1e10 + 1e-3, (-40.0, 1.0), "inconclusive"),
        (1e10, -8.0, SHARP, 1e10 + 1e6, (-40.0, 1.0), "fail"),
        # all three differ, and the differences are rough
        (2.1, TRUE, 0.5, 50.0, None, "inconclusive"),
        # there is no reference at all
        (TRUE, math.nan, math.inf, TRUE, None, "inconclusive"),
    ],
)
def test_who_is_believed(ad, ref, error, forward, again, expected) -> None:
    assert verdict(ad, ref, error, forward, again or (math.nan, math.inf)) == expected


def test_nobody_is_asked_where_the_first_two_agree() -> None:
    def never() -> float:
        raise AssertionError("asked without need")

    found = arbitrate(Opinions(TRUE, TRUE + 1e-7, ROUGH, ALLOWED, never, lambda _: (never(), 0.0)))
    assert found.verdict == "pass"


def test_steps_that_rounding_absorbs_are_told() -> None:
    found = arbitrate(
        Opinions(TRUE, 0.0, SHARP, ALLOWED, lambda: TRUE, lambda _: (0.0, math.inf))
    )  # fmt: skip
    assert found.reason == ABSORBED


def test_what_one_scale_confirms_passes() -> None:
    """Steps of the usual size leap over all that a chaotic function does."""

    def again(scale: float) -> tuple[float, float]:
        return (TRUE + 1e-5, 1e-5) if scale < 1e-3 else (-40.0, 1.0)

    found = arbitrate(Opinions(TRUE, -46.0, SHARP, ALLOWED, lambda: TRUE, again))
    assert found.verdict == "pass"
    assert arbitrate(Opinions(TRUE, -46.0, SHARP, ALLOWED, lambda: 3.0, again)).verdict == "fail"


@pytest.mark.parametrize(
    ("adjoint", "curve", "expected"),
    [
        # a square that meets a constant: differences are off by a part of their step
        (0.0, lambda h: 1e-8 * h, "pass"),
        # they converge, but to something else
        (0.0, lambda h: 1e-8 * h + 1e-14, "inconclusive"),
        # they come no closer, or not enough to converge
        (0.0, lambda h: 1e-8, "inconclusive"),
        (0.0, lambda h: 1e-8 * h**0.3, "inconclusive"),
    ],
)
def test_what_differences_converge_to(adjoint, curve, expected) -> None:
    def again(scale: float) -> tuple[float, float]:
        return curve(scale), curve(scale)

    asked = Opinions(adjoint, 1e-14, 1e-14, 1e-20, lambda: adjoint, again)
    assert arbitrate(asked).verdict == expected
