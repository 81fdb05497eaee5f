"""Calls of functions made by `@func`: arguments, instances, results."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.diagnostics import KernelError
from engine.frontend.aggregates import fresh
from engine.frontend.context import Context
from engine.frontend.kinds import (
    Kind,
    ViewKind,
    accepts,
    compose,
    decompose,
    leaf_count,
    numbered,
    slots,
    user_type,
)
from engine.frontend.operands import BAD, Absent, Bad, Operand, Several, Struct, Value, View, adapt
from engine.frontend.typenames import type_name
from engine.frontend.userfunc import UserFunc
from engine.frontend.views import settled
from engine.ir.nodes import Atom, Call, Function, Var
from engine.lang.structs import ARRAYS, COMPOUND, UserType
from engine.lang.types import INT32


@dataclass
class _Arguments:
    """Kinds and atoms of a call's arguments.

    lent: the local arrays among them. Functions get them by value and give them back.
    """

    kinds: list[Kind] = field(default_factory=list)
    atoms: list[Atom] = field(default_factory=list)
    lent: list[tuple[Atom, ...]] = field(default_factory=list)

    def add(self, cx: Context, got: Operand) -> None:
        if isinstance(got, View):
            got = settled(cx, got)
            if got.is_local:
                got = _in_variables(cx, got)
        parts = decompose(got)
        assert parts is not None
        before = len(self.lent)
        kind = numbered(*parts, self.lent)
        atoms = list(parts[1])
        if isinstance(kind, ViewKind) and kind.shape and len(self.lent) == before:
            atoms = atoms[leaf_count(kind.element) :]  # an argument before this one is the same
        self.kinds.append(kind)
        self.atoms += atoms


def _in_variables(cx: Context, view: View) -> View:
    """The local array in variables, which a function can change."""
    if all(isinstance(a, Var) and a.mutable for a in view.root.leaves):
        return view
    made = fresh(cx, "local", view)
    assert isinstance(made, View)
    return made


def call_user(cx: Context, node: ast.Call, target: UserFunc) -> Operand:
    """A call of a `@func`. An instance is made for the argument types."""
    slots_ = _bind(cx, node, target)
    if slots_ is None:
        return BAD
    given = _Arguments()
    bad = False
    for name, (at, got) in slots_.items():
        fitted = _fitted(cx, at, got, target, name)
        if isinstance(fitted, Bad):
            bad = True
        else:
            given.add(cx, fitted)
    if bad:
        return BAD
    try:
        results = _called(cx, target, given)
    except KernelError as error:
        cx.report.take(error)
        return BAD
    return results[0] if len(results) == 1 else Several(tuple(results))


def call_with(cx: Context, target: UserFunc, args: Sequence[Operand]) -> list[Operand]:
    """The results of a call with values, structs and arrays that fit. Raises KernelError."""
    given = _Arguments()
    for got in args:
        given.add(cx, got)
    return _called(cx, target, given)


def _called(cx: Context, target: UserFunc, given: _Arguments) -> list[Operand]:
    fn = target.instance(given.kinds, cx.b.span)
    dsts = tuple(cx.b.temp(t) for t in fn.results)
    cx.b.add(Call(dsts, fn, tuple(given.atoms), cx.b.span))
    returned = sum(len(roots) for roots in given.lent)
    own = dsts[: len(dsts) - returned]
    changed = [a for roots in given.lent for a in roots]
    for var, value in zip(changed, dsts[len(own) :], strict=True):
        assert isinstance(var, Var)
        cx.b.set(var, value)
    return _results(fn, own, given.atoms)


def _results(fn: Function, dsts: tuple[Var, ...], given: list[Atom]) -> list[Operand]:
    """The results of a call; arrays in them are arguments of it."""
    if not fn.returns:
        return [Value(d) for d in dsts]
    arguments: dict[Atom, Atom] = dict(zip(fn.params, given, strict=True))
    left = iter(dsts)
    out: list[Operand] = []
    for kind, arrays in fn.returns:
        known = iter(arrays)
        atoms = [arguments[next(known)] if s.static else next(left) for s in slots(kind)]
        out.append(compose(kind, atoms))
    return out


def _fitted(cx: Context, at: ast.expr, got: Operand, target: UserFunc, name: str) -> Operand | Bad:
    """The operand as an argument of a parameter, or an error."""
    want = target.annotated().get(name)
    have: UserType
    if isinstance(got, (Struct, View, Absent)):
        parts = decompose(got)
        assert parts is not None
        if isinstance(got, View) and not got.ndim:
            return cx.describe(at, got)
        if want is None or accepts(want, parts[0]):
            return got
        have = user_type(parts[0])
    else:
        v = cx.one(at, got)
        if isinstance(v, Bad):
            return BAD
        fitted = v if want is None else None
        if want is not None and accepts(want, v.type):
            fitted = v
        elif want is not None and not isinstance(want, COMPOUND):
            fitted = adapt(v, want)
        if fitted is not None:
            return Value(fitted.atom)
        have = v.type
    return cx.error(
        "E104",
        at,
        f"parameter `{name}` of `{target.name}` has type {type_name(want or INT32)}, "
        f"but this is {type_name(have)}",
        _argument_help(want, have),
    )


def _argument_help(want: UserType | None, have: UserType) -> str:
    if isinstance(want, ARRAYS) and not isinstance(have, ARRAYS):
        return "pass the array itself, not an element of it"
    if isinstance(have, ARRAYS) and not isinstance(want, ARRAYS):
        return "pass an element: `a[i]`"
    return "convert the argument, or change the annotation of the parameter"


def _bind(
    cx: Context, node: ast.Call, target: UserFunc
) -> dict[str, tuple[ast.expr, Operand]] | None:
    """Arguments by parameter name, in the order of the parameters."""
    try:
        params, defaults = target.parameters(), target.defaults()
    except KernelError as error:
        cx.report.take(error)
        return None
    given: dict[str, tuple[ast.expr, Operand]] = {}
    for name, a in zip(params, node.args, strict=False):
        given[name] = (a, cx.expr(a))
    wrong = len(node.args) > len(params)
    for word in node.keywords:
        if word.arg is None or word.arg not in params or word.arg in given:
            _miscount(
                cx,
                word.value,
                f"`{target.name}` takes no further argument `{word.arg}`",
                f"its parameters are: {', '.join(params) or 'none'}",
            )
            return None
        given[word.arg] = (word.value, cx.expr(word.value))
    for name in params:
        if name not in given and name in defaults:
            given[name] = (node, defaults[name])
    if wrong or len(given) != len(params):
        count = len(node.args) + len(node.keywords)
        _miscount(
            cx,
            node,
            f"`{target.name}` takes {len(params)} argument{'s' if len(params) != 1 else ''}, "
            f"got {count}",
            f"its parameters are: {', '.join(params) or 'none'}",
        )
        return None
    return {name: given[name] for name in params}


def _miscount(cx: Context, node: ast.AST, message: str, help_text: str) -> None:
    cx.error("E109", node, message, help_text)
