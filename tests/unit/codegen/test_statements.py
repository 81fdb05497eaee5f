"""Native code against the interpreter: thread indices, memory, values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from engine.compile.host import compile_functions, new_launch
from engine.ir.builder import Builder
from engine.ir.nodes import (
    Atomic,
    Const,
    Let,
    Set,
    Store,
    Var,
)
from engine.lang.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    SCALARS,
    ArrayType,
    ScalarType,
    VectorType,
)
from tests.unit.codegen.native_ir import F1, F2, I1, M23, V3, f32, i32, kernel, tid


@pytest.mark.parametrize("arity", [1, 2, 3, 4])
@pytest.mark.parametrize("dim", [(7,), (3, 5), (2, 3, 4), (2, 3, 2, 4), (1, 6), (6, 1)])
def test_thread_indices(arity: int, dim: tuple[int, ...], same: Any) -> None:
    out = Var("out", ArrayType(INT32, 2))

    def build(b: Builder) -> None:
        linear = b.op("thread")
        for k in range(arity):
            b.add(Store(out, (linear, i32(k)), tid(b, k, arity)))

    same(kernel([out], build), [np.zeros((int(np.prod(dim)), arity), np.int32)], dim)


def test_unused_coordinates(same: Any) -> None:
    out = Var("out", I1)

    def build(b: Builder) -> None:
        b.add(Atomic(None, "add", out, (tid(b, 0, 2),), i32(1)))

    same(kernel([out], build), [np.zeros(3, np.int32)], (3, 5))


def test_part_of_a_launch(call: Any) -> None:
    out = Var("out", F2)

    def build(b: Builder) -> None:
        b.add(Store(out, (tid(b, 0, 2), tid(b, 1, 2)), f32(1)))

    fn = kernel([out], build)
    (entry,) = compile_functions([fn])
    for begin in range(13):
        for end in range(begin, 13):
            a = np.zeros((3, 4), np.float32)
            launch = new_launch((3, 4))
            launch.begin, launch.end = begin, end
            call(entry, fn, [a], launch)
            assert np.flatnonzero(a).tolist() == list(range(begin, end))


def test_strides(same: Any) -> None:
    x, y = Var("x", F2), Var("y", F2)

    def build(b: Builder) -> None:
        i, j = tid(b, 0, 2), tid(b, 1, 2)
        b.add(Store(y, (i, j), b.op("add", b.load(x, [i, j], [], FLOAT32), f32(1))))

    fn = kernel([x, y], build)
    a = np.arange(60, dtype=np.float32).reshape(6, 10)
    for view in (a[:3, :4], a[::2, ::2][:3, :4], a.T[:3, :4], a[::-1, ::-1][:3, :4], a[:3, 5:9]):
        same(fn, [view, np.zeros((3, 4), np.float32)], (3, 4))
        same(fn, [a[:3, :4], a.copy()[::2, ::-2][:3, :4]], (3, 4))
    wide = np.broadcast_to(a[0, :4], (3, 4))
    same(fn, [wide, np.zeros((3, 4), np.float32)], (3, 4))


@pytest.mark.parametrize("kind", ["add", "sub", "min", "max"])
def test_atomics(kind: Any, same: Any) -> None:
    s, v, m = Var("s", I1), Var("v", ArrayType(V3, 1)), Var("m", ArrayType(M23, 1))
    old = Var("old", F1)

    def build(b: Builder) -> None:
        i = tid(b)
        f = b.op("sub", b.op("cast", i, result=FLOAT32), f32(2.5))
        b.add(Atomic(None, kind, s, (i32(0),), i))
        before = b.temp(FLOAT32)
        b.add(Atomic(before, kind, v, (i32(0),), f, (i32(1),)))
        b.add(Store(old, (i,), before))
        b.add(Atomic(None, kind, v, (i32(1),), b.op("fill", f, result=V3)))
        b.add(Atomic(None, kind, m, (i32(0),), f, (i32(1), i32(2))))
        if kind in ("add", "sub"):
            b.add(Atomic(None, kind, m, (i32(1),), b.op("fill", f, result=M23)))

    rng = np.random.default_rng(1)
    v0 = rng.normal(size=(2, 3)).astype(np.float32)
    v0[1, 0] = np.nan
    args = [np.array([2], np.int32), v0, np.ones((2, 2, 3), np.float32), np.zeros(6, np.float32)]
    same(kernel([s, v, m, old], build), args, 6)


def test_components_in_memory(same: Any) -> None:
    v, m = Var("v", ArrayType(V3, 2)), Var("m", ArrayType(M23, 1))

    def build(b: Builder) -> None:
        i = tid(b)
        p = b.op("mod", i, i32(3))
        x = b.load(v, [i, i32(1)], [p], FLOAT32)
        b.add(Store(v, (i, i32(0)), x, (i32(2),)))
        b.add(Store(m, (i,), b.load(m, [i], [i32(0), p], FLOAT32), (i32(1), i32(1))))

    rng = np.random.default_rng(2)
    args = [rng.normal(size=s).astype(np.float32) for s in ((4, 2, 3), (4, 2, 3))]
    same(kernel([v, m], build), args, 4)


def test_shape_and_values_as_arguments(same: Any) -> None:
    x, out = Var("x", ArrayType(V3, 3)), Var("out", ArrayType(FLOAT64, 1))
    flag, n, v, m = Var("flag", BOOL), Var("n", SCALARS["int8"]), Var("v", V3), Var("m", M23)

    def build(b: Builder) -> None:
        for k in range(3):
            size = b.op("shape", x, i32(k))
            b.add(Store(out, (i32(k),), b.op("cast", size, result=FLOAT64)))
        for k, value in enumerate((flag, n, b.op("extract", v, i32(2)),
                                   b.op("extract", m, i32(1), i32(2)))):  # fmt: skip
            b.add(Store(out, (i32(3 + k),), b.op("cast", value, result=FLOAT64)))

    vec, mat = np.array([1, 2, 3], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    args = [np.zeros((2, 3, 4, 3), np.float32), np.zeros(7), True, -5, vec, mat]
    same(kernel([x, out, flag, n, v, m], build), args, 1)
    assert args[1].tolist() == [2, 3, 4, 1, -5, 3, 5]  # type: ignore[attr-defined]


NUMBERS: list[Any] = [0.0, 1.0, -1.0, 0.1, -0.0, 1e-45, 3.4e38, 1e300, -1e300, float("nan"),
                      float("inf"), float("-inf"), 1 / 3, 16777217.0]  # fmt: skip


@pytest.mark.parametrize("name", list(SCALARS))
def test_constants(name: str, same: Any) -> None:
    t: ScalarType = SCALARS[name]
    values: list[Any] = NUMBERS if t.kind == "f" else [True, False]
    if t.kind in "iu":
        info = np.iinfo(t.numpy)
        values = [int(info.min), int(info.max), 0, 1, int(info.max) // 3]
    vec = VectorType(t, 2)
    out, outs = Var("out", ArrayType(t, 1)), Var("outs", ArrayType(vec, 1))

    def build(b: Builder) -> None:
        for k, value in enumerate(values):
            b.add(Store(out, (i32(k),), Const(value, t)))
            b.add(Store(outs, (i32(k),), Const((value, values[0]), vec)))

    n = len(values)
    args = [np.zeros(n, t.numpy), np.zeros((n, 2), t.numpy)]
    with np.errstate(over="ignore"):
        same(kernel([out, outs], build), args, 1)
        if t.kind == "f":
            expected = np.array(values).astype(t.numpy)
            np.testing.assert_array_equal(np.signbit(args[0]), np.signbit(expected))


def test_odd_names(same: Any) -> None:
    """Keywords, names that the emitter uses itself, and letters that C++ does not have."""
    names = ["int", "class", "k", "k0", "ctx", "FLAT", "L", "args", "begin", "übung", "变量",
             "true", "thread", "run", "eng"]  # fmt: skip
    params = [Var(name, F1) for name in names]

    def build(b: Builder) -> None:
        i = tid(b)
        for p, q in itertools.pairwise(params):
            t = Var(f"{p.name}_t", FLOAT32)
            b.add(Let(t, "add", (b.load(p, [i], [], FLOAT32), f32(1))))
            b.add(Store(q, (i,), t))

    same(kernel(params, build), [np.zeros(3, np.float32) for _ in names], 3)


def test_index_arithmetic_wraps(same: Any) -> None:
    """Small offsets of a thread index are widened; large ones must wrap as 32 bits do."""
    out = Var("out", I1)

    def build(b: Builder) -> None:
        i = tid(b)
        far = b.op("sub", b.op("add", b.op("add", i, i32(2**31 - 1)), i32(1)), i32(-(2**31)))
        near = b.op("add", i32(-2), b.op("sub", i, i32(-3)))
        b.add(Atomic(None, "add", out, (far,), i32(1)))
        b.add(Atomic(None, "add", out, (near,), i32(10)))

    same(kernel([out], build), [np.zeros(6, np.int32)], 5)


def test_set_of_vectors(same: Any) -> None:
    out = Var("out", ArrayType(V3, 1))

    def build(b: Builder) -> None:
        v = b.variable(V3)
        b.set(v, Const((1.0, 2.0, 3.0), V3))
        b.add(Set(v, b.op("insert", v, tid(b), f32(7))))
        b.add(Store(out, (tid(b),), v))

    same(kernel([out], build), [np.zeros((3, 3), np.float32)], 3)
