"""Assignments to names: a value that the name stands for, or a variable that is set."""

from __future__ import annotations

import ast
from dataclasses import replace

from engine.frontend.assignment.aggregates import AGGREGATES, mismatch, set_aggregate
from engine.frontend.assignment.chosen_arrays import shared
from engine.frontend.context.context import Context
from engine.frontend.expressions.conversions import coerce
from engine.frontend.operands.kinds import (
    COMPOUND_KINDS,
    Kind,
    as_view,
    decompose,
    user_type,
)
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Choice,
    Known,
    Operand,
    Several,
    Struct,
    Value,
    View,
    float_literal,
    is_scalar,
)
from engine.ir.nodes import Atom, Let, Load, Var
from engine.lang.types import FLOAT32, ArrayType, MatrixType, ScalarType, Type, VectorType

_COMPOSITE = (VectorType, MatrixType)


def set_name(
    cx: Context, target: ast.Name, got: Operand, value: ast.expr, naming: bool = False
) -> None:
    """`name = value`. The first assignment fixes the type.

    naming: nothing else refers to the value, so that its temporary may take the name.
    """
    name = target.id
    if isinstance(got, Known) and got.value is not None:
        if name not in cx.plan.plain or name in cx.plan.components:
            got = got.value
    if isinstance(got, Bad):
        if name not in cx.types:
            cx.unsure.add(name)
            cx.bound[name] = BAD
        return
    if isinstance(got, AGGREGATES):
        set_aggregate(cx, target, shared(cx, got), value)
        return
    if isinstance(got, Several) and name not in cx.plan.plain and decompose(got) is not None:
        set_aggregate(cx, target, got, value)
        return
    if isinstance(got, Value) and isinstance(got.type, ArrayType) and name not in cx.plan.plain:
        view = as_view(got)
        assert view is not None
        set_aggregate(cx, target, view, value)
        return
    t = cx.types.get(name)
    if isinstance(got, Value) and isinstance(t, COMPOUND_KINDS):
        mismatch(cx, value, f"`{name}`", user_type(t), got.type, "E105")
        return
    if isinstance(got, Value) and name in cx.open:
        got = _of_open(cx, target, value, got)
        t = cx.types[name]
    elif isinstance(got, Value) and t is None and got.weak and got.type == FLOAT32:
        cx.open.add(name)
    _derive(cx, name, value, got)
    if isinstance(got, Value) and t is not None and not _stays_literal(cx, name, got):
        atom = coerce(cx, value, got, t, f"`{name}`", "E105", _retype_help(cx, name, got.type, t))
        if atom is None:
            return
        got = Value(atom, table=got.table if atom == got.atom else None)
    plain = name in cx.plan.plain
    if plain and isinstance(got, Value) and isinstance(got.type, _COMPOSITE):
        plain = name not in cx.plan.components
    if plain:
        _bind(cx, name, got, naming)
        return
    one = cx.one(value, got)
    if isinstance(one, Bad) or isinstance(one.type, ArrayType):
        cx.bound[name] = BAD
        return
    if one.weak:
        cx.literals[name] = cx.source.span(target).line
    var = cx.variable(name, one.type)
    cx.b.set(var, one.atom)


def _stays_literal(cx: Context, name: str, got: Value) -> bool:
    """Whether a name goes on to have literals of floats alone, with this value too."""
    return got.weak and name in cx.open and got.type == FLOAT32


def of_literals(cx: Context, value: ast.AST) -> bool:
    """Whether nothing but names that literals have started is read in an expression."""
    return _sources(cx, value) is not None


def _sources(cx: Context, value: ast.AST) -> frozenset[str] | None:
    """The names that literals have started from which an expression comes; None if from others."""
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    found: set[str] = set()
    for name in names:
        if name in cx.open:
            found.add(name)
        elif name in cx.derived:
            found |= cx.derived[name]
        elif name in cx.bound or name in cx.types:
            return None
    return frozenset(found)


def _derive(cx: Context, name: str, value: ast.AST, got: Operand) -> None:
    """Notes what the value of a name comes from, where that is names of literals and operators."""
    cx.derived.pop(name, None)
    if name in cx.open or not isinstance(got, Value) or got.weak or got.type != FLOAT32:
        return
    sources = _sources(cx, value)
    if sources and not any(isinstance(n, ast.Call) for n in ast.walk(value)):
        cx.derived[name] = sources


def _of_open(cx: Context, target: ast.Name, value: ast.AST, got: Value) -> Value:
    """A further value of a name that had literals of floats alone, which may fix its type."""
    name = target.id
    if got.weak and is_scalar(got.type, "iu") and not got.truncated:
        return float_literal(cx.b, got)
    if not got.weak and is_scalar(got.type, "f"):
        if got.type == FLOAT32 and not of_literals(cx, value):  # whatever a cast asks
            cx.open.discard(name)
            cx.asked.pop(name, None)
        if name in cx.vars:
            cx.ask(target, got.type)
        else:
            cx.open.discard(name)
            cx.types[name] = got.type
    return got


def _retype_help(cx: Context, name: str, new: Type, old: Kind) -> str:
    if isinstance(new, ScalarType) and isinstance(old, ScalarType):
        if new.kind == "f" and old.kind in "iu" and name in cx.literals:
            return f"start with a float: `{name} = 0.0` instead of `{name} = 0`"
        return ""
    return "use another name for the new value"


def _bind(cx: Context, name: str, got: Operand, naming: bool) -> None:
    """Lets a plain name stand for a value, without a variable of its own."""
    if not isinstance(got, Value):
        cx.bound[name] = cx.keep(got)
        return
    if got.weak:
        cx.literals[name] = cx.b.span.line
    cx.types.setdefault(name, got.type)
    kept = cx.keep(got)
    assert isinstance(kept, Value)
    atom = _named(cx, kept.atom, name) if naming else kept.atom
    cx.bound[name] = Value(atom, got.weak and name in cx.open, table=kept.table)


def _named(cx: Context, atom: Atom, name: str) -> Atom:
    """The temporary that the last statement made, under the user's name for it."""
    last = cx.b.stmts[-1] if cx.b.stmts else None
    if not isinstance(last, (Let, Load)) or last.dst != atom or _is_bound(cx, atom):
        return atom
    renamed = Var(cx.b.names.fresh(name.replace("$", "cmp")), atom.type)
    cx.b.stmts[-1] = replace(last, dst=renamed)
    cx.b.renamed(last.dst, renamed)
    return renamed


def _is_bound(cx: Context, atom: Atom) -> bool:
    """True where a name stands for the atom already."""

    def within(got: Operand) -> bool:
        if isinstance(got, Several):
            return any(within(x) for x in got.items)
        return (isinstance(got, Value) and got.atom == atom) or (
            isinstance(got, (Struct, View, Choice)) and atom in (decompose(got) or ((), ()))[1]
        )

    return any(within(got) for got in cx.bound.values())
