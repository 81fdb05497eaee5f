"""Arguments as variables of a Jacobian: the scalars of each, in order.

A variable's scalars are counted as a reader of the array would: element by element,
components of an element side by side. An array of structs has the float fields of each
element side by side; a struct that holds arrays has these one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.variables.element_names import element_name
from engine.classes import dataclass
from engine.lang.structs import (
    COMPOUND,
    ElementType,
    IndexedArrayType,
    StructArrayType,
    StructType,
    UserType,
    array_of,
    leaves,
)
from engine.lang.types import ArrayType, ValueType, is_float, shape_of

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Part:
    """One float array of a variable, of `count` elements with `width` scalars each.

    leaf: which of the argument's leaves. The array's scalar number f is the variable's
    offset + (f // width) * stride + f % width. shape: of the array's scalars, components
    last. path: the leaf's name within the argument, as `.mass`.
    """

    leaf: int
    count: int
    width: int
    offset: int
    stride: int
    shape: tuple[int, ...] = ()
    path: str = ""

    @property
    def size(self) -> int:
        """Scalars of the array."""
        return self.count * self.width

    @property
    def plain(self) -> bool:
        """Whether the scalars lie side by side in the variable."""
        return self.stride == self.width

    def places(self) -> Index | slice:
        """Where the array's scalars are in the variable, in their order."""
        return slice(self.offset, self.offset + self.size) if self.plain else self.index()

    def index(self) -> Index:
        """The same as numbers."""
        starts = np.arange(self.count, dtype=np.intp) * self.stride + self.offset
        return (starts[:, None] + np.arange(self.width, dtype=np.intp)).reshape(-1)


@dataclass(frozen=True)
class Variable:
    """An argument (or a result) in as far as it can carry a derivative.

    index: its position among the inputs or the outputs. label: its name. parts: its
    float arrays. element: the type of its elements where it is a plain array, else None.
    """

    index: int
    label: str
    parts: tuple[Part, ...]
    element: ValueType | None

    @property
    def size(self) -> int:
        """Scalars in all."""
        return sum(p.size for p in self.parts)

    def place(self, scalar: int) -> str:
        """The scalar of that number, as `u[2, 3]` or `body.mass[4]`."""
        for p in self.parts:
            count, within = divmod(scalar - p.offset, p.stride)
            if 0 <= within < p.width and 0 <= count < p.count:
                return element_name(self.label + p.path, count * p.width + within, p.shape)
        return f"{self.label}[{scalar}]"

    @property
    def width(self) -> int:
        """Scalars of one element; 1 where elements differ."""
        widths = {p.stride for p in self.parts}
        return widths.pop() if len(widths) == 1 else 1


def variable(index: int, label: str, kind: UserType, values: Sequence[Any]) -> Variable | None:
    """The variable that an argument is; None where it has no gradient.

    values: the argument's leaves; arrays without requires_grad are no part of it.
    """
    parts: list[Part] = []
    paths = [leaf.named("") for leaf in leaves(kind)]
    offset = 0
    for group in _groups(kind, 0):
        found = [
            (leaf, t, values[leaf])
            for leaf, t in group
            if values[leaf] is not None and values[leaf].requires_grad and is_float(t)
        ]
        widths = [_width(t.element) for _, t, _ in found]
        stride = sum(widths)
        at = offset
        for (leaf, t, value), width in zip(found, widths, strict=True):
            shape = (*value.shape, *shape_of(t.element))
            parts.append(Part(leaf, value.size, width, at, stride, shape, paths[leaf]))
            at += width
            offset += value.size * width
    if not parts:
        return None
    element = kind.element if isinstance(kind, ArrayType) else None
    return Variable(index, label, tuple(parts), element)


def _width(t: ValueType) -> int:
    return int(np.prod(shape_of(t), dtype=np.int64))


def element_width(kind: UserType) -> int:
    """How many float scalars an element of an array has; 1 for what has no one element."""
    if isinstance(kind, (ArrayType, StructArrayType)):
        parts = [leaf.type for leaf in leaves(kind) if is_float(leaf.type)]
        return sum(_width(t.element) for t in parts if isinstance(t, ArrayType)) or 1
    return 1


def _groups(kind: UserType, first: int) -> Iterator[list[tuple[int, ArrayType]]]:
    """The array leaves of a type; those of one array of structs together."""
    if isinstance(kind, ArrayType):
        yield [(first, kind)]
    elif isinstance(kind, StructArrayType):
        groups: dict[tuple[str, ...], list[tuple[int, ArrayType]]] = {}
        for k, leaf in enumerate(leaves(kind)):
            if isinstance(leaf.type, ArrayType):
                groups.setdefault(leaf.pool, []).append((first + k, leaf.type))
        yield from groups.values()
    elif isinstance(kind, IndexedArrayType):
        yield from _groups(_behind(kind.element, kind.ndim), first)
    elif isinstance(kind, StructType):
        for field in kind.fields.values():
            yield from _groups(field, first)
            first += len(leaves(field))
    elif isinstance(kind, COMPOUND):
        raise TypeError(f"nothing says where the arrays of {kind} are")


def _behind(element: ElementType, ndim: int) -> UserType:
    return array_of(element, ndim)
