"""The decision pass: makes a kernel that records the branches that its floats decide.

In another precision a comparison or a conversion to an integer may turn out otherwise. Two forms
of a kernel take the same path where these numbers are equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.ops import OPS, NoDerivative
from engine.ir.rewrite import names_in, rewrite
from engine.lang.types import (
    BOOL,
    INT32,
    INT64,
    UINT64,
    ArrayType,
    ScalarType,
    is_float,
    scalar_of,
    shape_of,
)

WORDS = 2  # that each thread writes to its journal: what was decided, as a hash; and how often
MOST = "most_decisions"  # a further parameter: a thread that decides more often ends in its loop
_FACTOR = 0x9E3779B97F4A7C15  # of the hash: 2**64 divided by the golden ratio


def decisions(fn: n.Function) -> n.Function | None:
    """The record of a prepared kernel; None where its floats decide nothing."""
    if not any(decides(s) for s in n.walk(fn.body)):
        return None
    names = Names(names_in(fn))
    path = n.Var(names.fresh("path"), UINT64, mutable=True)
    count = n.Var(names.fresh("count"), INT64, mutable=True)
    most = n.Var(names.fresh(MOST), INT64)

    def note(b: Builder, word: n.Atom) -> None:
        mixed = b.op("bitxor", path, b.op("cast", word, result=UINT64))
        b.set(path, b.op("mul", mixed, n.Const(_FACTOR, UINT64)))

    def step(s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
        b = Builder(names, s.span)
        if isinstance(s, (n.For, n.While)):
            b.add(n.If(b.op("gt", count, most), (n.Return((), s.span),), (), s.span))
            return replace(s, body=(*b.stmts, *s.body))
        b.add(s)
        if isinstance(s, n.Let) and decides(s):
            for word in _words(b, s):
                note(b, word)
            b.set(count, b.op("add", count, const(1, INT64)))
        return b.stmts

    first = Builder(names, fn.span)
    first.set(path, const(0, UINT64))
    first.set(count, const(0, INT64))
    last = (n.JournalWrite(path, -1, fn.span), n.JournalWrite(count, -1, fn.span))
    return replace(
        fn, name=f"{fn.name}_decisions", params=(*fn.params, most),
        body=(*first.stmts, *rewrite(fn.body, step), *last),
    )  # fmt: skip


def loops_by_floats(fn: n.Function) -> bool:
    """Whether floats decide how often a loop of a prepared kernel goes round."""
    return any(
        isinstance(s, n.While) and any(decides(x) for x in n.walk((*s.test, *s.body)))
        for s in n.walk(fn.body)
    )


def decides(s: n.Stmt) -> bool:
    """Whether a statement makes something that jumps out of floats."""
    if not isinstance(s, n.Let) or s.op == "reinterpret" or isinstance(s.dst.type, ArrayType):
        return False
    if not any(is_float(a.type) and not isinstance(a.type, ArrayType) for a in s.args):
        return False
    jumps = isinstance(OPS[s.op].derivative, NoDerivative)
    return jumps or not is_float(s.dst.type) or s.op in ("min", "max")


def _words(b: Builder, s: n.Let) -> list[n.Atom]:
    """What was decided, as integers: which of two is less, or what came out."""
    if s.op in ("min", "max") and isinstance(s.dst.type, ScalarType):
        x, y = s.args
        return [b.op("lt", x, y), b.op("lt", y, x)]
    if s.op in ("min", "max"):
        return []
    out: list[n.Atom] = []
    for at in np.ndindex(*shape_of(s.dst.type)):  # type: ignore[arg-type]
        part = b.op("extract", s.dst, *(n.Const(k, INT32) for k in at)) if at else s.dst
        if scalar_of(part.type) != BOOL:
            part = b.op("cast", part, result=INT64)
        out.append(part)
    return out
