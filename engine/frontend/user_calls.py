"""Calls of functions made by `@func`: arguments, instances, results."""

from __future__ import annotations

import ast

from engine.diagnostics import KernelError
from engine.frontend.context import Context
from engine.frontend.operands import BAD, Bad, Operand, Several, Value, adapt
from engine.frontend.typenames import type_name
from engine.frontend.userfunc import UserFunc
from engine.ir.nodes import Atom, Call
from engine.lang.types import INT32, ArrayType, Type


def call_user(cx: Context, node: ast.Call, target: UserFunc) -> Operand:
    """A call of a `@func`. An instance is made for the argument types."""
    slots = _bind(cx, node, target)
    if slots is None:
        return BAD
    atoms: list[Atom] = []
    bad = False
    for name, (at, got) in slots.items():
        v = cx.one(at, got)
        if isinstance(v, Bad):
            bad = True
            continue
        want = target.annotated().get(name)
        fitted = adapt(v, want) if want is not None else Value(v.atom)
        if fitted is None:
            bad = True
            cx.error(
                "E104",
                at,
                f"parameter `{name}` of `{target.name}` has type {type_name(want or INT32)}, "
                f"but this is {type_name(v.type)}",
                _argument_help(cx, want, v.type),
            )
            continue
        atoms.append(fitted.atom)
    if bad:
        return BAD
    try:
        fn = target.instance([a.type for a in atoms], cx.b.span)
    except KernelError as error:
        cx.report.take(error)
        return BAD
    dsts = tuple(cx.b.temp(t) for t in fn.results)
    cx.b.add(Call(dsts, fn, tuple(atoms), cx.b.span))
    return Value(dsts[0]) if len(dsts) == 1 else Several(tuple(Value(d) for d in dsts))


def _argument_help(cx: Context, want: Type | None, have: Type) -> str:
    if isinstance(want, ArrayType) and not isinstance(have, ArrayType):
        return "pass the array itself, not an element of it"
    if isinstance(have, ArrayType) and not isinstance(want, ArrayType):
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
