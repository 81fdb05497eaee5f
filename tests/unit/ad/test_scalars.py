"""Variables that are split into components keep their meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import engine.builtins  # noqa: F401  (its operations)
from engine.ad.scalars import heavy, scalars
from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.lang.types import BOOL, FLOAT32, INT32, MatrixType, VectorType
from tests.unit.ad.kernels import ONE, ZERO, A, B, built, operations, ran, statements

V4 = VectorType(FLOAT32, 4)
M9 = MatrixType(FLOAT32, 9, 9)
I = [const(k, INT32) for k in range(4)]
Write = Callable[[Builder, n.Var], None]


def taken(write: Write, wanted: bool = True) -> n.Function:
    """What becomes of a kernel with a vector, whose components reach memory at the end."""
    held: list[n.Var] = []

    def whole(b: Builder) -> None:
        x = b.variable(V4, "x")
        held.append(x)
        write(b, x)
        total: n.Atom = const(0, FLOAT32)
        for k in range(4):
            weight = const(float(10**k), FLOAT32)
            total = b.op("add", total, b.op("mul", b.op("extract", x, I[k]), weight))
        b.add(n.Store(B, (ZERO,), total))

    fn = built(whole)
    out = scalars(fn, held if wanted else [])
    given = [np.array([2, 3], np.float32), np.zeros(2, np.float32), 2]
    for a, c in zip(ran(fn, 1, *given), ran(out, 1, *given), strict=True):
        np.testing.assert_array_equal(a, c)
    return out


def types(fn: n.Function) -> set[object]:
    return {v.type for v in n.set_in(fn.body)}


def changes(b: Builder, x: n.Var) -> None:
    b.set(x, b.op("insert", x, I[1], b.load(A, [ZERO], [], FLOAT32)))
    b.set(x, b.op("insert", x, I[2], b.op("extract", x, I[1])))


def test_components_become_variables() -> None:
    out = taken(changes)
    assert types(out) == {FLOAT32} and len(statements(out, n.Set)) == 2
    assert "insert" not in operations(out) and "extract" not in operations(out)


def test_only_what_is_asked_for() -> None:
    assert types(taken(changes, wanted=False)) == {V4}


def test_one_place_that_is_not_known_keeps_the_whole() -> None:
    def write(b: Builder, x: n.Var) -> None:
        changes(b, x)
        at = b.op("cast", b.load(A, [ZERO], [], FLOAT32), result=INT32)
        b.set(x, b.op("insert", x, at, const(5, FLOAT32)))

    assert types(taken(write)) == {V4}


def test_what_branches_and_loops_change_is_read_after_them() -> None:
    def write(b: Builder, x: n.Var) -> None:
        changes(b, x)
        inner, other = b.child(), b.child()
        inner.set(x, inner.op("insert", x, I[0], inner.op("extract", x, I[2])))
        other.set(x, other.op("scale", x, const(3, FLOAT32)))
        b.add(n.If(n.Const(True, BOOL), inner.block(), other.block()))
        turn = b.child()
        turn.set(x, turn.op("insert", x, I[3], turn.op("add", *two(turn, x))))
        b.add(n.For(turn.temp(INT32, "k"), ZERO, I[3], ONE, turn.block()))

    def two(b: Builder, x: n.Var) -> tuple[n.Atom, n.Atom]:
        return b.op("extract", x, I[0]), b.op("extract", x, I[3])

    assert types(taken(write)) == {FLOAT32}


def test_copies_have_the_value_of_then() -> None:
    def write(b: Builder, x: n.Var) -> None:
        changes(b, x)
        before = b.op("copy", x)
        b.set(x, b.op("insert", x, I[1], const(7, FLOAT32)))
        b.add(n.Store(B, (ONE,), b.op("extract", before, I[1])))
        b.set(x, b.op("add", x, before))

    assert types(taken(write)) == {FLOAT32}


def test_what_is_used_as_a_whole_too_often_is_heavy() -> None:
    def write(times: int) -> n.Function:
        def all_of_it(b: Builder) -> None:
            x = b.variable(M9, "x")
            for _ in range(times):
                b.set(x, b.op("scale", x, b.load(A, [ZERO], [], FLOAT32)))
            b.add(n.Store(B, (ZERO,), b.op("extract", x, I[0], I[0])))

        return built(all_of_it)

    assert heavy(write(5).body) == set()
    assert {v.name for v in heavy(write(15).body) if isinstance(v, n.Var)} == {"x"}
