"""Operands during lowering: a value, several values, or a Python object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.ir.builder import Builder, const
from engine.ir.nodes import Atom, Const
from engine.lang.scalars import SCALAR_CLASSES
from engine.lang.structs import ElementType, StructType, UserType
from engine.lang.types import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UINT64,
    ArrayType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
)


@dataclass(frozen=True, slots=True)
class LiteralTable:
    """The literals among which one is chosen at run time: a number of any type, exactly.

    axes: what chooses, and among how many places: an integer from 0 on, or a bool, whose first
    place is that of true. items: the literals (of one type), the last axis the fastest; none
    where there are too many, of a value that has its own type for good. exact: the value in its
    own type is the literal itself, however it was computed.
    """

    axes: tuple[tuple[Atom, int], ...]
    items: tuple[Value, ...]
    exact: bool = False

    @property
    def type(self) -> Type:
        return self.items[0].type

    @property
    def constants(self) -> tuple[Const, ...]:
        return tuple(v.atom for v in self.items if isinstance(v.atom, Const))


@dataclass(frozen=True, slots=True)
class Value:
    """A value at run time. `weak`: a literal that takes the type it meets.

    A literal is a scalar Const, or chosen at run time among such: then it has a table.
    table: it says what the value is in other types, also where a name has fixed its own, or
    that this is not known.
    truncated: an integer literal that comes from a quotient of integers with a rest, such as
    `1/2`, which is 0. It takes any type of integers, but none of floats: Python means 0.5.
    member: the enumeration's member that the number comes from, which has a `value`.
    """

    atom: Atom
    weak: bool = False
    truncated: bool = False
    member: object = field(default=None, compare=False)
    table: LiteralTable | None = field(default=None, compare=False)

    @property
    def type(self) -> Type:
        return self.atom.type


# Of floats that are one of more literals than a table holds.
UNKNOWN_LITERALS = LiteralTable((), ())


@dataclass(frozen=True, slots=True)
class Several:
    """The results of a call with more than one, or a tuple."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A Python object known while compiling: a module, function, type or enumeration.

    value: of a type made in the kernel, its zero. `types.vector(length=3, dtype=float)` is
    either, as what is done with it tells.
    """

    obj: object
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """What views are views of: arrays of one shape, one for each leaf of an element.

    leaves: array parameters, or vectors with all the components of a local array, which
    has a fixed `shape`. tables: the index arrays of an indexed array, one a dimension.
    place: of an array in a pool (see `StructArrayType`), whose leaves have one dimension: its
    first element there, and its dimensions.
    """

    element: ElementType
    ndim: int
    leaves: tuple[Atom, ...]
    tables: tuple[Atom, ...] = ()
    shape: tuple[int, ...] = ()
    place: tuple[Atom, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """`count` places from `start`, `step` apart; none of the three is negative but step."""

    start: Atom
    step: Atom
    count: Atom


# What a view shows of one dimension: one place, some, or (None) all.
Dim = Atom | Span | None


@dataclass(frozen=True, slots=True)
class View:
    """A part of an array, with its memory. `dims` has an entry for each dimension of the root."""

    root: Root
    dims: tuple[Dim, ...]

    @property
    def shown(self) -> tuple[int, ...]:
        """The root's dimensions that the view has too."""
        return tuple(d for d, k in enumerate(self.dims) if k is None or isinstance(k, Span))

    @property
    def ndim(self) -> int:
        return len(self.shown)

    @property
    def is_local(self) -> bool:
        """True for an array that lives in variables."""
        return bool(self.root.shape)

    @property
    def is_whole(self) -> bool:
        return all(k is None for k in self.dims)


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct, field by field. Read from memory, fields are values; not yet, places."""

    type: StructType
    items: tuple[Any, ...]

    def item(self, field: str) -> Any:
        """The operand or place of a field."""
        return self.items[list(self.type.fields).index(field)]


@dataclass(frozen=True, slots=True)
class Absent:
    """A field for an array that holds none."""

    type: UserType


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several arrays of one type, which `selector` names at run time.

    selector: a bool (the first option where it is true), or an int32 (the option's number).
    options: values that are arrays, views, absent arrays, or choices among such.
    """

    selector: Atom
    options: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Bad:
    """Something already reported. It meets every demand, so that nothing is told twice."""


BAD = Bad()
Operand = Value | Several | Known | View | Struct | Absent | Choice | Bad


def literal(value: bool | int | float) -> Value:
    """The operand of a Python number."""
    if isinstance(value, bool):
        return Value(Const(value, BOOL))
    if isinstance(value, int):
        t = next((t for t in (INT32, INT64) if fits(value, t)), UINT64)
        return Value(Const(value, t), weak=True)
    return Value(Const(value, FLOAT32), weak=True)


def number(value: Value) -> bool | int | float | None:
    """The number of a scalar constant; None for anything else.

    One that has a type is rounded to it; a literal has none yet.
    """
    atom = value.atom
    if not isinstance(atom, Const) or not isinstance(atom.value, (bool, int, float)):
        return None
    if value.weak or not isinstance(atom.value, float) or not is_scalar(atom.type, "f"):
        return atom.value
    with np.errstate(over="ignore"):
        return float(SCALAR_CLASSES[atom.type](atom.value))  # type: ignore[index]


def is_exact(value: Value) -> bool:
    """Whether a literal is the number itself in its own type, and in float32."""
    if value.table is not None:
        return value.table.exact
    n = number(value)
    if n is None or value.truncated:
        return False
    with np.errstate(over="ignore"):
        return float(np.float32(n)) == n


def float_literal(b: Builder, value: Value) -> Value:
    """The literal of a float that a literal of whole numbers stands for."""
    if value.table is None:
        return literal(float(number(value) or 0))
    items = tuple(literal(float(number(v) or 0)) for v in value.table.items)
    table = LiteralTable(value.table.axes, items, exact=all(map(is_exact, items)))
    return Value(look_up(b, table, table.constants), True, table=table)


def fits(n: int, t: ScalarType) -> bool:
    """Whether an integer type holds a number."""
    low = 0 if t.kind == "u" else -(2 ** (t.bits - 1))
    high = 2 ** (t.bits if t.kind == "u" else t.bits - 1)
    return bool(low <= n < high)


def _fitted(value: Value, t: Type) -> Const | None:
    """A constant literal in another type; None where it does not fit."""
    n = number(value)
    if n is None or not isinstance(t, ScalarType):
        return None
    if t.kind == "f":
        return None if value.truncated else Const(float(n), t)
    return Const(n, t) if t.kind in "iu" and isinstance(n, int) and fits(n, t) else None


def adapts(value: Value, t: Type) -> bool:
    """Whether a value can be of type `t`: it is, or it is a literal that fits."""
    if value.type == t:
        return True
    literals = (value,) if value.table is None else value.table.items
    return value.weak and all(_fitted(v, t) is not None for v in literals)


def adapt(b: Builder, value: Value, t: Type) -> Value | None:
    """The value as type `t`: itself, or a literal in that type; None where it does not fit."""
    if not adapts(value, t):
        return None
    if value.type == t:
        return Value(value.atom)
    if value.table is None:
        fitted = _fitted(value, t)
        return None if fitted is None else Value(fitted)
    if value.table.exact and is_scalar(t, "f"):
        return Value(b.op("cast", value.atom, result=t))
    return Value(look_up(b, value.table, [c for v in value.table.items if (c := _fitted(v, t))]))


def look_up(b: Builder, table: LiteralTable, items: Sequence[Const]) -> Atom:
    """The one of `items`, which are constants of one scalar type, that a table's axes choose."""
    (first, _), *others = table.axes
    if not others and first.type == BOOL:
        return b.op("select", first, *items)
    whole = b.op("construct", *items, result=VectorType(items[0].type, len(items)))  # type: ignore[arg-type]
    return b.op("extract", whole, place_in(b, table))


def place_in(b: Builder, table: LiteralTable) -> Atom:
    """The number of the item that the axes of a table choose."""
    out: Atom = Const(0, INT32)
    for k, (axis, count) in enumerate(table.axes):
        if axis.type == BOOL:
            axis = b.op("select", axis, Const(0, INT32), Const(1, INT32))
        elif axis.type != INT32:
            axis = b.op("cast", axis, result=INT32)
        out = b.op("add", b.op("mul", out, Const(count, INT32)), axis) if k else axis
    return out


# What to do where a truncated quotient stands for a float.
QUOTIENT_HELP = (
    "`/` between integers gives an integer: write `1.0 / 2.0` for a float, or `1 // 2` where the "
    "integer is meant"
)


def common_type(values: Sequence[Value]) -> Type | None:
    """The type that values share, literals adapted to the others; None where there is none."""
    strong = [v.type for v in values if not v.weak]
    if strong:
        t = strong[0]
    else:
        kinds = [v.type for v in values]
        floats = [k for k in kinds if isinstance(k, ScalarType) and k.kind == "f"]
        t = floats[0] if floats else INT64 if INT64 in kinds else kinds[0]
    return t if all(adapts(v, t) for v in values) else None


def unify(values: Sequence[Value], *builders: Builder) -> list[Value] | None:
    """The values in their common type; None where there is none.

    builders: where each is made, or one for all.
    """
    t = common_type(values)
    if t is None:
        return None
    where = builders if len(builders) == len(values) else builders * len(values)
    out = [adapt(b, v, t) for b, v in zip(where, values, strict=True)]
    return [v for v in out if v is not None]


def zero(t: ValueType) -> Const:
    """The zero of a type."""
    return const(0, t)


def is_scalar(t: Type, kinds: str) -> bool:
    """True for a scalar type of one of the kinds (letters of `ScalarType.kind`)."""
    return isinstance(t, ScalarType) and t.kind in kinds


def is_array(t: Type) -> bool:
    return isinstance(t, ArrayType)
