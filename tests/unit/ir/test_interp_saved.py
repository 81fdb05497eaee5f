"""The interpreter: tracing, the stack and the journal of adjoint code, refused arguments."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.ir.interp import InterpError, Journal, evaluate, run
from engine.ir.verify import verify
from engine.lang.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    VectorType,
)

TRUE = const(True, BOOL)
V3 = VectorType(FLOAT64, 3)


def i(value: int) -> n.Const:
    return const(value, INT32)


def f(value: float) -> n.Const:
    return const(value, FLOAT64)


def test_values_keep_their_type(code: Any) -> None:
    b: Builder = code.builder
    x = b.op("div", const(1.0, FLOAT32), const(3.0, FLOAT32))
    y = b.op("add", const(2**31 - 1, INT32), const(1, INT32))
    fn = n.Function("f", (), (FLOAT32, INT32), (*b.stmts, n.Return((x, y))))
    got = evaluate(fn, [])
    assert got == (np.float32(1) / np.float32(3), -(2**31))
    assert [g.dtype for g in got] == [np.float32, np.int32]


def test_trace_sees_operands_and_results(code: Any) -> None:
    b: Builder = code.builder
    x = b.load(code.b, [i(1)], [], FLOAT64, "x")
    b.op("log", b.op("sub", x, f(2.0)), base="y")
    seen = []
    run(
        code.kernel(), [np.zeros(1), np.array([1.0, 2.0]), 0], 2, threads=[1],
        trace=lambda s, operands, result, thread: seen.append(
            (s.dst.name, [float(o) for o in operands], float(result), thread)
        ),
    )  # fmt: skip
    assert seen == [("x", [1], 2.0, 1), ("t", [2.0, 2.0], 0.0, 1), ("y", [0.0], -math.inf, 1)]


def test_push_and_pop(code: Any) -> None:
    b: Builder = code.builder
    m = b.variable(FLOAT64, "m")
    k, q = b.temp(INT32, "k"), b.temp(INT32, "q")
    body = b.child()
    body.add(n.Push(0, m))
    body.set(m, body.op("add", m, f(1.5)))
    b.add(n.For(k, i(0), i(3), i(1), body.block()))
    back = b.child()
    back.add(n.Pop(m, 0))
    back.add(n.Store(code.a, (q,), m))
    b.add(n.For(q, i(0), i(3), i(1), back.block()))
    a = np.zeros(4)
    run(code.kernel(), [a, a, 0], 1)
    assert list(a) == [3.0, 1.5, 0.0, 0.0]


def test_stack_misuse_is_seen(code: Any) -> None:
    x = n.Var("x", FLOAT64)
    arrays = [np.zeros(1), np.zeros(1), 0]
    with pytest.raises(InterpError, match="does not match"):
        run(code.kernel(n.Pop(x, 0)), arrays, 1)
    with pytest.raises(InterpError, match="does not match"):
        run(code.kernel(n.Push(0, f(1.0)), n.Push(1, f(1.0)), n.Pop(x, 0)), arrays, 1)
    with pytest.raises(InterpError, match="are left"):
        run(code.kernel(n.Push(0, f(1.0))), arrays, 1)


def test_journal_is_shared_between_runs(code: Any) -> None:
    """Each thread writes a vector (3 slots) and a number (1 slot); the second run reads them."""
    b: Builder = code.builder
    t = b.op("tid", i(0), i(1))
    x = b.load(code.b, [t], [], FLOAT64)
    v = b.op("fill", x, result=V3)
    b.stmts += [n.JournalWrite(v, 0), n.JournalWrite(x, 1)]
    size = 3
    values = np.arange(1.0, size + 1)
    journal = run(code.kernel(), [np.zeros(size), values, 0], size)
    assert len(journal.slots) == 4 * size

    back = type(code)()
    b = back.builder
    t = b.op("tid", i(0), i(1))
    v, x = n.Var("v", V3), n.Var("x", FLOAT64)
    b.stmts += [n.JournalRead(v, const(0, INT64), 0), n.JournalRead(x, const(3, INT64), 1)]
    total = b.op("add", b.op("dot", v, v), x)
    b.stmts += [n.Store(back.a, (t,), total)]
    fn = replace(back.kernel(), adjoints=frozenset({"a"}))  # runs its threads backwards
    verify(fn)
    a = np.zeros(size)
    assert run(fn, [a, values, 0], size, journal=journal) is journal
    np.testing.assert_array_equal(a, 3 * values**2 + values)
    with pytest.raises(InterpError, match="journal has no"):
        run(fn, [np.zeros(size + 1), values, 0], size + 1, journal=journal)
    with pytest.raises(InterpError, match="journal has no"):
        run(fn, [a, values, 0], 1, journal=Journal())


def test_undefined_and_missing_results(code: Any) -> None:
    x = n.Var("x", FLOAT64)
    fn = code.kernel(
        n.If(const(False, BOOL), (n.Let(x, "copy", (f(1.0),)),)), n.Store(code.a, (i(0),), x)
    )
    with pytest.raises(InterpError, match="before it is defined"):
        run(fn, [np.zeros(1), np.zeros(1), 0], 1)
    with pytest.raises(InterpError, match="without returning"):
        evaluate(n.Function("f", (), (FLOAT64,), ()), [])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([np.zeros(1)], "takes 3 arguments"),
        ([np.zeros(1, np.float32), np.zeros(1), 0], "argument a is not a NumPy array of float64"),
        ([np.zeros((1, 3)), np.zeros(1), 0], "argument a has shape"),
        ([[0.0], np.zeros(1), 0], "argument a is not a NumPy array"),
    ],
)
def test_wrong_arguments(args: list[Any], words: str, code: Any) -> None:
    with pytest.raises(TypeError, match=words):
        run(code.kernel(), args, 1)


def test_empty_grid(code: Any) -> None:
    a, b = np.zeros(10), np.zeros(1)
    kernel = code.kernel(n.Store(code.a, (i(9),), f(1.0)))
    run(kernel, [a, b, 0], 0)
    assert not a.any()  # no thread has run
    run(kernel, [a, b, 0], 1)
    assert a.tolist() == [0.0] * 9 + [1.0]
