"""Captured constants, literals, casts, and the places of statements."""

# Kernels here define names that nothing reads.
# ruff: noqa: F841

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import engine as wp
from engine.ir.nodes import callees, walk
from tests.unit.frontend.ir_text import Floats, Vectors, body, check, lowered


class Mode(enum.IntEnum):
    FAST = 2


class Kind(enum.Enum):
    SOFT = 0.5


class Settings:
    STEPS = 3


SHAPE = (4, 5)
GRAVITY = wp.constant(wp.vec3(0.0, -9.8, 0.0))
EXACT = wp.float64(0.1)


def test_captured_constants() -> None:
    local = np.float32(1.5)
    count = np.int64(7)
    debug = False

    @wp.kernel
    def k(a: Floats, d: wp.array(dtype=wp.float64), c: wp.array(dtype=int), v: Vectors):
        a[0] = local
        d[0] = local
        c[0] = count + Mode.FAST * Settings.STEPS + SHAPE[1]
        a[1] = Kind.SOFT.value * math.pi
        d[1] = d[0] * EXACT
        v[0] = GRAVITY
        a[2] = GRAVITY.y
        if debug:
            a[3] = undefined_is_never_looked_at  # noqa: F821

    check(
        k,
        """
        store %a[0:int32] <- 1.5:float32
        store %d[0:int32] <- 1.5:float64
        store %c[0:int32] <- 18:int32
        store %a[1:int32] <- 1.5707963267948966:float32
        %t: float64 = load %d[0:int32]
        %t_1: float64 = mul(%t, 0.1:float64)
        store %d[1:int32] <- %t_1
        store %v[0:int32] <- (0.0, -9.8, 0.0):vec<3,float32>
        store %a[2:int32] <- -9.8:float32
        """.replace("-9.8", repr(float(np.float32(-9.8)))),
    )


def test_literals_take_the_type_they_meet() -> None:
    @wp.kernel
    def k(
        d: wp.float64, n: wp.uint8, out: wp.array(dtype=wp.float64), big: wp.array(dtype=wp.int64)
    ):
        x = 2 * 0.25 + d
        out[0] = x * (4 / 2)
        big[0] = 5_000_000_000
        y = 1.0
        y = 2
        m = n + 3
        out[1] = wp.max(d, 0)

    check(
        k,
        """
        %x: float64 = add(0.5:float64, %d)
        %t_1: float64 = mul(%x, 2.0:float64)
        store %out[0:int32] <- %t_1
        store %big[0:int32] <- 5000000000:int64
        %m: uint8 = add(%n, 3:uint8)
        %t_3: float64 = max(%d, 0.0:float64)
        store %out[1:int32] <- %t_3
        """,
    )


def test_casts_and_constructors() -> None:
    @wp.kernel
    def k(n: int, v: wp.vec3, x: float, out: Floats):
        a = float(n)
        b = int(2.7)
        c = wp.float64(x)
        d = bool(n)
        e = wp.vec3(x)
        f = wp.vec3()
        g = wp.vec3d(v)
        h = wp.mat22(1.0, 2.0, 3.0, 4.0)
        m = wp.identity(n=2, dtype=wp.float64)
        p = wp.vec2i(b, n)
        q = type(x)(n)
        r = wp.vec3(1, 2, 3)
        s = wp.uint32(-1)
        t = float(x)

    check(
        k,
        """
        %a: float32 = cast(%n)
        %c: float64 = cast(%x)
        %d: bool = ne(%n, 0:int32)
        %e: vec<3,float32> = fill(%x)
        %g: vec<3,float64> = cast(%v)
        %m: mat<2,2,float64> = identity()
        %p: vec<2,int32> = construct(2:int32, %n)
        %q: float32 = cast(%n)
        %s: uint32 = cast(-1:int32)
        """,
    )


def test_every_statement_has_its_place() -> None:
    @wp.kernel
    def k(a: Floats, n: int):
        i = wp.tid()
        for j in range(n):
            if a[j] > 0.0 and a[i] > 1.0:
                a[j] += wp.sin(a[i] * 2.0)

    fn = lowered(k)
    spans = [s.span for s in walk(fn.body)]
    assert all(s.file == __file__ and fn.span.line < s.line <= fn.span.line + 4 for s in spans)
    product = next(s for s in walk(fn.body) if getattr(s, "op", "") == "mul")
    text = Path(__file__).read_text().splitlines()[product.span.line - 1]
    assert text[product.span.col - 1 : product.span.end_col - 1] == "a[i] * 2.0"


def test_deterministic() -> None:
    @wp.kernel
    def k(a: Floats, n: int):
        for i in range(n):
            if i > 0:
                a[i] = last  # noqa: F821
            last = a[i] * 2.0

    assert str(lowered(k)) == str(lowered(k))


def test_calls_share_functions() -> None:
    @wp.func
    def inner(x: float):
        return x * x

    @wp.func
    def outer(x: float):
        return inner(x) + inner(2.0)

    @wp.kernel
    def k(a: Floats):
        a[0] = outer(a[1]) + inner(1)

    names = [f.name for f in callees(lowered(k))]
    assert names == ["inner", "outer"]


def closure(factor: float) -> Callable[..., Any]:
    @wp.kernel
    def k(a: Floats):
        a[0] = factor

    return k  # type: ignore[no-any-return]


def test_closures_are_read_when_lowered() -> None:
    assert body(closure(2.0)) == "store %a[0:int32] <- 2.0:float32"
    assert body(closure(3)) == "store %a[0:int32] <- 3.0:float32"
