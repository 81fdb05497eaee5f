"""`for i in query:` loops over the results of a query."""

from __future__ import annotations

import ast

from engine.builtins.queries import QUERIES, STEPS
from engine.frontend.assignment.aggregates import fresh, replaced
from engine.frontend.assignment.names import set_name
from engine.frontend.calls.query_calls import step
from engine.frontend.context.context import Context
from engine.frontend.operands.operand import Known, Operand, Struct, Value
from engine.ir.builder import const
from engine.ir.nodes import Break, Const, If, While
from engine.lang.types import BOOL, INT32


def lower_query_loop(cx: Context, node: ast.For) -> bool:
    """Lowers the loop; False where it goes over anything but a query."""
    q = _query(cx, node.iter)
    if q is None or not isinstance(node.target, ast.Name):
        return False
    state = fresh(cx, "query", q)
    index = cx.b.variable(INT32, node.target.id)
    cx.b.set(index, const(0, INT32))
    with cx.looping(node), cx.nested() as body:
        with cx.at(node.iter):
            assert isinstance(state, Struct)
            more, after, found = step(cx, state, Value(index))
            assert isinstance(more, Value) and isinstance(found, Value)
            stop = cx.b.op("lnot", more.atom)
            cx.b.add(If(stop, (Break(cx.b.span),), (), cx.b.span))
            replaced(cx, "query", state, after)
            cx.b.set(index, found.atom)
        with cx.at(node.target):
            set_name(cx, node.target, Value(found.atom), node.target)
        cx.block(node.body)
    cx.b.add(While((), Const(True, BOOL), body.block(), cx.b.span))
    return True


def _query(cx: Context, node: ast.expr) -> Struct | None:
    """What the loop goes over, if it is a query; nothing else is lowered."""
    if isinstance(node, ast.Call):
        called = cx.expr(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else None
        name = getattr(called.obj, "__builtin_name__", "") if isinstance(called, Known) else ""
        if name not in QUERIES:
            return None
    elif not isinstance(node, ast.Name) or not isinstance(cx.bound.get(node.id), Struct):
        return None
    got: Operand = cx.expr(node)
    return got if isinstance(got, Struct) and got.type in STEPS else None
