"""Types that are taken apart before IR is made: structs, arrays of them, indexed arrays.

The frontend and the launch replace each by its *leaves*, values and arrays that the IR
has types for. A leaf of `s` is named by its path, `s.x` or `s.body.mass`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.lang.stand_ins import StandIn
from engine.lang.types import (
    INT32,
    UINT8,
    ArrayType,
    MatrixType,
    ScalarType,
    ValueType,
    VectorType,
    scalar_of,
    shape_of,
)
from engine.lang.types import is_float as _is_float

# Bytes of an array field in a NumPy record: address, gradient, shape, strides, dimensions.
_DESCRIPTOR = 56
# The last name of a leaf that says where in a pool arrays lie.
PLACES = "0_places"


class StructType:
    """Named fields, laid out as C does. Equality is identity: each class is a type of its own.

    fields, offsets: by name, in order; offsets in bytes. cls: the class of its values. missing:
    fields of types that are not here, which are mentioned and never read.
    linked: whether any field, of a field too, is for an array.
    """

    __slots__ = ("__weakref__", "_numpy", "align", "cls", "fields", "linked", "missing", "name",
                 "offsets", "size")  # fmt: skip

    def __init__(
        self, name: str, fields: dict[str, FieldType], missing: Mapping[str, StandIn] | None = None
    ) -> None:
        self.name = name
        self.fields = fields
        self.missing = missing or {}
        self.offsets: dict[str, int] = {}
        self.cls: Any = None
        self._numpy: np.dtype[Any] | None = None
        self.linked: bool = any(t.linked if isinstance(t, StructType) else isinstance(t, ARRAYS)
                          for t in fields.values())  # fmt: skip
        end, self.align = 0, 1
        for field, kind in fields.items():
            size, align = _extent(kind)
            end = -(-end // align) * align
            self.offsets[field] = end
            end += size
            self.align = max(self.align, align)
        self.size = max(1, -(-end // self.align)) * self.align

    def __repr__(self) -> str:
        return f"StructType({self.name})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return (_type_of, (self.cls,))


def _type_of(cls: Any) -> StructType:
    found: StructType = cls.__ir_type__
    return found


@dataclass(frozen=True, slots=True)
class StructArrayType:
    """An array of structs; to kernels one array for each leaf, with the struct's stride.

    A field for an array is two leaves or more: the elements of all these arrays one after
    the other (a *pool*, with the leaves of an array of one dimension), and their places in it:
    for each struct, where its array begins and how long each dimension is.
    """

    element: StructType
    ndim: int

    def __str__(self) -> str:
        return f"array<{self.element},{self.ndim}>"


@dataclass(frozen=True, slots=True)
class IndexedArrayType:
    """An array seen through an array of indices for each dimension."""

    element: ValueType | StructType
    ndim: int

    def __str__(self) -> str:
        return f"indexedarray<{self.element},{self.ndim}>"


@dataclass(frozen=True, slots=True)
class TupleType:
    """Values of several types, as functions take and return them."""

    items: tuple[Any, ...]

    def __str__(self) -> str:
        return f"tuple[{', '.join(str(t) for t in self.items)}]"


ElementType = ValueType | StructType
FieldType = ValueType | ArrayType | StructType | StructArrayType | IndexedArrayType
# What a user can annotate a parameter with.
UserType = FieldType | TupleType
# What a field for an array has.
LinkType = ArrayType | StructArrayType | IndexedArrayType
COMPOUND = (StructType, StructArrayType, IndexedArrayType, TupleType)
ARRAYS = (ArrayType, StructArrayType, IndexedArrayType)


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a kernel as its user wrote it, before it was taken apart."""

    name: str
    type: UserType


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part that the IR has a type for. offset: in bytes, from the struct's first one.

    pool: of what lies in a pool, the path of the field.
    """

    path: tuple[str, ...]
    type: ValueType | ArrayType
    offset: int = 0
    pool: tuple[str, ...] = ()

    def named(self, name: str) -> str:
        """What the leaf of a parameter is called."""
        return ".".join((name, *self.path))


def leaves(kind: UserType) -> tuple[Leaf, ...]:
    """The leaves of a type, in order. An indexed array's come with its indices last."""
    return tuple(_leaves(kind, (), 0))


def _leaves(kind: UserType, path: tuple[str, ...], offset: int) -> Iterator[Leaf]:
    if isinstance(kind, StructType):
        for field, t in kind.fields.items():
            yield from _leaves(t, (*path, field), offset + kind.offsets[field])
    elif isinstance(kind, StructArrayType):
        found = list(_element_leaves(kind.element, kind.ndim, path, offset))
        # Without any, nothing would say how many elements there are.
        yield from found or [Leaf((*path, "0_empty"), ArrayType(UINT8, kind.ndim), offset)]
    elif isinstance(kind, IndexedArrayType):
        yield from _leaves(array_of(kind.element, kind.ndim), path, offset)
        for d in range(kind.ndim):
            yield Leaf((*path, f"{d}_indices"), ArrayType(INT32, 1))
    elif isinstance(kind, TupleType):
        for k, t in enumerate(kind.items):
            yield from _leaves(t, (*path, str(k)), offset)
    else:
        yield Leaf(path, kind, offset)


def _element_leaves(
    element: StructType, ndim: int, path: tuple[str, ...], offset: int
) -> Iterator[Leaf]:
    """The leaves of an array of structs."""
    for field, t in element.fields.items():
        here, at = (*path, field), offset + element.offsets[field]
        if isinstance(t, StructType):
            yield from _element_leaves(t, ndim, here, at)
        elif isinstance(t, ARRAYS):  # an indexed one comes as the elements that it shows
            for leaf in _leaves(array_of(t.element, 1), here, 0):
                yield leaf if leaf.pool else replace(leaf, pool=here)
            yield Leaf((*here, PLACES), ArrayType(places(t), ndim), at)
        else:
            yield Leaf(here, ArrayType(t, ndim), at)


def own_leaf(element: ElementType) -> int:
    """Which of the leaves of an array of elements has its shape: not a pool."""
    for k, leaf in enumerate(leaves(array_of(element, 4))):
        if isinstance(leaf.type, ArrayType) and leaf.type.ndim == 4:
            return k
    raise AssertionError(element)


def places(t: LinkType) -> VectorType:
    """What says where in a pool an array lies: its first element, and its dimensions."""
    return VectorType(INT32, 1 + t.ndim)


def array_of(element: ElementType, ndim: int) -> ArrayType | StructArrayType:
    """The type of an array of elements."""
    if isinstance(element, StructType):
        return StructArrayType(element, ndim)
    return ArrayType(element, ndim)


def value_leaves(kind: ElementType) -> tuple[Leaf, ...]:
    """The leaves of an element that are values: those that are in the memory of an array."""
    if isinstance(kind, StructType) and kind.linked:
        return tuple(_value_leaves(kind, (), 0))
    return leaves(kind)


def _value_leaves(kind: StructType, path: tuple[str, ...], offset: int) -> Iterator[Leaf]:
    for field, t in kind.fields.items():
        here, at = (*path, field), offset + kind.offsets[field]
        if isinstance(t, StructType):
            yield from _value_leaves(t, here, at)
        elif not isinstance(t, ARRAYS):
            yield Leaf(here, t, at)


def record_dtype(kind: StructType) -> np.dtype[Any]:
    """The NumPy dtype of a struct: fields at their offsets, arrays as descriptors."""
    if kind._numpy is None:
        kind._numpy = np.dtype(
            {
                "names": list(kind.fields),
                "formats": [_format(t) for t in kind.fields.values()],
                "offsets": list(kind.offsets.values()),
                "itemsize": kind.size,
            }
        )
    return kind._numpy


def _format(kind: FieldType) -> Any:
    if isinstance(kind, StructType):
        return record_dtype(kind)
    if isinstance(kind, (ScalarType, VectorType, MatrixType)):
        return (scalar_of(kind).numpy, shape_of(kind))
    return descriptor_dtype()


def descriptor_dtype() -> np.dtype[Any]:
    """How a record holds an array: its address and that of its gradient, its layout."""
    names = ["data", "grad", "shape", "strides", "ndim"]
    formats = ["u8", "u8", "4i4", "4i4", "i4"]
    offsets = [0, 8, 16, 32, 48]
    return np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": _DESCRIPTOR}
    )


def has_float(kind: ElementType) -> bool:
    """True where values of a type, or parts of them, can carry a derivative."""
    if isinstance(kind, StructType):
        return any(_is_float(leaf.type) for leaf in value_leaves(kind))
    return _is_float(kind)


def _extent(kind: FieldType) -> tuple[int, int]:
    """Size and alignment of a field."""
    if isinstance(kind, StructType):
        return kind.size, kind.align
    if isinstance(kind, ScalarType):
        return kind.size, kind.size
    if isinstance(kind, (VectorType, MatrixType)):
        return kind.size, kind.scalar.size
    return _DESCRIPTOR, 8
