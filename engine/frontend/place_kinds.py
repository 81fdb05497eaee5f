"""Places that can be read and written: array elements, parts of values, shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from engine.frontend.context import Context
from engine.frontend.operands import Operand, View, literal
from engine.ir.nodes import Atom, Const, Var
from engine.lang.types import (
    INT32,
    ArrayType,
    MatrixType,
    ScalarType,
    Tag,
    ValueType,
    VectorType,
    scalar_of,
)


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array, or the part of it that `path` names."""

    array: Var
    index: tuple[Atom, ...]
    path: tuple[Atom, ...] = ()

    @property
    def element(self) -> ValueType:
        assert isinstance(self.array.type, ArrayType)
        return self.array.type.element

    @property
    def type(self) -> ValueType:
        return part_type(self.element, len(self.path))

    @property
    def is_row(self) -> bool:
        """True for a row of a matrix, which memory operations cannot name."""
        return isinstance(self.element, MatrixType) and len(self.path) == 1


@dataclass(frozen=True, slots=True)
class Part:
    """A component or row of a vector or matrix that is not in memory."""

    base: Atom
    index: tuple[Atom, ...]

    @property
    def type(self) -> ValueType:
        assert not isinstance(self.base.type, ArrayType)
        return part_type(self.base.type, len(self.index))


@dataclass(frozen=True, slots=True)
class Run:
    """`count` components from `start` on, `step` apart."""

    start: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Region:
    """Components of an element or of a value: one index or run for each axis.

    base: the whole element (no path), or the atom of the whole vector or matrix.
    """

    base: Element | Atom
    axes: tuple[Atom | Run, ...]
    tag: Tag = ""

    @property
    def whole(self) -> VectorType | MatrixType:
        t = self.base.element if isinstance(self.base, Element) else self.base.type
        assert isinstance(t, (VectorType, MatrixType))
        return t

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(a for a in self.axes if isinstance(a, Run))

    @property
    def type(self) -> ValueType:
        counts = [r.count for r in self.runs]
        if len(counts) == 2:
            return MatrixType(self.whole.scalar, counts[0], counts[1])
        return VectorType(self.whole.scalar, counts[0], self.tag)

    def paths(self) -> list[tuple[Atom, ...]]:
        """The index of every component, in order."""
        steps = [
            [literal(a.start + a.step * k).atom for k in range(a.count)]
            if isinstance(a, Run)
            else [a]
            for a in self.axes
        ]
        return list(product(*steps))


@dataclass(frozen=True, slots=True)
class Local:
    """An element of a local array, or a part of one: components of a vector from `at` on."""

    base: Atom
    at: Atom
    type: ValueType


@dataclass(frozen=True, slots=True)
class Shape:
    """`a.shape`, of which usually one number is wanted."""

    view: View


Place = Operand | Element | Part | Region | Local | Shape


def part_type(t: ValueType, depth: int) -> ValueType:
    """The type of what `depth` indices into a value name."""
    if depth == 0:
        return t
    if isinstance(t, MatrixType) and depth == 1:
        return VectorType(t.scalar, t.cols)
    return scalar_of(t)


def dimension(cx: Context, array: Var, dim: int) -> Var:
    return cx.b.op("shape", array, Const(dim, INT32))


def wrapped_index(cx: Context, index: Atom, length: Callable[[], Atom]) -> Atom:
    """The integer as an index into `length()` places: a negative one counts from the end."""
    low = cx.b.low(index)
    if low is not None and low >= 0:
        return index
    size = length()
    if isinstance(index, Const) and isinstance(index.value, int):
        if isinstance(size, Const) and isinstance(size.value, int):
            return Const(size.value + index.value, INT32)
        return cx.b.op("add", size, Const(index.value, INT32))
    index = _widened(cx, index)
    if index.type != INT32:
        size = cx.b.op("cast", size, result=index.type)
    return cx.b.op("wrap_index", index, size)


def component_index(cx: Context, size: int, index: Atom) -> Atom:
    """The integer as the index of a component: a negative one counts from the end."""
    low = cx.b.low(index)
    if low is not None and low >= 0:
        return index
    index = _widened(cx, index)
    assert isinstance(index.type, ScalarType)
    return cx.b.op("wrap_index", index, Const(size, index.type))


def _widened(cx: Context, index: Atom) -> Atom:
    """Sizes need not fit into the narrow types that indices may have."""
    t = index.type
    narrow = isinstance(t, ScalarType) and t.bits < INT32.bits
    return cx.b.op("cast", index, result=INT32) if narrow else index
