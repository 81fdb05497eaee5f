"""The interpreter: control flow, memory and calls, written directly in IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.ir.interp import InterpError, run
from engine.ir.verify import verify
from engine.lang.types import (
    BOOL,
    FLOAT64,
    INT32,
    ArrayType,
    MatrixType,
    VectorType,
)

TRUE = const(True, BOOL)
V3 = VectorType(FLOAT64, 3)


def i(value: int) -> n.Const:
    return const(value, INT32)


def f(value: float) -> n.Const:
    return const(value, FLOAT64)


def out(code: Any, fn: n.Function, dim: int = 1, size: int = 4, count: int = 0) -> Any:
    """Runs a kernel of the `code` fixture and gives its array a (b counts from 1)."""
    verify(fn)
    a, b = np.zeros(size), np.arange(1.0, size + 1)
    run(fn, [a, b, count], dim, max_steps=10_000)
    return a


def summing(code: Any, start: int, stop: int, step: int) -> Any:
    """a[0] = the number of trips, a[1] = the sum of the loop variable, a[2] its last value."""
    b: Builder = code.builder
    trips, total, last = (b.variable(FLOAT64, x) for x in ("trips", "total", "last"))
    body = b.child()
    k = b.temp(INT32, "k")
    x = body.op("cast", k, result=FLOAT64)
    body.set(trips, body.op("add", trips, f(1.0)))
    body.set(total, body.op("add", total, x))
    body.set(last, x)
    b.add(n.For(k, i(start), i(stop), i(step), body.block()))
    for at, v in enumerate((trips, total, last)):
        b.add(n.Store(code.a, (i(at),), v))
    return out(code, code.kernel())


@pytest.mark.parametrize(
    "bounds",
    [(0, 5, 1), (0, 5, 2), (5, 0, -1), (5, 0, -2), (0, -5, 1), (3, 3, 1), (-4, 4, 3)],
)
def test_for_counts_like_range(bounds: tuple[int, int, int], code: Any) -> None:
    ks = list(range(*bounds))
    assert list(summing(code, *bounds)[:3]) == [len(ks), sum(ks), ks[-1] if ks else 0]


def test_step_of_zero_runs_nothing(code: Any) -> None:
    assert summing(code, 0, 5, 0)[0] == 0


def looped(code: Any, jump: n.Stmt, after: float) -> n.Function:
    """A loop over 0..9 that adds k and jumps at k == 5, before adding it."""
    b: Builder = code.builder
    total = b.variable(FLOAT64, "total")
    body = b.child()
    k = b.temp(INT32, "k")
    at = body.op("eq", k, i(5))
    body.add(n.If(at, (jump,)))
    x = body.op("cast", k, result=FLOAT64)
    body.set(total, body.op("add", total, x))
    body.add(n.Store(code.a, (i(0),), total))
    b.add(n.For(k, i(0), i(10), i(1), body.block()))
    b.add(n.Store(code.a, (i(1),), f(after)))
    return code.kernel()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("jump", "total", "after"),
    [(n.Break(), 10.0, 1.0), (n.Continue(), 40.0, 1.0), (n.Return(), 10.0, 0.0)],
)
def test_jumps(jump: n.Stmt, total: float, after: float, code: Any) -> None:
    assert list(out(code, looped(code, jump, 1.0))[:2]) == [total, after]


def test_break_leaves_only_the_inner_loop(code: Any) -> None:
    b: Builder = code.builder
    count = b.variable(FLOAT64, "count")
    inner = b.child()
    inner.set(count, inner.op("add", count, f(1.0)))
    inner.add(n.Break())
    nest = n.For(n.Var("q", INT32), i(0), i(9), i(1), inner.block())
    b.add(n.For(n.Var("p", INT32), i(0), i(3), i(1), (nest,)))
    b.add(n.Store(code.a, (i(0),), count))
    assert out(code, code.kernel())[0] == 3.0


def counting(code: Any, *extra: n.Stmt) -> n.Function:
    """while count < n: count += 1; the count goes to a[0]."""
    b: Builder = code.builder
    count = b.variable(INT32, "count")
    test, body = b.child(), b.child()
    cond = test.op("lt", count, code.n)
    body.set(count, body.op("add", count, i(1)))
    b.add(n.While(test.block(), cond, (*body.block(), *extra)))
    b.add(n.Store(code.a, (i(0),), b.op("cast", count, result=FLOAT64)))
    return code.kernel()  # type: ignore[no-any-return]


def test_while(code: Any) -> None:
    assert out(code, counting(code), count=7)[0] == 7.0


def test_while_may_run_not_at_all(code: Any) -> None:
    assert out(code, counting(code), count=0)[0] == 0.0


def test_while_with_break_and_continue(code: Any) -> None:
    assert out(code, counting(code, n.Break()), count=7)[0] == 1.0


def test_step_limit_stops_an_endless_loop(code: Any) -> None:
    for body in ((), (n.Set(n.Var("m", FLOAT64, True), f(1.0)),)):
        fn = code.kernel(n.While((), TRUE, body))
        with pytest.raises(InterpError, match="step limit"):
            run(fn, [np.zeros(1), np.zeros(1), 0], 1, max_steps=100)


def test_bounds_are_read_once(code: Any) -> None:
    b: Builder = code.builder
    stop, count = b.variable(INT32, "stop"), b.variable(FLOAT64, "count")
    b.set(stop, i(3))
    body = b.child()
    body.set(stop, i(100))
    body.set(count, body.op("add", count, f(1.0)))
    b.add(n.For(b.temp(INT32, "k"), i(0), stop, i(1), body.block()))
    b.add(n.Store(code.a, (i(0),), count))
    assert out(code, code.kernel())[0] == 3.0


def test_variables_start_at_zero_in_each_thread(code: Any) -> None:
    b: Builder = code.builder
    m = b.variable(FLOAT64, "m")
    t = b.op("tid", i(0), i(1))
    b.set(m, b.op("add", m, f(1.0)))
    b.add(n.Store(code.a, (t,), m))
    assert list(out(code, code.kernel(), dim=4)) == [1.0] * 4


def test_tid_of_a_grid(code: Any) -> None:
    b: Builder = code.builder
    rows = n.Var("rows", ArrayType(INT32, 2))
    linear = b.op("thread")
    for k, (dim, arity) in enumerate([(0, 1), (0, 2), (1, 2), (2, 3)]):
        b.add(n.Store(rows, (linear, i(k)), b.op("tid", i(dim), i(arity))))
    fn = n.Function("k", (rows,), (), b.block(), is_kernel=True)
    got = np.full((6, 4), -1, np.int32)
    run(fn, [got], (2, 3))
    np.testing.assert_array_equal(got, [[t // 3, t // 3, t % 3, 0] for t in range(6)])


def test_chosen_threads_only(code: Any) -> None:
    b: Builder = code.builder
    b.add(n.Store(code.a, (b.op("tid", i(0), i(1)),), f(1.0)))
    a = np.zeros(4)
    run(code.kernel(), [a, a, 0], 4, threads=[3, 1])
    assert list(a) == [0, 1, 0, 1]


def test_shape(code: Any) -> None:
    b: Builder = code.builder
    size = b.op("cast", b.op("shape", code.b, i(0)), result=FLOAT64)
    b.add(n.Store(code.a, (i(0),), size))
    assert out(code, code.kernel(), size=9)[0] == 9


def test_components_of_elements(code: Any) -> None:
    b: Builder = code.builder
    v, m = n.Var("v", ArrayType(V3, 1)), n.Var("m", ArrayType(MatrixType(FLOAT64, 2, 2), 1))
    whole = b.load(v, [i(0)], [], V3)
    part = b.load(v, [i(0)], [i(2)], FLOAT64)
    b.add(n.Store(v, (i(1),), b.op("scale", whole, part)))
    b.add(n.Store(v, (i(0),), f(9.0), (i(1),)))
    b.add(n.Store(v, (i(2),), whole))  # the value from before the store to a component
    b.add(n.Atomic(None, "add", m, (i(0),), part, (i(1), i(0))))
    fn = n.Function("k", (v, m), (), b.block(), is_kernel=True)
    verify(fn)
    data, mats = np.zeros((3, 3)), np.zeros((1, 2, 2))
    data[0] = [1, 2, 3]
    run(fn, [data, mats], 1)
    np.testing.assert_array_equal(data, [[1, 9, 3], [3, 6, 9], [1, 2, 3]])
    np.testing.assert_array_equal(mats, [[[0, 0], [3, 0]]])


def test_strided_views_are_changed_in_place(code: Any) -> None:
    b: Builder = code.builder
    b.add(n.Store(code.a, (b.op("tid", i(0), i(1)),), f(1.0)))
    base = np.zeros(6)
    run(code.kernel(), [base[::2], base, 0], 3)
    assert list(base) == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [("add", [3.0, 4.0], 8.0), ("sub", [3.0, 4.0], -6.0), ("min", [3.0, -4.0], -4.0),
     ("max", [3.0, -4.0], 3.0)],
)  # fmt: skip
def test_atomics(kind: Any, values: list[float], expected: float, code: Any) -> None:
    b: Builder = code.builder
    for v in values:
        old = b.temp(FLOAT64, "old")
        b.add(n.Atomic(old, kind, code.a, (i(0),), f(v)))
        b.add(n.Store(code.a, (i(1),), old))
    a = np.array([1.0, 0.0])
    run(code.kernel(), [a, a, 0], 1)
    assert a[0] == expected
    assert a[1] == {"add": 4.0, "sub": -2.0, "min": 1.0, "max": 3.0}[kind]


@pytest.mark.parametrize("at", [-1, 4, 100])
@pytest.mark.parametrize("access", ["load", "store", "atomic"])
def test_out_of_range(at: int, access: str, code: Any) -> None:
    b: Builder = code.builder
    span = b.span
    if access == "load":
        b.load(code.a, [i(at)], [], FLOAT64)
    elif access == "store":
        b.add(n.Store(code.a, (i(at),), f(1.0), (), span))
    else:
        b.add(n.Atomic(None, "add", code.a, (i(at),), f(1.0), (), span))
    with pytest.raises(InterpError, match="outside %a of shape") as e:
        run(code.kernel(), [np.zeros(4), np.zeros(4), 0], 3, threads=[2])
    got = e.value
    assert (got.thread, got.index, got.shape, got.span) == (2, (at,), (4,), span)


def test_component_out_of_range(code: Any) -> None:
    b: Builder = code.builder
    b.op("extract", const(0.0, V3), i(3))
    with pytest.raises(InterpError, match="component") as e:
        run(code.kernel(), [np.zeros(1), np.zeros(1), 0], 1)
    assert e.value.span == b.span


def test_calls_have_frames_of_their_own(code: Any) -> None:
    """h(p) counts in a variable that is also called `m` in the kernel."""
    m = n.Var("m", FLOAT64, mutable=True)
    p = n.Var("p", FLOAT64)
    inner = Builder(type(code.builder.names)(["m", "p"]))
    inner.set(m, inner.op("add", m, p))
    inner.add(n.If(TRUE, (n.Return((m, p)),)))
    inner.add(n.Return((p, p)))
    h = n.Function("h", (p,), (FLOAT64, FLOAT64), inner.block())
    b: Builder = code.builder
    b.set(m, f(10.0))
    for k in range(2):
        x, y = b.temp(FLOAT64, "x"), b.temp(FLOAT64, "y")
        b.add(n.Call((x, y), h, (f(2.0 + k),)))
        b.add(n.Store(code.a, (i(k),), x))
    b.add(n.Store(code.a, (i(2),), m))
    assert list(out(code, code.kernel())[:3]) == [2.0, 3.0, 10.0]
