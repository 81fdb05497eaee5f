"""The start of a function: its parameters, and the adjoints of a custom gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from engine.frontend.assignment.aggregates import changes_fields, fresh
from engine.frontend.assignment.names import set_name
from engine.frontend.context.context import Context
from engine.frontend.operands.kinds import (
    COMPOUND_KINDS,
    AbsentKind,
    ChoiceKind,
    Kind,
    LiteralKind,
    StructKind,
    TupleKind,
    ViewKind,
    as_view,
    compose,
    leaf_count,
    slots,
)
from engine.frontend.operands.operand import BAD, Known, Operand, Several, Struct, Value
from engine.ir.builder import const
from engine.ir.nodes import Atom, Set, Var
from engine.lang.types import FLOAT32, ArrayType, is_float


def enter(cx: Context, name: str, kind: Kind) -> list[Var]:
    """Makes the parameters of one argument and says what its name stands for.

    A parameter that is changed lives on in variables; any other is its own value.
    """
    if isinstance(kind, Known):
        cx.bound[name] = kind
        return []
    if isinstance(kind, LiteralKind):
        return _enter_literal(cx, name, kind)
    if not isinstance(kind, COMPOUND_KINDS):
        var = Var(name, slots(kind)[0].type)
        changed = name not in cx.plan.plain or name in cx.plan.components
        if not changed or isinstance(var.type, ArrayType):
            cx.bound[name] = Value(var)
            cx.types[name] = var.type
            if cx.function.annotated[name] == FLOAT32 and not cx.is_kernel:
                cx.rounded[var] = f"parameter `{name}`"
            view = as_view(Value(var)) if changed else None
            if view is not None:
                cx.trees[name] = fresh(cx, name, view)
        else:
            own = cx.variable(name, var.type)
            cx.b.add(Set(own, var, cx.source.header()))
        return [var]
    params: list[Var] = []
    atoms: list[Atom] = []
    lent = isinstance(kind, ViewKind) and bool(kind.shape)
    for k, slot in enumerate(slots(kind)):
        if lent and isinstance(kind, ViewKind) and k < leaf_count(kind.element):
            if kind.number in cx.lent:
                atoms.append(cx.lent[kind.number][k])
                continue
        var = Var(cx.b.names.take(f"{name}{slot.suffix}"), slot.type)
        params.append(var)
        atoms.append(var)
    if lent:
        assert isinstance(kind, ViewKind)
        count = leaf_count(kind.element)
        if kind.number not in cx.lent:
            cx.lent[kind.number] = tuple(_own(cx, a) for a in atoms[:count])
        atoms[:count] = cx.lent[kind.number]
    got = compose(kind, atoms)
    _bind(cx, name, kind, got, lent)
    return params


def _enter_literal(cx: Context, name: str, kind: LiteralKind) -> list[Var]:
    """The same for a literal: as if the function began with `name = 0.7`."""
    number, *place = slots(kind)
    params = [Var(name, number.type)]
    params += [Var(cx.b.names.take(f"{name}{s.suffix}"), s.type) for s in place]
    target = ast.copy_location(ast.Name(name, ast.Store()), cx.source.tree)
    set_name(cx, target, compose(kind, params), target)
    return params


def _own(cx: Context, param: Atom) -> Var:
    """The variable of a local array that came as a parameter."""
    assert isinstance(param, Var)
    own = cx.b.variable(param.type, param.name)
    cx.owned.add(own)
    cx.b.add(Set(own, param, cx.source.header()))
    return own


def _bind(cx: Context, name: str, kind: Kind, got: Operand, lent: bool) -> None:
    cx.types[name] = kind
    cx.bound[name] = got
    if lent:
        cx.trees[name] = got
        return
    changed = name not in cx.plan.plain
    if isinstance(got, Struct):
        changed |= changes_fields(cx, name, got)
    if changed:
        with cx.at(cx.source.tree):
            cx.trees[name] = cx.bound[name] = fresh(cx, name, got)


def holds_array(kind: Kind | None) -> bool:
    """True for an array or view; structs with arrays inside have other fields too."""
    return isinstance(kind, (ArrayType, ViewKind, ChoiceKind))


def open_adjoints(cx: Context, wanted: Iterable[tuple[str, Kind | None]]) -> None:
    """Makes what `adjoint[x]` stands for: variables that start from zero."""
    made: list[Var] = []

    def leaf(name: str, kind: Kind) -> Operand:
        if isinstance(kind, StructKind):
            named = zip(kind.type.fields, kind.items, strict=True)
            return Struct(kind.type, tuple(leaf(f"{name}.{f}", item) for f, item in named))
        if isinstance(kind, TupleKind):
            return Several(tuple(leaf(f"{name}.{k}", item) for k, item in enumerate(kind.items)))
        if isinstance(kind, AbsentKind) or holds_array(kind):
            return BAD  # `adjoint[s.field]` is the array's gradient
        (slot,) = slots(kind)
        assert not isinstance(slot.type, ArrayType)
        if not is_float(slot.type):
            return Value(const(0, slot.type))
        var = cx.b.variable(slot.type, f"adj_{name}")
        cx.owned.add(var)
        made.append(var)
        return Value(var)

    cx.adjoints = {name: leaf(name, kind) for name, kind in wanted if kind is not None}
    cx.adjoint_vars = tuple(made)


def differentiable(types: dict[str, Kind | None]) -> list[str]:
    """Parameters that have a derivative: floats, and what has parts that are."""
    return [
        n
        for n, t in types.items()
        if t is not None and not holds_array(t) and any(
            is_float(s.type) and not s.static for s in slots(t)
        )
    ]  # fmt: skip
