"""Result types of operations: functions that families of operations share.

Each takes the argument types and gives the result type, or None where the
operation does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.ir.ops import Infer
from engine.lang.types import (
    BOOL,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
    is_float,
    is_integer,
    scalar_of,
)

Accepts = Callable[[Type], bool]


def number(t: Type) -> bool:
    """A scalar that arithmetic takes: anything but bool."""
    return isinstance(t, ScalarType) and t.kind != "b"


def floating(t: Type) -> bool:
    return isinstance(t, ScalarType) and t.kind == "f"


def boolean(t: Type) -> bool:
    return t == BOOL


def scalar(t: Type) -> bool:
    return isinstance(t, ScalarType)


def integer(t: Type) -> bool:
    return is_integer(t)


def vector(t: Type) -> bool:
    """A vector of numbers that is neither a quaternion nor a transform."""
    return isinstance(t, VectorType) and not t.tag and t.scalar.kind != "b"


def quaternion(t: Type) -> bool:
    return isinstance(t, VectorType) and t.tag == "quat"


def transform(t: Type) -> bool:
    return isinstance(t, VectorType) and t.tag == "transform"


def tagged(t: Type) -> bool:
    """A quaternion or a transform."""
    return isinstance(t, VectorType) and bool(t.tag)


def vector_or_quaternion(t: Type) -> bool:
    return vector(t) or quaternion(t)


def matrix(t: Type) -> bool:
    """A matrix of numbers."""
    return isinstance(t, MatrixType) and t.scalar.kind != "b"


def tensor(t: Type) -> bool:
    return vector(t) or matrix(t)


def any_number(t: Type) -> bool:
    return number(t) or tensor(t)


def additive(t: Type) -> bool:
    """What can be added and subtracted: numbers, and everything that is made of numbers."""
    return any_number(t) or tagged(t)


def float_vector(t: Type) -> bool:
    return vector(t) and is_float(t)


def float_vector_or_quaternion(t: Type) -> bool:
    return float_vector(t) or quaternion(t)


def float_tensor(t: Type) -> bool:
    return tensor(t) and is_float(t)


def floats(t: Type) -> bool:
    """A float, or anything made of floats."""
    return floating(t) or float_tensor(t) or tagged(t)


def vector3(t: Type) -> bool:
    return isinstance(t, VectorType) and t.length == 3 and vector(t)


def square(t: Type) -> bool:
    return isinstance(t, MatrixType) and matrix(t) and t.rows == t.cols


def small_square(t: Type) -> bool:
    """A square matrix of floats with 2 to 4 rows."""
    return isinstance(t, MatrixType) and square(t) and is_float(t) and 2 <= t.rows <= 4


def same(count: int, accepts: Accepts, result: Type | None = None) -> Infer:
    """`count` arguments of one type; the result has that type too, or the one given."""

    def infer(types: Sequence[Type]) -> Type | None:
        if len(types) != count or not accepts(types[0]) or any(t != types[0] for t in types):
            return None
        return types[0] if result is None else result

    return infer


def to_scalar(count: int, accepts: Accepts) -> Infer:
    """`count` vectors or matrices of one type, giving their scalar."""

    def infer(types: Sequence[Type]) -> Type | None:
        if len(types) != count or not accepts(types[0]) or any(t != types[0] for t in types):
            return None
        return scalar_of(types[0])

    return infer


def scaled(types: Sequence[Type]) -> Type | None:
    """Anything made of numbers, and a number of its own scalar type."""
    if len(types) != 2 or not (tensor(types[0]) or tagged(types[0])):
        return None
    return types[0] if types[1] == scalar_of(types[0]) else None


def explicit(_: Sequence[Type]) -> None:
    """For operations that take their result type from the destination."""
    return
