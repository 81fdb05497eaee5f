"""The steering pass: one kernel records the decisions of its floats, another one obeys them.

Displaced inputs, and those of another precision, may decide otherwise: `floor` of a point that
rounding has put on a grid, a test for equality. What is told takes the path of the launch wherever
its inputs are, and is smooth around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.ad.decisions import decides
from engine.classes import dataclass
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import names_in, rewrite
from engine.lang.types import BOOL, INT32, INT64, ArrayType, ScalarType, Type, scalar_of, shape_of

# Numbers are written as negative words, which ends of frames, being positive, are not.
_BITS = 62
_MASK = (1 << _BITS) - 1


@dataclass(frozen=True)
class Steering:
    """A kernel that writes decisions, and one with two more parameters that is told them.

    route: the name of an array of them, thread by thread; starts: of where each thread's begin.
    """

    scout: n.Function
    steered: n.Function
    route: str
    starts: str


def steering(fn: n.Function) -> Steering | None:
    """Both forms of a prepared kernel; None where its floats decide nothing."""
    if not any(_told(s) for s in n.walk(fn.body)):
        return None
    return Steering(_scout(fn), *_steered(fn))


def routes(words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What a scout wrote: the numbers of all threads, and where those of each begin."""
    ends = words >= 0
    coded = -1 - words[~ends]
    numbers = np.where(coded >> (_BITS - 1), coded - (1 << _BITS), coded)
    before = np.cumsum(~ends)[ends]
    return numbers, np.concatenate([[0], before[:-1]]).astype(np.int64)


def _told(s: n.Stmt) -> bool:
    """Whether a statement decides something that can be told."""
    if not isinstance(s, n.Let) or not decides(s):
        return False
    return s.op not in ("min", "max") or isinstance(s.dst.type, ScalarType)


def _scout(fn: n.Function) -> n.Function:
    names = Names(names_in(fn))

    def step(s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
        if not (isinstance(s, n.Let) and _told(s)):
            return s
        b = Builder(names, s.span)
        b.add(s)
        for number in _numbers(b, s):
            low = b.op("bitand", number, const(_MASK, INT64))
            b.add(n.JournalWrite(b.op("sub", const(-1, INT64), low), -1, s.span))
        return b.stmts

    return replace(fn, name=f"{fn.name}_scout", body=rewrite(fn.body, step))


def _numbers(b: Builder, s: n.Let) -> list[n.Atom]:
    """What was decided: which of two is less (1, 2, or 0 for neither), or what came out."""
    if s.op in ("min", "max"):
        x, y = s.args
        second = b.op("select", b.op("lt", y, x), const(2, INT64), const(0, INT64))
        return [b.op("select", b.op("lt", x, y), const(1, INT64), second)]
    return [b.op("cast", part, result=INT64) for part in _parts(b, s.dst)]


def _parts(b: Builder, value: n.Var) -> list[n.Atom]:
    shape = shape_of(value.type)  # type: ignore[arg-type]
    if not shape:
        return [value]
    return [b.op("extract", value, *(n.Const(k, INT32) for k in at)) for at in np.ndindex(*shape)]


def _steered(fn: n.Function) -> tuple[n.Function, str, str]:
    names = Names(names_in(fn))
    route = n.Var(names.fresh("route"), ArrayType(INT64, 1))
    starts = n.Var(names.fresh("starts"), ArrayType(INT64, 1))
    at = n.Var(names.fresh("at"), INT64, mutable=True)

    def next_number(b: Builder) -> n.Atom:
        number = b.load(route, (at,), (), INT64)
        b.set(at, b.op("add", at, const(1, INT64)))
        return number

    def step(s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
        if not (isinstance(s, n.Let) and _told(s)):
            return s
        b = Builder(names, s.span)
        if s.op in ("min", "max"):
            x, y = s.args if s.op == "min" else s.args[::-1]
            number = next_number(b)
            tie = b.op(s.op, *s.args)
            rest = b.op("select", b.op("eq", number, const(2, INT64)), y, tie)
            b.add(n.Let(s.dst, "select", (b.op("eq", number, const(1, INT64)), x, rest), s.span))
            return b.stmts
        t = s.dst.type
        parts = [
            _from_number(b, next_number(b), scalar_of(t))
            for _ in np.ndindex(*shape_of(t))  # type: ignore[arg-type]
        ]
        last = "construct" if shape_of(t) else "cast"  # type: ignore[arg-type]
        b.add(n.Let(s.dst, last, tuple(parts), s.span))
        return b.stmts

    first = Builder(names, fn.span)
    first.set(at, first.load(starts, (first.op("thread"),), (), INT64))
    body = (*first.stmts, *rewrite(fn.body, step))
    made = replace(fn, name=f"{fn.name}_steered", params=(*fn.params, route, starts), body=body)
    return made, route.name, starts.name


def _from_number(b: Builder, number: n.Atom, t: Type) -> n.Atom:
    return b.op("ne", number, const(0, INT64)) if t == BOOL else b.op("cast", number, result=t)
