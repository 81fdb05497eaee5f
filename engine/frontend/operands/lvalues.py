"""Lvalues: what a subscript or attribute names before it is read or written."""

from __future__ import annotations

import ast
from itertools import product

from engine.classes import dataclass
from engine.frontend.operands.operand import Choice, Operand, View, literal
from engine.ir.nodes import Atom, Var
from engine.lang.structs import LinkType
from engine.lang.types import (
    ArrayType,
    MatrixType,
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


@dataclass(frozen=True, slots=True)
class Linked:
    """The array that a field of a struct in an array holds: a part of a pool.

    leaves: of the pool. place: the element that says where in it.
    """

    type: LinkType
    leaves: tuple[Atom, ...]
    place: Element


@dataclass(frozen=True, slots=True)
class Chosen:
    """A part of one of several arrays. steps: the subscripts and attributes that name it."""

    choice: Choice
    steps: tuple[ast.expr, ...]


LValue = Operand | Chosen | Element | Part | Region | Local | Shape | Linked


def part_type(t: ValueType, depth: int) -> ValueType:
    """The type of what `depth` indices into a value name."""
    if depth == 0:
        return t
    if isinstance(t, MatrixType) and depth == 1:
        return VectorType(t.scalar, t.cols)
    return scalar_of(t)


def component_indices(t: ValueType) -> list[tuple[Atom, ...]]:
    """Constant indices of every component, row by row."""
    if isinstance(t, VectorType):
        return [(literal(i).atom,) for i in range(t.length)]
    if isinstance(t, MatrixType):
        return [(literal(i).atom, literal(j).atom) for i in range(t.rows) for j in range(t.cols)]
    return []
