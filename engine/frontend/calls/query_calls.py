"""Calls of queries, whose tables come from outside and which may change their arguments."""

from __future__ import annotations

import ast

from engine.builtins.composite import HELPERS
from engine.builtins.queries import QUERIES, STEPS, Query
from engine.frontend.assignment.targets import assign
from engine.frontend.calls.user_calls import call_with
from engine.frontend.context.context import Context
from engine.frontend.functions.library_function import library_func
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Operand,
    Several,
    Struct,
    Value,
    adapt,
    literal,
)
from engine.frontend.operands.type_names import type_name
from engine.lang.structs import StructType
from engine.lang.types import Type


def lower_query(cx: Context, node: ast.Call, name: str) -> Operand:
    """A call of a builtin of `engine.builtins.queries`."""
    overloads = QUERIES[name]
    given = [cx.expr(a) for a in node.args]
    named = {w.arg or "**": (w.value, cx.expr(w.value)) for w in node.keywords}
    if any(isinstance(v, Bad) for v in (*given, *(v for _, v in named.values()))):
        return BAD
    for q in overloads:
        nodes: list[ast.expr | None] = [*node.args]
        values: list[Operand] = list(given)
        rest = q.names[len(given) :]
        if len(given) > len(q.names) or not set(named) <= set(rest):
            continue
        first = len(q.names) - len(q.defaults)
        for k, word in enumerate(rest, len(given)):
            if word in named:
                nodes.append(named[word][0])
                values.append(named[word][1])
            elif k >= first:
                nodes.append(None)
                values.append(literal(q.defaults[k - first]))
            else:
                break
        if len(values) != len(q.names):
            continue
        fitted = [_fitted(cx, v, t) for v, t in zip(values, q.types, strict=True)]
        if all(f is not None for f in fitted):
            return _called(cx, q, [f for f in fitted if f is not None], nodes)
    return _no_overload(cx, node, name, [*given, *(v for _, v in named.values())])


def step(cx: Context, q: Struct, index: Operand) -> tuple[Operand, Operand, Operand]:
    """Whether `for i in q:` goes round once more, the query after that, and the index."""
    found = QUERIES[STEPS[q.type]][0]
    more, after, at = _results(cx, found, [q, index])
    return more, after, at


def _fitted(cx: Context, got: Operand, want: Type | StructType) -> Operand | None:
    if isinstance(want, StructType):
        return got if isinstance(got, Struct) and got.type is want else None
    return adapt(cx.b, got, want) if isinstance(got, Value) else None


def _results(cx: Context, q: Query, args: list[Operand]) -> list[Operand]:
    given = args if q.table is None else [cx.table(q.table), *args]
    for t, default in zip(q.types[len(args) :], q.defaults, strict=False):
        value = adapt(cx.b, literal(default), t) if not isinstance(t, StructType) else None
        assert value is not None
        given = [*given, value]
    return call_with(cx, library_func(HELPERS[q.func]), given)


def _called(cx: Context, q: Query, args: list[Operand], nodes: list[ast.expr | None]) -> Operand:
    results = _results(cx, q, args)
    kept = results[: len(results) - len(q.updates)]
    for k, value in zip(q.updates, results[len(kept) :], strict=True):
        at = nodes[k]
        if not isinstance(at, (ast.Name, ast.Attribute, ast.Subscript)):
            assert at is not None
            return cx.error(
                "E106",
                at,
                f"`{q.user}` gives its argument `{q.names[k]}` a value, but this is not a variable",
                f"write `{q.names[k]} = ...` before it, and pass `{q.names[k]}`",
            )
        assign(cx, at, value, at)
    return kept[0] if len(kept) == 1 else Several(tuple(kept))


def _no_overload(cx: Context, node: ast.Call, name: str, given: list[Operand]) -> Operand:
    shown = ", ".join(
        v.type.name if isinstance(v, Struct) else type_name(v.type) if isinstance(v, Value) else "?"
        for v in given
    )
    ways = dict.fromkeys(q.shown for q in QUERIES[name])
    return cx.error(
        "E104", node, f"`{name}` does not take ({shown})", f"write {'; or '.join(ways)}"
    )
