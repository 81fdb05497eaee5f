"""Propagation and removal of dead code: what goes, what stays, and that the meaning does."""

from __future__ import annotations

import numpy as np
import pytest

from engine import ad
from engine.ad.cleanup import float_params, is_zero, propagate, remove_dead
from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.lang.types import FLOAT32
from tests.property.programs import ARRAYS, SIZE, program
from tests.unit.ad.kernels import ONE, ZERO, A, B, built, operations, ran, statements

F0, F1 = const(0, FLOAT32), const(1, FLOAT32)


def simplified(write) -> n.Function:
    return remove_dead(propagate(built(write)))


def test_neutral_operations_are_left_out() -> None:
    def write(b: Builder) -> None:
        x = b.load(A, [ZERO], [], FLOAT32)
        for op, args in [("add", (F0, x)), ("add", (x, F0)), ("sub", (x, F0)), ("mul", (F1, x)),
                         ("mul", (x, F1)), ("div", (x, F1)), ("copy", (x,))]:  # fmt: skip
            b.add(n.Store(B, (ZERO,), b.op(op, *args)))

    out = simplified(write)
    assert operations(out) == [] and len(statements(out, n.Store)) == 7
    assert {s.value for s in statements(out, n.Store)} == {statements(out, n.Load)[0].dst}


def test_times_zero_stays() -> None:
    """It is NaN for NaN and Inf."""
    out = simplified(lambda b: b.add(n.Store(B, (ZERO,), b.op(
        "mul", b.load(A, [ZERO], [], FLOAT32), F0))))  # fmt: skip
    assert operations(out) == ["mul"]


def test_what_nothing_uses_goes() -> None:
    def write(b: Builder) -> None:
        unused = b.op("sin", b.load(A, [ONE], [], FLOAT32))
        b.op("cos", unused)
        p = b.variable(FLOAT32, "p")
        b.set(p, F1)
        inner = b.child()
        inner.set(p, inner.op("mul", p, p))
        b.add(n.For(inner.temp(ZERO.type, "i"), ZERO, ONE, ONE, inner.block()))
        b.add(n.Store(B, (ZERO,), F1))

    assert [type(s) for s in simplified(write).body] == [n.Store]


def test_effects_stay() -> None:
    def write(b: Builder) -> None:
        b.add(n.Atomic(None, "add", B, (ZERO,), F1))

    assert len(statements(simplified(write), n.Atomic)) == 1


def test_a_variable_that_changes_is_not_replaced_by_what_it_was() -> None:
    def write(b: Builder) -> None:
        p = b.variable(FLOAT32, "p")
        b.set(p, b.load(A, [ZERO], [], FLOAT32))
        held = b.op("copy", p)
        b.set(p, F1)
        b.add(n.Store(B, (ZERO,), held))
        b.add(n.Store(B, (ONE,), p))

    for fn in (built(write), simplified(write)):
        _, after, _ = ran(fn, 1, np.full(2, 5, np.float32), np.zeros(2, np.float32), 0)
        assert after.tolist() == [5.0, 1.0]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_mean_the_same(seed: int) -> None:
    fn = ad.prepare(program(seed))
    start = [np.random.default_rng(seed).uniform(-1, 1, SIZE) for _ in ARRAYS]
    got = ran(remove_dead(propagate(fn)), 2, *start, 3)
    for x, y in zip(got, ran(fn, 2, *start, 3), strict=True):
        np.testing.assert_array_equal(x, y)


def test_questions() -> None:
    assert is_zero(F0) and is_zero(ZERO) and not is_zero(F1) and not is_zero(A)
    assert not is_zero(const(-0.0, FLOAT32)) or const(-0.0, FLOAT32) == F0
    assert float_params(built(lambda b: b.add(n.Store(B, (ZERO,), F0)))) == (A, B)
