"""Kernels whose variables serve one purpose each run what they ran."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.ad.structure import structure
from engine.ad.versions import versions
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import names_in
from engine.ir.verify import verify
from engine.lang.types import FLOAT32, INT32, is_float
from tests.property.programs import ARRAYS, SIZE, program
from tests.unit.ad.kernels import A, B, built, ran, statements


def apart(fn: n.Function) -> n.Function:
    """The kernel without jumps, a variable for each purpose."""
    names = Names(names_in(fn))
    body, results = structure(fn, names)
    return replace(fn, body=versions(body, names, results))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_mean_the_same(seed: int) -> None:
    fn = program(seed)
    out = apart(fn)
    verify(out)
    start = [np.random.default_rng(seed).uniform(-1, 1, SIZE) for _ in ARRAYS]
    for x, y in zip(ran(out, 2, *start, 3), ran(fn, 2, *start, 3), strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_programs_set_variables_of_floats_again() -> None:
    found = [s.dst for seed in range(40) for s in statements(program(seed), n.Set)]
    floats = [v for v in found if is_float(v.type)]
    assert len(floats) > 2 * len(set(floats)) > 0


def test_a_test_that_sets_what_its_loop_reads() -> None:
    """`while (v := v + 1) < 3: b[0] += v` and then `b[0] += v`, and `v = 5` after it."""
    zero, one, v = const(0, INT32), const(1, FLOAT32), n.Var("v", FLOAT32, mutable=True)

    def write(b: Builder) -> None:
        b.set(v, b.op("mul", one, one))
        test, body = b.child(), b.child()
        test.set(v, test.op("add", v, one))
        cond = test.op("lt", v, const(3, FLOAT32))
        body.add(n.Atomic(None, "add", B, (zero,), v))
        b.add(n.While(test.block(), cond, body.block()))
        b.add(n.Atomic(None, "add", B, (zero,), v))
        b.set(v, const(5, FLOAT32))
        b.add(n.Atomic(None, "add", A, (zero,), v))

    fn = built(write)
    out = apart(fn)
    verify(out)
    assert len({s.dst for s in statements(out, n.Set)}) > 3
    for f in (fn, out):
        a, b, *_ = ran(f, 1, np.zeros(1, np.float32), np.zeros(1, np.float32), 1)
        assert (a.tolist(), b.tolist()) == ([5.0], [5.0])
