"""`adjoint[x]` in a custom gradient: a variable that is returned, or an array's gradient."""

from __future__ import annotations

import ast
from dataclasses import replace

from engine.frontend.context.context import Context
from engine.frontend.operands.kinds import as_view, plain
from engine.frontend.operands.lvalues import LValue
from engine.frontend.operands.operand import BAD, Known, Operand, Struct, View
from engine.frontend.parsing.local_variables import root_name
from engine.ir.nodes import Atom, Var
from engine.lang.structs import has_float


def adjoint_of(cx: Context, node: ast.Subscript, base: Known) -> LValue:
    """What `adjoint[x]`, `adjoint[s.field]` or `adjoint[array]` names."""
    if getattr(base.obj, "__builtin_name__", "") != "adjoint":
        text = cx.source.text(node.value)
        return cx.error(
            "E106",
            node,
            f"`{text}` cannot be indexed in a kernel",
            "index arrays, vectors, matrices",
        )
    if cx.adjoints is None:
        return cx.error(
            "E106",
            node,
            "`adjoint` has a meaning only in a custom gradient",
            f"write it in a function decorated with `@{cx.api}.func_grad(...)`",
        )
    found = _field(cx, node.slice)
    if found is None and root_name(node.slice) in cx.function.annotated:
        found = _array(cx, node.slice)
    return _refuse(cx, node) if found is None else found


def _field(cx: Context, node: ast.expr) -> Operand | None:
    """The adjoint of an input, or of a field of one; None where there is none."""
    assert cx.adjoints is not None
    if isinstance(node, ast.Name):
        return cx.adjoints.get(node.id)
    if isinstance(node, ast.Attribute):
        inside = _field(cx, node.value)
        if isinstance(inside, Struct) and node.attr in inside.type.fields:
            got: Operand = inside.item(node.attr)
            return None if got is BAD else got
    return None


def _array(cx: Context, node: ast.expr) -> Operand | None:
    """The gradient of an array parameter, seen as the expression sees the array."""
    got = cx.bound.get(node.id) if isinstance(node, ast.Name) else cx.expr(node)
    if got is BAD:
        return BAD
    view = as_view(got) if got is not None else None
    if view is None or view.is_local or not has_float(view.root.element):
        return None
    leaves = tuple(_gradient(cx, a) for a in view.root.leaves)
    return plain(View(replace(view.root, leaves=leaves), view.dims))


def _gradient(cx: Context, array: Atom) -> Var:
    """The parameter for the gradient of an array parameter."""
    assert isinstance(array, Var)
    if array.name not in cx.adjoint_arrays:
        cx.adjoint_arrays[array.name] = cx.b.temp(array.type, f"adj_{array.name}")
    return cx.adjoint_arrays[array.name]


def _refuse(cx: Context, node: ast.Subscript) -> LValue:
    known = [*(cx.adjoints or {})]
    for name in sorted(cx.array_params):
        got = cx.bound.get(name)
        view = as_view(got) if got is not None else None
        if view is not None and has_float(view.root.element):
            known.append(name)
    names = ", ".join(f"`{n}`" for n in known) or "none"
    return cx.error(
        "E102",
        node.slice,
        f"`{cx.source.text(node.slice)}` is not an input that has a derivative",
        f"inputs with a derivative: {names}",
    )
