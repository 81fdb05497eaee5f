"""Kernels without break, continue and return run what they ran with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.ad.structure import known_trips, structure
from engine.ir import nodes as n
from engine.ir.builder import Names, const
from engine.ir.rewrite import names_in
from engine.lang.types import INT32, UINT8
from tests.property.programs import ARRAYS, SIZE, program
from tests.unit.ad.kernels import ran, statements

JUMPS = (n.Break, n.Continue, n.Return)


def flat(fn: n.Function) -> n.Function:
    """The kernel without jumps; its functions stay as they are."""
    return replace(fn, body=structure(fn, Names(names_in(fn)))[0])


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_mean_the_same(seed: int) -> None:
    fn = program(seed)
    out = flat(fn)
    assert statements(out, *JUMPS) == []
    start = [np.random.default_rng(seed).uniform(-1, 1, SIZE) for _ in ARRAYS]
    for x, y in zip(ran(out, 2, *start, 3), ran(fn, 2, *start, 3), strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_programs_have_every_jump() -> None:
    found = {type(s) for seed in range(40) for s in statements(program(seed), *JUMPS)}
    assert found == set(JUMPS)


@pytest.mark.parametrize(
    ("start", "stop", "step", "t"),
    [(0, 5, 1, INT32), (0, 5, 2, INT32), (5, 0, -2, INT32), (3, 3, 1, INT32), (4, 1, 1, INT32),
     (250, 255, 4, UINT8)],
)  # fmt: skip
def test_trips_are_those_of_python(start: int, stop: int, step: int, t) -> None:
    bounds = (const(k, t) for k in (start, stop, step))
    loop = n.For(n.Var("k", t), *bounds, ())
    assert known_trips(loop) == len(range(start, stop, step))
    assert known_trips(n.For(loop.var, n.Var("s", t), loop.stop, loop.step, ())) is None
