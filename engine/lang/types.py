"""Types of the kernel language, as values: frozen, hashable, printable.

These describe storage and meaning only. The classes a user writes (`vec3`,
`float64`) live in `engine.lang.values` and point here with `__ir_type__`.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, LaunchError

Kind = Literal["b", "i", "u", "f"]
# What the components of a vector mean: nothing in particular, a rotation, or a rigid motion.
Tag = Literal["", "quat", "transform"]


@cache
def _bfloat16() -> np.dtype[Any]:
    """NumPy's dtype of bfloat16, which a package brings."""
    try:
        found = importlib.import_module("ml_dtypes")
    except ImportError:
        raise LaunchError(
            Diagnostic(
                "E112",
                "arrays and computations of bfloat16 need the package ml_dtypes",
                help="pip install ml_dtypes, or use `float16` or `float32`",
            )
        ) from None
    out: np.dtype[Any] = np.dtype(found.bfloat16)
    return out


_DTYPES: dict[str, np.dtype[Any]] = {}


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One number. `kind` is b (bool), i (signed), u (unsigned) or f (float)."""

    name: str
    kind: Kind
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """Bytes of one value."""
        return self.bits // 8

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype. Raises LaunchError (E112) for bfloat16 without ml_dtypes."""
        found = _DTYPES.get(self.name)
        if found is None:
            if self.name == "bfloat16":
                return _bfloat16()
            found = _DTYPES[self.name] = np.dtype(self.name)
        return found


@dataclass(frozen=True, slots=True)
class VectorType:
    """A fixed-length column of scalars, stored contiguously.

    tag: "quat" for quaternions (x, y, z, w), "transform" for rigid motions (translation x,
    y, z, then a quaternion). These have operations of their own; their memory is that of
    the plain vector.
    """

    scalar: ScalarType
    length: int
    tag: Tag = ""

    def __str__(self) -> str:
        if self.tag:
            return f"{self.tag}<{self.scalar}>"
        return f"vec<{self.length},{self.scalar}>"

    @property
    def size(self) -> int:
        return self.scalar.size * self.length


@dataclass(frozen=True, slots=True)
class MatrixType:
    """A fixed-shape matrix of scalars, stored row by row."""

    scalar: ScalarType
    rows: int
    cols: int

    def __str__(self) -> str:
        return f"mat<{self.rows},{self.cols},{self.scalar}>"

    @property
    def size(self) -> int:
        return self.scalar.size * self.rows * self.cols


ValueType = ScalarType | VectorType | MatrixType


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A strided view of elements in memory, 1 to 4 dimensions."""

    element: ValueType
    ndim: int

    def __str__(self) -> str:
        return f"array<{self.element},{self.ndim}>"


Type = ScalarType | VectorType | MatrixType | ArrayType

BOOL = ScalarType("bool", "b", 8)
INT8 = ScalarType("int8", "i", 8)
INT16 = ScalarType("int16", "i", 16)
INT32 = ScalarType("int32", "i", 32)
INT64 = ScalarType("int64", "i", 64)
UINT8 = ScalarType("uint8", "u", 8)
UINT16 = ScalarType("uint16", "u", 16)
UINT32 = ScalarType("uint32", "u", 32)
UINT64 = ScalarType("uint64", "u", 64)
FLOAT16 = ScalarType("float16", "f", 16)
BFLOAT16 = ScalarType("bfloat16", "f", 16)
FLOAT32 = ScalarType("float32", "f", 32)
FLOAT64 = ScalarType("float64", "f", 64)

SCALARS: dict[str, ScalarType] = {
    t.name: t
    for t in (
        BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT16, FLOAT32,
        FLOAT64,
    )
}  # fmt: skip


# By name, as NumPy dtypes are called, too.
BY_NAME = {**SCALARS, BFLOAT16.name: BFLOAT16}


def quat_type(scalar: ScalarType) -> VectorType:
    """The quaternions over a scalar."""
    return VectorType(scalar, 4, "quat")


def transform_type(scalar: ScalarType) -> VectorType:
    """The rigid motions over a scalar."""
    return VectorType(scalar, 7, "transform")


def untagged(t: VectorType) -> VectorType:
    """The plain vector with the same components."""
    return VectorType(t.scalar, t.length) if t.tag else t


def scalar_of(t: Type) -> ScalarType:
    """The scalar that a type is built from."""
    if isinstance(t, ScalarType):
        return t
    if isinstance(t, ArrayType):
        return scalar_of(t.element)
    return t.scalar


def shape_of(t: ValueType) -> tuple[int, ...]:
    """Shape of one value as a NumPy array: () for scalars."""
    if isinstance(t, VectorType):
        return (t.length,)
    if isinstance(t, MatrixType):
        return (t.rows, t.cols)
    return ()


def with_scalar(t: ValueType, scalar: ScalarType) -> ValueType:
    """The same shape over another scalar."""
    return scalar if isinstance(t, ScalarType) else replace(t, scalar=scalar)


def is_float(t: Type) -> bool:
    """True where values of this type can carry a derivative."""
    return scalar_of(t).kind == "f"


def is_integer(t: Type) -> bool:
    return isinstance(t, ScalarType) and t.kind in "iu"
