"""Loops in bounded memory: the state that a level of a loop saves, and the code that saves less.

Normally each iteration saves the variables that it changes. Where that is too much
for a thread's stack, the loop is run in segments: the forward sweep saves the
variables once a segment; the reverse sweep takes them back, runs the segment again,
now saving each iteration, and then reverses these. One more run of the body buys a
factor of `SEGMENT` in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.ad.structure import known_trips, offset_at, trip_count
from engine.classes import dataclass
from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.ir.rewrite import fresh_copy
from engine.lang.types import INT64, UINT64, ArrayType, Type

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
    known = known_trips(s)
    if known is not None:
        return known > SEGMENT
    return 1 << s.var.type.size * 8 > SEGMENT  # type: ignore[union-attr]


def counted(b: Builder, s: n.For | n.While, most: n.Var) -> None:
    """The loop `s`, which also raises `most` to the number of its iterations."""
    if isinstance(s, n.For):
        trips = trip_count(b, s)
        b.add(s)
    else:
        count = b.variable(UINT64, "count")
        b.set(count, const(0, UINT64))
        body = b.child()
        body.stmts += s.body
        body.set(count, body.op("add", count, const(1, UINT64)))
        b.add(replace(s, body=body.block()))
        trips = count
    b.set(most, b.op("max", most, trips))


def reserve(b: Builder, measured: Sequence[tuple[n.Atom, int]]) -> None:
    """Abandons the thread where loops save too much after its first effect.

    measured: of each such loop how often it saves at most, and how many bytes. Nested ones do so
    for one iteration of the loop around them at a time.
    """
    total: n.Atom = const(0, UINT64)
    for times, size in measured:
        total = b.op("add", total, b.op("mul", times, const(size, UINT64)))
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


def count_down(b: Builder, count: n.Atom, body: Callable[[Builder, n.Atom], None]) -> None:
    """A loop that runs what `body` emits for k = count - 1 to 0, all of unsigned 64 bits."""
    inner = b.child()
    done = b.temp(UINT64, "done")
    last = b.op("sub", count, const(1, UINT64))
    body(inner, inner.op("sub", last, done))
    b.add(n.For(done, const(0, UINT64), count, const(1, UINT64), inner.block(), b.span))


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


def reversed_in_segments(
    b: Builder, loop: Loop, reverse: Callable[[Builder, n.Atom], None]
) -> None:
    """Emits the reverse of a loop that saved its segments.

    reverse(builder, k): emits the reverse of iteration k, whose variables are taken back.
    """
    s = loop.s
    zero, one, size = (const(i, UINT64) for i in (0, 1, SEGMENT))
    rest = b.op("ne", b.op("mod", loop.trips, size), zero)
    segments = b.op("add", b.op("floordiv", loop.trips, size), b.op("cast", rest, result=UINT64))

    def segment(outer: Builder, g: n.Atom) -> None:
        outer.stmts += pop(loop.segments, s)
        first = outer.op("mul", g, size)
        count = outer.op("min", outer.op("sub", loop.trips, first), size)
        again = outer.child()
        j = outer.temp(UINT64, "again")
        again.stmts += push(loop.iterations, s)
        given: dict[n.Var, n.Atom] = {}
        if loop.bounds is not None and isinstance(s, n.For):
            start, step = loop.bounds
            offset = offset_at(again, step, again.op("add", first, j))
            given[s.var] = again.op("add", start, offset)
        again.stmts += fresh_copy(loop.body, b.names, given)[0]
        again.stmts += fresh_copy(loop.test, b.names)[0]
        outer.add(n.For(j, zero, count, one, again.block(), s.span))

        def back(inner: Builder, i: n.Atom) -> None:
            inner.stmts += pop(loop.iterations, s)
            reverse(inner, inner.op("add", first, i))

        count_down(outer, count, back)

    count_down(b, segments, segment)
