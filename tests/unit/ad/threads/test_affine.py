"""Integers as sums over threads and iterations: arithmetic, and the numbers behind it."""

from __future__ import annotations

import itertools
import random

import pytest

from engine.ad.threads.affine import (
    Axis,
    Between,
    Fact,
    Form,
    Given,
    Need,
    Part,
    Poly,
    Trips,
    Turn,
    Value,
)
from engine.ad.threads.bounds import Bounds

N, M = Given("n"), Given("m")
I, J = Axis(0), Axis(1)


def poly(r: random.Random) -> Poly:
    out = Poly.of(r.randint(-3, 3))
    for _ in range(r.randint(0, 3)):
        term = Poly.of(r.randint(-3, 3)) * Poly.symbol(r.choice([N, M]))
        out = out + (term * Poly.symbol(N) if r.random() < 0.3 else term)
    return out


@pytest.mark.parametrize("seed", range(30))
def test_polynomials_compute_as_numbers_do(seed: int) -> None:
    r = random.Random(seed)
    p, q = poly(r), poly(r)
    for n, m in itertools.product((-2, 0, 1, 5), repeat=2):
        value = Bounds((), {N: n, M: m}).value
        x, y = value(p), value(q)
        assert x is not None and y is not None
        assert [value(v) for v in (p + q, p - q, -p, p * q)] == [x + y, x - y, -x, x * y]


def test_equal_polynomials_are_equal() -> None:
    n, m = Poly.symbol(N), Poly.symbol(M)
    assert (n + m) * (n - m) == n * n - m * m and (n - n).number == 0
    assert Poly.of(7).number == 7 and n.number is None


def test_forms() -> None:
    f = Form.along(I).times(Poly.of(4)) + Form.of(3) - Form.along(J)
    assert f.coefficients == {I: Poly.of(4), J: Poly.of(-1)} and not f.uniform
    assert (f - f) == Form.of(0) and (f - f).uniform


def test_intervals_hold_every_value() -> None:
    bounds = Bounds((3, 4), {N: 5})
    f = Form.along(I).times(Poly.symbol(N)) - Form.along(J) + Form.of(1)
    values = [5 * i - j + 1 for i in range(3) for j in range(4)]
    assert bounds.interval(f) == (min(values), max(values))
    assert bounds.interval(Form.along(Axis(7))) == (0, 0), "an axis that the grid has not"
    assert bounds.interval(Form(Poly.symbol(M))) is None, "nobody gave its number"
    assert bounds.value(Poly.symbol(M)) is None


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (0, 5, 2), (5, 0, -2), (3, 3, 1), (4, 1, 1)]
)
def test_turns_of_loops(start: int, stop: int, step: int) -> None:
    turn = Turn(0, Form.of(start), Form.of(stop), Poly.of(step))
    count = len(range(start, stop, step))
    assert Bounds((), {}).range(turn) == (0, max(0, count - 1))


def test_quotients_and_remainders() -> None:
    bounds = Bounds((10,), {})
    whole, three = Form.along(I) + Form.of(2), Poly.of(3)
    values = range(2, 12)
    assert bounds.range(Part("quot", whole, three)) == (0, max(v // 3 for v in values))
    assert bounds.range(Part("rem", whole, three)) == (0, 2)
    assert bounds.range(Part("quot", Form.along(I) - Form.of(1), three)) == (0, 2), "of those >= 0"
    assert bounds.range(Part("quot", whole, Poly())) is None


def test_values_between_bounds() -> None:
    bounds, i = Bounds((10,), {}), Form.along(I)
    assert bounds.interval(Form.along(Between("min", (i, Form.of(4))))) == (0, 4)
    assert bounds.interval(Form.along(Between("max", (i, Form.of(4))))) == (4, 9)
    assert bounds.interval(Form.along(Between("either", (i, Form.of(20))))) == (0, 20)
    assert bounds.range(Between("what nobody knows", (i,))) is None


def test_the_least_of_some_forms_goes_with_the_rest() -> None:
    bounds, i = Bounds((10,), {}), Form.along(I)
    clamped = Form.along(Between("max", (i - Form.of(3), Form.of(0))))
    assert bounds.interval(clamped - i) == (-3, 0)
    assert bounds.interval(i - clamped) == (0, 3)


def test_facts_bound_forms() -> None:
    bounds, i = Bounds((10,), {}), Form.along(I)
    inner = (Fact(Value(i - Form.of(2))), Fact(Value(Form.of(6) - i)))  # 2 <= i <= 6
    assert bounds.interval(i, inner) == (2, 6)
    assert bounds.interval(i - Form.of(1), inner) == (1, 5)
    wraps = Value(i - Form.of(2), frozenset({Need(i, 0, 5)}))
    assert bounds.interval(i, (Fact(wraps),)) == (0, 9), "the fact may not hold"


def test_trips_of_what_is_given() -> None:
    count = Form(Poly.symbol(Trips((Poly.of(0), Poly.symbol(N), Poly.of(2)))))
    assert Bounds((), {N: 7}).interval(count) == (4, 4)
    assert Bounds((), {}).interval(count) is None
