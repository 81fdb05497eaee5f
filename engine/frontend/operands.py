"""What an expression can be while it is lowered: a value, several, or a Python object."""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.builder import const
from engine.ir.nodes import Atom, Const, Var
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
)


@dataclass(frozen=True, slots=True)
class Value:
    """A value at run time. `weak`: a literal (a scalar Const) that takes the type it meets."""

    atom: Atom
    weak: bool = False

    @property
    def type(self) -> Type:
        return self.atom.type


@dataclass(frozen=True, slots=True)
class Several:
    """The results of a call with more than one, or a tuple."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A Python object known while compiling: a module, function, type or enumeration."""

    obj: object


@dataclass(frozen=True, slots=True)
class Row:
    """An array indexed with fewer indices than it has dimensions."""

    array: Var
    index: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Bad:
    """Something already reported. It meets every demand, so that nothing is told twice."""


BAD = Bad()
Operand = Value | Several | Known | Row | Bad


def literal(value: bool | int | float) -> Value:
    """The operand of a Python number."""
    if isinstance(value, bool):
        return Value(Const(value, BOOL))
    if isinstance(value, int):
        t = next((t for t in (INT32, INT64) if _fits(value, t)), UINT64)
        return Value(Const(value, t), weak=True)
    return Value(Const(value, FLOAT32), weak=True)


def number(value: Value) -> bool | int | float | None:
    """The number of a scalar constant; None for anything else."""
    atom = value.atom
    if isinstance(atom, Const) and isinstance(atom.value, (bool, int, float)):
        return atom.value
    return None


def _fits(n: int, t: ScalarType) -> bool:
    low = 0 if t.kind == "u" else -(2 ** (t.bits - 1))
    high = 2 ** (t.bits if t.kind == "u" else t.bits - 1)
    return bool(low <= n < high)


def adapt(value: Value, t: Type) -> Value | None:
    """The value as type `t`: itself, or a literal in that type; None where it does not fit."""
    if value.type == t:
        return Value(value.atom)
    n = number(value)
    if not value.weak or n is None or not isinstance(t, ScalarType):
        return None
    if t.kind == "f":
        return Value(Const(float(n), t))
    if t.kind in "iu" and isinstance(n, int) and _fits(n, t):
        return Value(Const(n, t))
    return None


def unify(values: list[Value]) -> list[Value] | None:
    """The values in one common type, literals adapted to the others; None where there is none."""
    strong = [v.type for v in values if not v.weak]
    if strong:
        t = strong[0]
    else:
        kinds = [v.type for v in values]
        floats = [k for k in kinds if isinstance(k, ScalarType) and k.kind == "f"]
        t = floats[0] if floats else INT64 if INT64 in kinds else kinds[0]
    out = [adapt(v, t) for v in values]
    return None if any(v is None for v in out) else [v for v in out if v is not None]


def zero(t: ValueType) -> Const:
    """The zero of a type."""
    return const(0, t)


def is_scalar(t: Type, kinds: str) -> bool:
    """True for a scalar type of one of the kinds (letters of `ScalarType.kind`)."""
    return isinstance(t, ScalarType) and t.kind in kinds


def is_array(t: Type) -> bool:
    return isinstance(t, ArrayType)
