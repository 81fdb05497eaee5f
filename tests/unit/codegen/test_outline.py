"""Large functions are cut into pieces; what they do stays the same.

Random programs in pieces: tests/backend/test_random_programs.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.codegen import cpp, outline
from engine.compile.cpu.compiler import HUGE, _Unit
from engine.compile.cpu.toolchain import find_toolchain
from engine.ir.builder import Builder, Names, const
from engine.ir.nodes import (
    Break,
    Call,
    Const,
    Continue,
    For,
    Function,
    If,
    Return,
    Store,
    Var,
    While,
)
from engine.lang.types import BOOL, FLOAT32, INT32
from tests.unit.codegen.native_ir import F1, V3, f32, i32, kernel, tid


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "LARGE", 0)
    monkeypatch.setattr(outline, "PIECE", 2)


X, OUT = Var("x", F1), Var("out", F1)


def test_values_live_in_the_frame_and_in_pieces(same: Any) -> None:
    def build(b: Builder) -> None:
        i = tid(b)
        total = b.variable(FLOAT32, "total")
        first = b.load(X, [i], [], FLOAT32, "first")
        for k in range(10):
            b.set(total, b.op("add", total, b.op("mul", first, f32(k))))
        v = b.op("fill", total, result=V3, base="v")
        b.add(Store(OUT, (i,), b.op("extract", v, i32(2))))

    fn = kernel([X, OUT], build)
    text = cpp.emit(fn, "s")
    assert text.count("ENG_PIECE") > 5
    assert "float v_total;\n" in text  # in the frame
    assert "F.v_total" in text
    same(fn, [np.linspace(-1, 1, 5, dtype=np.float32), np.zeros(5, np.float32)], 5)


def test_jumps_leave_pieces(same: Any) -> None:
    """break, continue and return, from pieces inside and outside of loops."""

    def build(b: Builder) -> None:
        i = tid(b)
        n, total = b.variable(INT32, "n"), b.variable(FLOAT32, "total")
        body = b.child()
        body.set(n, body.op("add", n, i32(1)))
        x = body.load(X, [body.op("mod", n, i32(5))], [], FLOAT32)
        body.add(If(body.op("eq", body.op("mod", n, i32(3)), i32(0)), (Continue(),)))
        for k in range(4):
            body.set(total, body.op("add", total, body.op("mul", x, f32(k))))
        body.add(If(body.op("gt", n, body.op("add", i, i32(9))), (Break(),)))
        early = body.child()
        early.add(Store(OUT, (i,), total))
        early.add(Return())
        body.add(If(body.op("gt", total, f32(20)), early.block()))
        b.add(While((), Const(True, BOOL), body.block()))
        j = b.temp(INT32, "j")
        inner = b.child()
        inner.set(total, inner.op("add", total, inner.op("cast", j, result=FLOAT32)))
        inner.add(If(inner.op("eq", j, i32(4)), (Continue(),)))
        inner.add(If(inner.op("gt", j, i32(6)), (Break(),)))
        inner.set(total, inner.op("mul", total, f32(1.25)))
        b.add(For(j, i32(0), i32(10), i32(1), inner.block()))
        b.add(Store(OUT, (i,), total))

    xs = np.array([0.5, 1, -1, 2, 0.25], np.float32)
    same(kernel([X, OUT], build), [xs, np.zeros(5, np.float32)], 5)


@pytest.mark.parametrize("results", [1, 2])
def test_functions_return_from_pieces(results: int, same: Any) -> None:
    a = Var("a", FLOAT32)
    f = Builder(Names(["a"]))
    for k in range(6):
        then = f.child()
        values = [then.op("mul", a, f32(k + j)) for j in range(results)]
        then.add(Return(tuple(values)))
        f.add(If(f.op("lt", a, f32(k)), then.block()))
    f.add(Return(tuple(f.op("add", a, f32(j)) for j in range(results))))
    func = Function("chosen", (a,), (FLOAT32,) * results, f.block())

    def build(b: Builder) -> None:
        i = tid(b)
        got = tuple(b.temp(FLOAT32, "got") for _ in range(results))
        b.add(Call(got, func, (b.load(X, [i], [], FLOAT32),)))
        b.add(Store(OUT, (i,), b.op("sub", got[0], got[-1])))
        b.add(Store(OUT, (i,), got[0]))

    same(kernel([X, OUT], build), [np.arange(-1, 8, dtype=np.float32), np.zeros(9, np.float32)], 9)


def test_large_kernels_are_compiled_for_any_strides_alone(
    same: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(b: Builder) -> None:
        i = tid(b)
        x = b.load(X, [i], [], FLOAT32)
        b.add(Store(OUT, (i,), b.op("mul", x, b.op("add", x, f32(0.3)))))

    fn = kernel([X, OUT], build)
    wide = np.linspace(-1, 1, 14, dtype=np.float32)
    for n in (0, 1, 7):
        for x in (wide[:n], wide[: 2 * n : 2]):
            for out in (np.zeros(n, np.float32), np.zeros((n, 3), np.float32)[:, 1]):
                same(fn, [x, out], n)
    assert "run_apart" not in cpp.emit(fn, "s")
    monkeypatch.undo()
    assert "run_apart" in cpp.emit(fn, "s")


def test_compilers_do_less_for_what_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def long(n: int) -> Function:
        def build(b: Builder) -> None:
            i = tid(b)
            v = b.load(X, [i], [], FLOAT32)
            for _ in range(n):
                v = b.op("mul", v, const(1.5, FLOAT32))  # type: ignore[arg-type]
            b.add(Store(OUT, (i,), v))

        return kernel([X, OUT], build)

    monkeypatch.undo()
    levels = [_Unit(long(n), find_toolchain()).level for n in (10, outline.LARGE, HUGE)]
    assert levels == [0, 1, 2]
