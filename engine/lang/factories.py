"""Types made from a length or shape and a scalar, and questions about types."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from engine.lang import types as t
from engine.lang.generics import ANY_SCALAR, Form, Marker, is_open
from engine.lang.structs import ARRAYS, FieldType
from engine.lang.values import to_ir_type, to_value_type, value_class
from engine.lang.vectors import Components, vector_class, wrong

MAX_COMPONENTS = 4096  # a value is a local variable of a thread


def _scalar(dtype: object, what: str) -> t.ScalarType:
    found = to_value_type(dtype)
    if not isinstance(found, t.ScalarType):
        raise wrong(
            "E202", f"components of a {what} are scalars, got {value_class(found).__name__}"
        )
    return found


def _size(n: object, what: str, least: int = 1) -> int:
    try:
        size = operator.index(n)  # type: ignore[arg-type]
    except TypeError:
        size = -1
    if isinstance(n, builtins.bool) or not least <= size <= MAX_COMPONENTS:
        raise wrong(
            "E202", f"the {what} is a whole number from {least} to {MAX_COMPONENTS}, got {n!r}"
        )
    return size


def vector(length: Any, dtype: Any) -> Any:
    """The class of vectors of a length over a scalar type; the same one every time.

    In annotations, `Any` is any length or scalar, and `Scalar`, `Float`, `Int` are some.
    Raises LaunchError (E202) for anything else.
    """
    if length is Any or is_open(dtype):
        return Form("vector", (_open_size(length, "length"),), _open(dtype, "vector"))
    return vector_class(t.VectorType(_scalar(dtype, "vector"), _size(length, "length", 0)))


def matrix(shape: Any, dtype: Any) -> Any:
    """The class of matrices of a shape (rows, columns); the same one every time.

    In annotations, `Any` is any size or scalar, and `Scalar`, `Float`, `Int` are some.
    Raises LaunchError (E202) for anything else.
    """
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise wrong("E202", f"the shape of a matrix is (rows, columns), got {shape!r}")
    if Any in shape or is_open(dtype):
        sizes = tuple(_open_size(n, "number of rows and of columns") for n in shape)
        return Form("matrix", sizes, _open(dtype, "matrix"))
    scalar = _scalar(dtype, "matrix")
    rows, cols = (_size(n, "number of rows and of columns") for n in shape)
    _size(rows * cols, "number of components")
    return vector_class(t.MatrixType(scalar, rows, cols))


def _open_size(n: object, what: str) -> int | None:
    return None if n is Any else _size(n, what)


def _open(dtype: object, what: str) -> t.ScalarType | Marker:
    """The scalar of a type that is said in part."""
    if dtype is Any:
        return ANY_SCALAR
    return dtype if isinstance(dtype, Marker) else _scalar(dtype, what)


def _float(dtype: object, what: str) -> t.ScalarType:
    scalar = _scalar(dtype, what)
    if scalar.kind != "f":
        raise wrong("E202", f"components of a {what} are floats, got {scalar}")
    return scalar


def quaternion(dtype: Any) -> Any:
    """The class of quaternions over a float type. Raises LaunchError (E202) for other types.

    In annotations, `Any` and `Float` are any of them.
    """
    if is_open(dtype):
        return Form("quaternion", (4,), _open(dtype, "quaternion"))
    return vector_class(t.quat_type(_float(dtype, "quaternion")))


def transformation(dtype: Any) -> Any:
    """The class of transforms over a float type. Raises LaunchError (E202) for other types.

    In annotations, `Any` and `Float` are any of them.
    """
    if is_open(dtype):
        return Form("transformation", (7,), _open(dtype, "transform"))
    return vector_class(t.transform_type(_float(dtype, "transform")))


# ---- questions


def kind_of(obj: object) -> FieldType | None:
    """The type that a class or annotation names; None where it names none."""
    try:
        return to_ir_type(obj)
    except Exception:
        return None


def types_equal(a: Any, b: Any) -> builtins.bool:
    """Whether two classes or annotations name one type: `float` and `float32` do."""
    first = kind_of(a)
    return a is b if first is None else first == kind_of(b)


def type_size(dtype: Any) -> int:
    """How many scalars a value has."""
    kind = to_value_type(dtype)
    return kind.size // t.scalar_of(kind).size


def type_size_in_bytes(dtype: Any) -> int:
    """How many bytes a value takes in an array."""
    return to_value_type(dtype).size


def type_repr(obj: Any) -> str:
    """The name of a type, as it is written: `vec3f`, `array(ndim=1, dtype=float32)`."""
    kind = kind_of(obj)
    if kind is None or obj in (float, int, builtins.bool):
        return getattr(obj, "__name__", None) or repr(obj)
    if isinstance(kind, ARRAYS):
        return f"array(ndim={kind.ndim}, dtype={value_class(kind.element).__name__})"
    return value_class(kind).__name__


def type_is_int(obj: Any) -> builtins.bool:
    kind = kind_of(obj)
    return isinstance(kind, t.ScalarType) and kind.kind in "iu"


def type_is_float(obj: Any) -> builtins.bool:
    kind = kind_of(obj)
    return isinstance(kind, t.ScalarType) and kind.kind == "f"


def type_is_scalar(obj: Any) -> builtins.bool:
    """True for integers and floats; bool is neither."""
    return type_is_int(obj) or type_is_float(obj)


def type_is_vector(obj: Any) -> builtins.bool:
    """True for vectors, quaternions and transforms excepted."""
    kind = kind_of(obj)
    return isinstance(kind, t.VectorType) and not kind.tag


def type_is_matrix(obj: Any) -> builtins.bool:
    return isinstance(kind_of(obj), t.MatrixType)


def type_is_quaternion(obj: Any) -> builtins.bool:
    kind = kind_of(obj)
    return isinstance(kind, t.VectorType) and kind.tag == "quat"


def type_is_transformation(obj: Any) -> builtins.bool:
    kind = kind_of(obj)
    return isinstance(kind, t.VectorType) and kind.tag == "transform"


def type_is_composite(obj: Any) -> builtins.bool:
    """True for everything that is made of several scalars."""
    return isinstance(kind_of(obj), (t.VectorType, t.MatrixType))


def type_is_value(obj: Any) -> builtins.bool:
    """True for scalars and for what is made of them."""
    kind = kind_of(obj)
    return kind is not None and not isinstance(kind, t.ArrayType)


def is_int(x: Any) -> builtins.bool:
    return type_is_int(type(x))


def is_float(x: Any) -> builtins.bool:
    return type_is_float(type(x))


def is_scalar(x: Any) -> builtins.bool:
    return type_is_scalar(type(x))


def is_vector(x: Any) -> builtins.bool:
    return isinstance(x, Components) and type_is_vector(type(x))


def is_matrix(x: Any) -> builtins.bool:
    return isinstance(x, Components) and type_is_matrix(type(x))


def is_quaternion(x: Any) -> builtins.bool:
    return isinstance(x, Components) and type_is_quaternion(type(x))


def is_transformation(x: Any) -> builtins.bool:
    return isinstance(x, Components) and type_is_transformation(type(x))


def is_composite(x: Any) -> builtins.bool:
    return isinstance(x, Components)


def is_value(x: Any) -> builtins.bool:
    return type_is_value(type(x))
