"""Makes kernels by hand, and short names for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.ir.builder import Builder, Names
from engine.ir.nodes import Const, Function, Var
from engine.lang.types import FLOAT32, INT32, ArrayType, MatrixType, Type, VectorType

V3 = VectorType(FLOAT32, 3)
M23 = MatrixType(FLOAT32, 2, 3)
F1, F2, I1 = ArrayType(FLOAT32, 1), ArrayType(FLOAT32, 2), ArrayType(INT32, 1)


def i32(value: int) -> Const:
    return Const(value, INT32)


def f32(value: float) -> Const:
    return Const(float(value), FLOAT32)


def tid(b: Builder, dim: int = 0, arity: int = 1) -> Var:
    return b.op("tid", i32(dim), i32(arity), base="i")


def kernel(params: Sequence[Var], build: Callable[[Builder], None]) -> Function:
    b = Builder(Names([p.name for p in params]))
    build(b)
    return Function("test_kernel", tuple(params), (), b.block(), True)


def copy_with_strides(a: Any) -> Any:
    """A copy of an array that lies in memory just like it."""
    if not isinstance(a, np.ndarray) or a.base is None:
        return a.copy() if isinstance(a, np.ndarray) else a
    base = a.base.copy()
    start = a.ctypes.data - a.base.ctypes.data
    return np.ndarray(a.shape, a.dtype, base, start, a.strides)


def function(
    name: str, params: Sequence[Var], results: Sequence[Type], build: Callable[[Builder], None]
) -> Function:
    b = Builder(Names([p.name for p in params]))
    build(b)
    return Function(name, tuple(params), tuple(results), b.block())  # type: ignore[arg-type]
