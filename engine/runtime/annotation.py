"""Array annotations in signatures: `array(dtype=float)` and `array[float]`."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin

import numpy as np

from engine.lang.generics import is_open
from engine.lang.stand_ins import StandIn
from engine.lang.structs import (
    ElementType,
    IndexedArrayType,
    StructArrayType,
    StructType,
    array_of,
    has_float,
    record_dtype,
)
from engine.lang.types import (
    ArrayType,
    MatrixType,
    ScalarType,
    ValueType,
    VectorType,
    scalar_of,
    shape_of,
)
from engine.lang.values import to_element_type, value_class
from engine.runtime.launch_errors import fail

MAX_DIMS = 4


@cache
def array_type(element: ValueType, ndim: int) -> ArrayType:
    """The one ArrayType object of an element type and a number of dimensions."""
    return ArrayType(element, ndim)


@cache
def _type_of_arrays(element: ElementType, ndim: int) -> Any:
    return array_of(element, ndim) if isinstance(element, StructType) else array_type(element, ndim)


class ElementInfo:
    """What arrays of one element type have in common, looked up fast.

    size: bytes. numpy: the component's dtype (a struct's record). inner, steps: shape and
    strides of the components. dtype: the class of values. arrays: the type of arrays by
    number of dimensions. floating: whether a gradient can flow to elements. linked: whether
    elements hold arrays. typestr: the component's type, as the array interface writes it.
    opaque: whether that says no more than how many bytes it has. zero, unit: 0 and 1 as
    NumPy has them; None until something is filled with them. one: the bytes of 1. models: arrays
    at address 0 that new ones are like, by their shapes.
    """

    __slots__ = ("arrays", "dtype", "floating", "inner", "kind", "linked", "models", "numpy", "one",
                 "opaque", "size", "steps", "typestr", "unit", "zero")  # fmt: skip

    def __init__(self, kind: ElementType) -> None:
        self.kind = kind
        self.size = kind.size
        self.floating = has_float(kind)
        self.linked = isinstance(kind, StructType) and kind.linked
        self.inner: tuple[int, ...] = ()
        if isinstance(kind, StructType):
            self.numpy = record_dtype(kind)
        else:
            self.numpy = scalar_of(kind).numpy
            self.inner = shape_of(kind)
        self.typestr = self.numpy.str
        self.opaque = self.numpy.kind == "V"
        self.steps: tuple[int, ...] = np.empty(self.inner, self.numpy).strides
        self.dtype = value_class(kind)
        self.zero: Any = None
        self.unit: Any = None
        self.one: bytes | None = None
        self.models: dict[tuple[int, ...], Any] = {}
        self.arrays: tuple[Any, ...] = tuple(_type_of_arrays(kind, n) for n in range(MAX_DIMS + 1))


# By identity, which is faster than hashing a type; each entry keeps its type alive.
_infos: dict[int, ElementInfo] = {}


def element_info(kind: ElementType) -> ElementInfo:
    """The facts about an element type."""
    found = _infos.get(id(kind))
    if found is None:
        found = _infos[id(kind)] = ElementInfo(kind)
    return found


def dimensions(ndim: Any) -> Any:
    """A number of dimensions, which may be written as `Literal[2]`."""
    told = get_args(ndim) if get_origin(ndim) is Literal else ()
    return told[0] if len(told) == 1 else ndim


class ArrayAnnotation:
    """The type of an array parameter: an element type and a number of dimensions.

    It takes attributes: programs keep facts about fields there.
    """

    def __init__(self, dtype: object, ndim: int = 1) -> None:
        ndim = dimensions(ndim)
        if not isinstance(ndim, int) or not 1 <= ndim <= MAX_DIMS:
            raise fail("E206", f"an array has 1 to {MAX_DIMS} dimensions, got ndim={ndim!r}")
        self.ndim = ndim
        self.dtype: Any = dtype
        self.__ir_type__: ArrayType | StructArrayType | None = None
        if not (is_open(dtype) or isinstance(dtype, StandIn)):  # else the call decides
            element = to_element_type(dtype)
            self.__ir_type__ = _type_of_arrays(element, ndim)
            self.dtype = value_class(element)

    def __repr__(self) -> str:
        name = getattr(self.dtype, "__name__", str(self.dtype))
        return f"array(dtype={name}, ndim={self.ndim})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, ArrayAnnotation) and self.dtype is other.dtype
        return same and self.ndim == other.ndim  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.dtype, self.ndim))

    # Lets `array(dtype=float) | None` and the like be written in signatures.
    def __or__(self, other: object) -> Any:
        return self

    __ror__ = __or__


class fixedarray(ArrayAnnotation):
    """The type of an array of fixed size that a function makes: `fixedarray((2, 3), float)`.

    Functions take and return such arrays as any others. Raises LaunchError (E206) for a shape
    that is no positive number and no 1 to 4 of them.
    """

    def __init__(self, shape: int | tuple[int, ...], dtype: object = float) -> None:
        self.shape = shape if isinstance(shape, tuple) else (shape,)
        if not all(isinstance(n, int) and n > 0 for n in self.shape):
            raise fail("E206", f"the shape of a fixed array is positive, got {shape!r}")
        super().__init__(dtype, len(self.shape))

    def __repr__(self) -> str:
        name = getattr(self.dtype, "__name__", str(self.dtype))
        return f"fixedarray(shape={self.shape}, dtype={name})"


def describe(kind: object) -> str:
    """A type as its user writes it: `float32`, `vec3f`, `array(dtype=float32, ndim=2)`."""
    if isinstance(kind, (ArrayType, StructArrayType)):
        return f"array(dtype={value_class(kind.element).__name__}, ndim={kind.ndim})"
    if isinstance(kind, IndexedArrayType):
        return f"indexedarray(dtype={value_class(kind.element).__name__}, ndim={kind.ndim})"
    if isinstance(kind, (ScalarType, VectorType, MatrixType, StructType)):
        return value_class(kind).__name__
    return str(kind)
