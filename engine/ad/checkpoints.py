"""Loops in bounded memory: what one level of a loop saves, and the code that saves less.

Normally each iteration saves the variables that it changes. Where that is too much
for a thread's stack, the loop is run in segments: the forward sweep saves the
variables once a segment; the reverse sweep takes them back, runs the segment again,
now saving each iteration, and then reverses these. One more run of the body buys a
factor of `SEGMENT` in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.ad.structure import trip_count
from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.ir.rewrite import fresh_copy
from engine.lang.types import INT32, INT64, ArrayType, ScalarType, Type

SLOT = 8  # bytes of a slot of the stack or the journal
SEGMENT = 1024  # iterations

Stacks = Sequence[tuple[n.Var, int]]  # a variable, and the stack that it is saved on


def slots_of(t: Type) -> int:
    """Slots that a saved value takes."""
    assert not isinstance(t, ArrayType)
    return -(-t.size // SLOT)


def push(stacks: Stacks, s: n.Stmt) -> list[n.Stmt]:
    return [n.Push(k, v, s.span) for v, k in stacks]


def pop(stacks: Stacks, s: n.Stmt) -> list[n.Stmt]:
    return [n.Pop(v, k, s.span) for v, k in reversed(stacks)]


def saved_bytes(stacks: Stacks, live: set[int]) -> int:
    """Bytes that one iteration saves, of those stacks that are used."""
    return sum(SLOT * slots_of(v.type) for v, k in stacks if k in live)


def may_be_long(s: n.For | n.While) -> bool:
    """False for loops of a known, small number of iterations."""
    if not isinstance(s, n.For):
        return True
    if s.var.type not in (INT32, INT64):  # few values, or none known to be used
        return False
    if all(isinstance(a, n.Const) for a in (s.start, s.stop, s.step)):
        start, stop, step = (int(a.value) for a in (s.start, s.stop, s.step))  # type: ignore[union-attr,arg-type]
        return bool(step) and len(range(start, stop, step)) > SEGMENT
    return True


def counted(b: Builder, s: n.For | n.While, most: n.Var) -> None:
    """The loop `s`, which also raises `most` to the number of its iterations."""
    if isinstance(s, n.For):
        trips: n.Atom = b.op("cast", trip_count(b, s), result=INT64)
        b.add(s)
    else:
        count = b.variable(INT64, "count")
        b.set(count, const(0, INT64))
        body = b.child()
        body.stmts += s.body
        body.set(count, body.op("add", count, const(1, INT64)))
        b.add(replace(s, body=body.block()))
        trips = count
    b.set(most, b.op("max", most, trips))


def reserve(b: Builder, measured: Mapping[n.Var, int]) -> None:
    """Abandons the thread where its nested loops save too much.

    measured: for each of them, the variable that has its most iterations, and the bytes
    that one saves. Each saves for one iteration of the loop around it at a time.
    """
    total: n.Atom = const(0, INT64)
    for most, size in measured.items():
        total = b.op("add", total, b.op("mul", most, const(size, INT64)))
    b.add(n.Reserve(total, b.span))


def checkpointed(b: Builder, stacks: Stacks, s: n.Stmt) -> tuple[n.Var, list[n.Stmt]]:
    """A counter to be zeroed before a loop, and what its body starts with: a save in SEGMENT."""
    left = b.variable(INT64, "left")
    body = b.child()
    due = body.op("eq", left, const(0, INT64))
    save = (*push(stacks, s), n.Set(left, const(SEGMENT, INT64), s.span))
    body.add(n.If(due, save, (), s.span))
    body.set(left, body.op("sub", left, const(1, INT64)))
    return left, body.stmts


@dataclass(frozen=True)
class Loop:
    """A loop to be reversed: its stacks of segments and of iterations, and its trip count.

    bounds: start and step of a `for`. test, body: what runs again, without effects.
    """

    s: n.For | n.While
    segments: Stacks
    iterations: Stacks
    trips: n.Atom
    bounds: tuple[n.Atom, n.Atom] | None
    test: n.Block
    body: n.Block


def value_at(b: Builder, loop: Loop, k: n.Atom) -> n.Atom:
    """The loop variable of a `for` in iteration k."""
    assert loop.bounds is not None
    start, step = loop.bounds
    return b.op("add", start, b.op("mul", k, step))


def reversed_in_segments(
    b: Builder, loop: Loop, reverse: Callable[[Builder, n.Atom], None]
) -> None:
    """Emits the reverse of a loop that saved its segments.

    reverse(builder, k): emits the reverse of iteration k, whose variables are taken back.
    """
    s, t = loop.s, loop.trips.type
    assert isinstance(t, ScalarType)
    zero, one, minus, size = (const(i, t) for i in (0, 1, -1, SEGMENT))
    last = b.op("floordiv", b.op("sub", loop.trips, one), size)  # -1 where there is none
    segment = b.child()
    g = b.temp(t, "segment")
    segment.stmts += pop(loop.segments, s)
    first = segment.op("mul", g, size)
    count = segment.op("min", segment.op("sub", loop.trips, first), size)

    again = segment.child()
    j = segment.temp(t, "again")
    again.stmts += push(loop.iterations, s)
    given: dict[n.Var, n.Atom] = {}
    if isinstance(s, n.For):
        given[s.var] = value_at(again, loop, again.op("add", first, j))
    again.stmts += fresh_copy(loop.body, b.names, given)[0]
    again.stmts += fresh_copy(loop.test, b.names)[0]
    segment.add(n.For(j, zero, count, one, again.block(), s.span))

    back = segment.child()
    i = segment.temp(t, "back")
    back.stmts += pop(loop.iterations, s)
    reverse(back, back.op("add", first, i))
    segment.add(n.For(i, segment.op("sub", count, one), minus, minus, back.block(), s.span))
    b.add(n.For(g, last, minus, minus, segment.block(), s.span))
