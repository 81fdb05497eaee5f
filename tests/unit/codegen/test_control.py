"""Native code against the interpreter: loops, jumps, calls, and where variables live."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.codegen.cpp import emit
from engine.ir.builder import Builder, const
from engine.ir.nodes import (
    Atom,
    Atomic,
    Break,
    Call,
    Const,
    Continue,
    For,
    If,
    Return,
    Store,
    Var,
    While,
)
from engine.lang.types import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    SCALARS,
    ArrayType,
)
from tests.unit.codegen.native_ir import F1, F2, I1, V3, f32, function, i32, kernel, tid

LOOPS = [(0, 5, 1), (5, 0, -1), (0, 10, 3), (10, 0, -3), (0, 0, 1), (3, 1, 1), (0, 9, 0),
         (-5, 5, 4), (2147483640, 2147483647, 3), (-2147483640, -2147483648, -3),
         (2147483647, -2147483648, -2147483648)]  # fmt: skip


@pytest.mark.parametrize("fixed", [False, True])
def test_counted_loops(fixed: bool, same: Any) -> None:
    out = Var("out", I1)
    bounds = Var("bounds", I1)

    def build(b: Builder) -> None:
        total = b.variable(INT32, "total")
        for k, loop in enumerate(LOOPS):
            atoms: list[Atom] = [i32(v) for v in loop]
            if not fixed:
                atoms = [b.load(bounds, [i32(3 * k + j)], [], INT32) for j in range(3)]
            inner = b.child()
            v = inner.temp(INT32, "v")
            step = inner.op("add", inner.op("mul", total, i32(31)), v)
            inner.set(total, step)
            b.add(For(v, atoms[0], atoms[1], atoms[2], inner.block()))
            b.add(Store(out, (i32(k),), total))

    args = [np.zeros(len(LOOPS), np.int32), np.array(LOOPS, np.int64).astype(np.int32).ravel()]
    same(kernel([out, bounds], build), args, 1)


@pytest.mark.parametrize("name", ["int8", "uint8", "uint32", "int64", "uint64"])
def test_loop_variables_of_every_width(name: str, same: Any) -> None:
    t = SCALARS[name]
    out = Var("out", ArrayType(t, 1))
    top = int(np.iinfo(t.numpy).max)

    def build(b: Builder) -> None:
        for k, (start, stop, step) in enumerate([(0, 100, 7), (top - 5, top, 2), (3, 9, 1)]):
            inner = b.child()
            v = inner.temp(t, "v")
            inner.add(Atomic(None, "add", out, (i32(k),), v))
            b.add(For(v, *(Const(a, t) for a in (start, stop, step)), inner.block()))

    same(kernel([out], build), [np.zeros(3, t.numpy)], 1)


def test_bounds_are_read_once(same: Any) -> None:
    out = Var("out", I1)

    def build(b: Builder) -> None:
        start, stop, step = (b.variable(INT32, name) for name in ("start", "stop", "step"))
        for v, value in ((start, 1), (stop, 9)):
            b.set(v, i32(value))
        for by in (1, 2):
            b.set(step, i32(by))
            inner = b.child()
            v = inner.temp(INT32, "v")
            inner.set(stop, i32(2))
            inner.set(step, i32(5))
            inner.set(start, i32(0))
            inner.add(Atomic(None, "add", out, (v,), i32(1)))
            b.add(For(v, start, stop, i32(1) if by == 1 else step, inner.block()))
            b.set(stop, i32(10))

    same(kernel([out], build), [np.zeros(10, np.int32)], 1)


def test_break_and_continue(same: Any) -> None:
    out = Var("out", I1)

    def build(b: Builder) -> None:
        i = tid(b)
        inner = b.child()
        v = inner.temp(INT32, "v")
        inner.add(If(inner.op("eq", inner.op("mod", v, i32(3)), i32(1)), (Continue(),)))
        inner.add(If(inner.op("gt", v, i), (Break(),)))
        inner.add(Atomic(None, "add", out, (i,), v))
        b.add(For(v, i32(0), i32(100), i32(1), inner.block()))
        b.add(For(b.temp(INT32, "w"), i32(0), i32(100), i32(1), (Break(),)))

    same(kernel([out], build), [np.zeros(20, np.int32)], 20)


def test_while(same: Any) -> None:
    """Steps of the Collatz sequence, counted but for every fifth, until 50 are found."""
    out = Var("out", I1)

    def build(b: Builder) -> None:
        i = tid(b)
        n, count = b.variable(INT32, "n"), b.variable(INT32, "count")
        b.set(n, b.op("add", i, i32(1)))
        test = b.child()
        cond = test.op("gt", n, i32(1))
        body = b.child()
        odd = body.op("eq", body.op("mod", n, i32(2)), i32(1))
        yes, no = body.child(), body.child()
        yes.set(n, yes.op("add", yes.op("mul", n, i32(3)), i32(1)))
        no.set(n, no.op("div", n, i32(2)))
        body.add(If(odd, yes.block(), no.block()))
        body.add(If(body.op("eq", body.op("mod", n, i32(5)), i32(0)), (Continue(),)))
        body.set(count, body.op("add", count, i32(1)))
        body.add(If(body.op("ge", count, i32(50)), (Break(),)))
        b.add(While(test.block(), cond, body.block()))
        b.add(Store(out, (i,), count))

    same(kernel([out], build), [np.zeros(100, np.int32)], 100)


def test_return_ends_one_thread(same: Any) -> None:
    out = Var("out", F1)

    def build(b: Builder) -> None:
        i = tid(b)
        b.add(If(b.op("gt", i, i32(3)), (Return(),)))
        inner = b.child()
        v = inner.temp(INT32, "v")
        inner.add(If(inner.op("eq", v, i), (Return(),)))
        inner.add(Atomic(None, "add", out, (i,), f32(1)))
        b.add(For(v, i32(0), i32(3), i32(1), inner.block()))
        b.add(Atomic(None, "add", out, (i,), f32(10)))

    same(kernel([out], build), [np.zeros(9, np.float32)], 9)


def test_calls(same: Any) -> None:
    """Functions with none, one and three results, early returns, arrays, tid, and nesting."""
    x, a, out = Var("x", FLOAT32), Var("a", F1), Var("out", F2)

    def half(b: Builder) -> None:
        b.add(If(b.op("lt", x, f32(0)), (Return((f32(-1),)),)))
        b.add(Return((b.op("mul", x, f32(0.5)),)))

    f_half = function("half", [x], [FLOAT32], half)

    def three(b: Builder) -> None:
        h = b.temp(FLOAT32, "h")
        b.add(Call((h,), f_half, (x,)))
        v = b.op("fill", h, result=V3)
        yes = (Return((h, v, Const(True, BOOL))),)
        b.add(If(b.op("gt", h, f32(1)), yes, (Return((x, v, Const(False, BOOL))),)))

    f_three = function("three", [x], [FLOAT32, V3, BOOL], three)

    def bump(b: Builder) -> None:
        b.add(Atomic(None, "add", a, (tid(b),), x))
        b.add(Atomic(None, "add", a, (tid(b, 1, 2),), x))

    f_bump = function("bump", [a, x], [], bump)

    def build(b: Builder) -> None:
        i = tid(b)
        dsts = tuple(b.temp(t) for t in f_three.results)
        xi = b.load(out, [i, i32(0)], [], FLOAT32)
        b.add(Call(dsts, f_three, (xi,)))
        b.add(Store(out, (i, i32(1)), dsts[0]))
        b.add(Store(out, (i, i32(2)), b.op("extract", dsts[1], i32(2))))
        b.add(Store(out, (i, i32(3)), b.op("select", dsts[2], f32(1), f32(2))))
        b.add(Call((), f_bump, (a, xi)))
        b.add(Call((), f_three, (xi,)))

    data = np.zeros((6, 4), np.float32)
    data[:, 0] = [-3, -1, 0, 1, 2, 5]
    same(kernel([a, out], build), [np.zeros(6, np.float32), data], (2, 3))


def test_a_temporary_used_outside_its_block(same: Any) -> None:
    """As in adjoint code: the reverse of an If or a loop uses what the forward part made."""
    x, out = Var("x", F1), Var("out", F1)

    def build(b: Builder) -> None:
        i = tid(b)
        xi = b.load(x, [i], [], FLOAT32)
        cond = b.op("gt", xi, f32(0))
        then = b.child()
        t = then.op("mul", xi, f32(3), base="kept")
        b.add(If(cond, then.block()))
        again = b.child()
        again.add(Atomic(None, "add", out, (i,), t))
        b.add(If(cond, again.block()))
        loop = b.child()
        v = loop.temp(INT32, "v")
        last = loop.op("mul", xi, loop.op("cast", v, result=FLOAT32))
        b.add(For(v, i32(0), i32(4), i32(1), loop.block()))
        deep = b.child()
        deep.add(If(cond, (Atomic(None, "add", out, (i,), last),)))
        b.add(While((), Const(True, BOOL), (*deep.block(), Break())))
        # Made in a test, used in the body and after the loop.
        test = b.child()
        go = test.op("lt", test.load(out, [i], [], FLOAT32, "now"), f32(9))
        now = test.stmts[0].dst  # type: ignore[union-attr]
        body = b.child()
        body.add(Store(out, (i,), body.op("add", now, f32(2))))
        b.add(While(test.block(), go, body.block()))
        b.add(Atomic(None, "add", out, (i,), now))

    xs = np.array([-1, 2, 0, 0.5], np.float32)
    fn = replace(kernel([x, out], build), mirrored=True)
    assert "    float v_kept;\n" in emit(fn, "s")
    same(fn, [xs, np.zeros(4, np.float32)], 4)


def test_variables_start_as_zero_in_every_thread(same: Any) -> None:
    out = Var("out", F1)

    def build(b: Builder) -> None:
        i = tid(b)
        v, w = b.variable(FLOAT32), b.variable(V3, "w")
        b.add(Atomic(None, "add", out, (i,), v))
        b.add(Atomic(None, "add", out, (i,), b.op("extract", w, i32(1))))
        b.set(v, f32(5))
        b.set(w, b.op("fill", f32(2), result=V3))

    same(kernel([out], build), [np.zeros(5, np.float32)], 5)


def test_loops_of_long_integers(same: Any) -> None:
    out = Var("out", ArrayType(INT64, 1))

    def build(b: Builder) -> None:
        inner = b.child()
        v = inner.temp(INT64, "v")
        inner.add(Atomic(None, "add", out, (i32(0),), v))
        b.add(For(v, const(2**40, INT64), const(2**40 + 3, INT64), const(1, INT64), inner.block()))

    same(kernel([out], build), [np.zeros(1, np.int64)], 1)
