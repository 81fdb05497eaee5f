"""Finds kernels that can run for a block of threads at once, and splits their statements.

A block is some threads that follow each other along the last axis: its *lanes*. Where all of
them go the same way (loops with bounds that are the same for all, conditions alike), they go
together: such statements run once, and between them stand *segments*, loops over the lanes,
which compilers make vector code of. What is the same for all lanes (the loop's variable, an
element at an index of it) is computed once. Each lane does what its thread would do, operation
by operation; sums into one element are added up over the lanes before they reach memory.

This is for launches whose threads may run in any order (see `engine.ad.threads`): none of them
reads what another one wrote, so it does not matter that they take turns step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from engine.classes import dataclass
from engine.codegen.facts import Facts, constant_trips
from engine.codegen.outline import weight
from engine.codegen.rows import TURNS, by_rows
from engine.ir import nodes as n
from engine.ir.sites import computed, indices
from engine.lang.types import ArrayType, Type, scalar_of

# Lanes of a block, and bytes of what they keep beside each other: the cache has to hold it.
WIDTHS, KEPT = (64, 32, 16), 24 << 10
# Scalar operations of a kernel beyond which it is compiled one way only.
MOST = 512
_WIDE = 64  # bytes of the largest value that a lane may keep


@dataclass(frozen=True, eq=False)
class Segment:
    """Statements that run lane by lane. number: counts the segments of a kernel."""

    number: int
    stmts: n.Block


@dataclass(frozen=True, eq=False)
class Total:
    """An atomic sum of all lanes' values into one element."""

    s: n.Atomic


Part = n.Stmt | Segment | Total


@dataclass
class Together:
    """How a kernel is cut.

    parts: by the identity of each block where lanes are together. varying: variables with a value
    for each lane; kept: those that outlive a segment. votes: conditionals (by identity) before
    which it is asked whether the lanes agree. stacks: those that hold a value for each lane.
    ahead: bytes that short inner loops save, at most, for a block of lanes.
    """

    width: int = 0
    parts: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    varying: set[n.Var] = field(default_factory=set)
    kept: dict[n.Var, None] = field(default_factory=dict)
    votes: set[int] = field(default_factory=set)
    stacks: set[int] = field(default_factory=set)
    ahead: int = 0


def together(fn: n.Function, facts: Mapping[int, Facts]) -> Together | None:
    """How to run a kernel for a block of threads; None where that cannot be, or is no gain."""
    if fn.watch or not facts[id(fn)].tids or not _loops(fn.body) or weight(fn.body) > MOST:
        return None
    if not _suits(fn, facts) or not all(_bounded(fn)):
        return None
    ways = _Ways(fn, facts[id(fn)])
    if not ways.found() or any(_size(v.type) > _WIDE for v in ways.varying):
        return None
    cut = _Cut(fn, ways)
    cut.block(fn.body, 0, False)
    if not cut.worth or cut.copies or by_rows(fn, ways.varying):
        return None
    return cut.finished()


def _loops(block: n.Block) -> bool:
    return any(isinstance(s, (n.For, n.While)) for s in n.walk(block))


def _matters(s: n.If) -> bool:
    """Whether it pays to ask the lanes whether they agree on a condition."""
    return any(isinstance(x, (n.For, n.While, n.Return)) for x in n.walk((s,)))


def _suits(fn: n.Function, facts: Mapping[int, Facts]) -> bool:
    """Whether there is no statement that a block of threads cannot do."""
    adds = 0
    for s in n.walk(fn.body):
        if isinstance(s, (n.JournalRead, n.JournalWrite, n.Message)):
            return False
        if isinstance(s, n.Call):
            if facts[id(s.func)].context or any(f.native for f in (s.func, *n.callees(s.func))):
                return False
            adds += 2 * n.writes_memory(s.func)
        if isinstance(s, n.Atomic):
            if s.kind not in ("add", "sub") or s.dst is not None:
                return False
            adds += 1
    # Sums are part of an array's value, and a launch has one, in whatever form it runs. Lanes
    # would add in another order, but for a single sum outside of loops.
    if fn.adjoints or adds == 0:
        return True
    inside = (x for s in n.walk(fn.body) if isinstance(s, (n.For, n.While)) for b in n.blocks_of(s)
              for x in n.walk(b))  # fmt: skip
    return adds == 1 and not any(isinstance(x, n.Atomic) for x in inside)


def _bounded(fn: n.Function) -> Iterator[bool]:
    """For each push in a loop in a loop: whether it is known beforehand what that loop saves.

    Such pushes follow effects, after which a block cannot be given up.
    """
    reserved = any(isinstance(s, n.Reserve) for s in n.walk(fn.body))

    def pushes(block: n.Block, loops: tuple[n.Stmt, ...]) -> Iterator[bool]:
        for s in block:
            if isinstance(s, n.Push) and len(loops) > 1:
                last = loops[-1]
                short = isinstance(last, n.For) and last.var.type.size < 4  # type: ignore[union-attr]
                yield constant_trips(last) is not None or (reserved and not short)
            inner = (*loops, s) if isinstance(s, (n.For, n.While)) else loops
            for b in n.blocks_of(s):
                yield from pushes(b, inner)

    yield from pushes(fn.body, ())


def _size(t: Type) -> int:
    return 0 if isinstance(t, ArrayType) else t.size


def has_effect(block: Sequence[n.Stmt]) -> bool:
    """Whether statements change memory."""
    return any(
        isinstance(s, (n.Store, n.Atomic)) or (isinstance(s, n.Call) and n.writes_memory(s.func))
        for s in n.walk(tuple(block))
    )


def _by_number(s: n.Stmt) -> bool:
    """Whether it is about one component of a value, which one is not known before."""
    return isinstance(s, n.Let) and computed(indices(s))


class _Ways:
    """Where the lanes are together, and which variables are the same for all: a fixed point."""

    def __init__(self, fn: n.Function, facts: Facts) -> None:
        self.fn = fn
        self.last = facts.axes - 1
        self.varying: set[n.Var] = set()
        self.apart: set[int] = set()  # conditionals and loops (by identity) that lanes go alone
        self.votes: set[int] = set()
        self.stacks: set[int] = set()
        self.agreed: dict[n.Var, frozenset[object]] = {}
        self.path: frozenset[object] = frozenset()
        self.effects = self.refused = False

    def found(self) -> bool:
        """Looks at the kernel until nothing changes. False where it cannot run in blocks."""
        before = None
        while before != (now := (len(self.varying), len(self.apart), len(self.stacks))):
            before = now
            self.votes, self.agreed, self.effects = set(), {}, False
            self.block(self.fn.body, True)
        return not self.refused

    def same(self, a: n.Atom) -> bool:
        return not isinstance(a, n.Var) or a not in self.varying

    def block(self, block: n.Block, here: bool) -> bool:
        """Looks at a block. here: lanes are together. False if some may leave it alone."""
        stays = True
        for s in block:
            stays &= self.stmt(s, here)
        return stays

    def stmt(self, s: n.Stmt, here: bool) -> bool:
        if isinstance(s, n.If):
            return self.branch(s, here)
        if isinstance(s, (n.For, n.While)):
            self.loop(s, here)
            return True
        if isinstance(s, (n.Break, n.Continue)):
            return here
        if isinstance(s, (n.Return, n.Reserve)):
            self.refused |= not here or not all(map(self.same, n.uses_of(s)))
        elif isinstance(s, n.Push):
            self.refused |= not here
            if not self.same(s.value):
                self.stacks.add(s.stack)
        elif isinstance(s, n.Pop):
            self.refused |= not here
            if s.stack in self.stacks or s.dst in self.varying:
                self.stacks.add(s.stack)
                self.varying.add(s.dst)
        elif isinstance(s, n.Call):
            self.varying.update(s.dsts)
        elif isinstance(s, (n.Let, n.Set, n.Load)):
            own = isinstance(s, n.Let) and (s.op == "thread" or (s.op == "tid" and self.moves(s)))
            if own or not here or not all(map(self.same, n.uses_of(s))):
                self.varying.update(n.defs_of(s))
        self.effects |= not s.NESTED and has_effect((s,))
        return True

    def moves(self, s: n.Let) -> bool:
        """Whether a coordinate is the one in which lanes differ."""
        a = s.args[0]
        return isinstance(a, n.Const) and a.value == self.last

    def branch(self, s: n.If, here: bool) -> bool:
        inner = here
        if here and not self.same(s.cond):
            known = self.agreed.get(s.cond) if isinstance(s.cond, n.Var) else None
            if known is None or not known <= self.path:
                inner = not self.effects and _matters(s) and id(s) not in self.apart
                if inner:
                    self.votes.add(id(s))
                    if isinstance(s.cond, n.Var) and not s.cond.mutable:
                        self.agreed[s.cond] = self.path
        if not inner:
            self.apart.add(id(s))
        outer, stays = self.path, True
        for k, b in enumerate((s.then, s.orelse)):
            lasts = not (isinstance(s.cond, n.Var) and s.cond.mutable)
            self.path = outer | {(s.cond if lasts else id(s), k)}
            stays &= self.block(b, inner)
        self.path = outer
        return stays

    def loop(self, s: n.For | n.While, here: bool) -> None:
        self.effects |= any(has_effect(b) for b in n.blocks_of(s))
        outer, self.path = self.path, self.path | {id(s)}
        here = here and id(s) not in self.apart
        if isinstance(s, n.For):
            here = here and all(map(self.same, (s.start, s.stop, s.step)))
            if not here:
                self.varying.add(s.var)
            stays = self.block(s.body, here)
        else:
            stays = self.block(s.test, here)
            here = here and self.same(s.cond)
            stays &= self.block(s.body, here)
        if not (here and stays):
            self.apart.add(id(s))
        self.path = outer


class _Cut:
    """Cuts the blocks where lanes are together into parts."""

    def __init__(self, fn: n.Function, ways: _Ways) -> None:
        self.fn = fn
        self.ways = ways
        self.out = Together(varying=ways.varying, votes=ways.votes, stacks=ways.stacks)
        self.segments = 0
        self.coordinates = _coordinates(fn)
        # Where each variable occurs: numbers of segments, -1 for what is no segment.
        self.places: dict[n.Var, set[int]] = {}
        self.open: list[n.Stmt] = []
        self.later: list[n.Stmt] = []  # effects after the open segment
        self.parts: list[Part] = []
        self.worth = False
        self.copies = False  # values are copied for one component, in each turn of a loop
        self.depth = 0

    def block(self, block: n.Block, depth: int, long: bool) -> None:
        """Cuts a block. depth: loops around it. long: one of them is worth it."""
        outer = self.open, self.later, self.parts, self.depth
        self.open, self.later, self.parts, self.depth = [], [], [], depth
        for s in block:
            self.stmt(s, depth, long)
        self.flush()
        if long and any(isinstance(p, Segment) for p in self.parts):
            self.worth = True
        self.out.parts[id(block)] = tuple(self.parts)
        self.open, self.later, self.parts, self.depth = outer

    def flush(self) -> None:
        if self.open:
            self.segment(tuple(self.open))
        for s in self.later:
            if self.is_total(s):
                assert isinstance(s, n.Atomic)
                self.parts.append(Total(s))
                self.note(s.value, -1)
            else:
                self.segment((s,))
        self.open, self.later = [], []

    def segment(self, stmts: n.Block) -> None:
        self.parts.append(Segment(self.segments, stmts))
        self.copies |= self.depth > 0 and any(map(_by_number, stmts))
        for s in n.walk(stmts):
            for a in (*n.defs_of(s), *n.uses_of(s)):
                self.note(a, self.segments)
        first = {s.dst for s in stmts if isinstance(s, n.Set)}
        for s in stmts:
            for x in n.walk((s,)):
                for a in n.uses_of(x):
                    # What is read before it is set comes from the turn before.
                    if isinstance(a, n.Var) and a.mutable and a in first:
                        first.discard(a)
                        self.note(a, -1)
            if isinstance(s, n.Set):
                first.discard(s.dst)
        for v in n.set_in(stmts):
            if not any(isinstance(s, n.Set) and s.dst == v for s in stmts):
                self.note(v, -1)
        self.segments += 1

    def note(self, a: n.Atom, place: int) -> None:
        if isinstance(a, n.Var) and a in self.ways.varying:
            self.places.setdefault(a, set()).add(place)

    def is_total(self, s: n.Stmt) -> bool:
        return (
            isinstance(s, n.Atomic)
            and bool(self.fn.adjoints)
            and all(map(self.ways.same, (*s.index, *s.path)))
            and scalar_of(s.value.type).bits >= 32
            and not self.ways.same(s.value)
        )

    def stmt(self, s: n.Stmt, depth: int, long: bool) -> None:
        if s.NESTED and id(s) not in self.ways.apart:
            self.flush()
            if isinstance(s, n.If):
                self.note(s.cond, -1)
            self.parts.append(s)
            inner = isinstance(s, (n.For, n.While))
            for b in n.blocks_of(s):
                self.block(b, depth + inner, long or (inner and self.is_long(s)))
            return
        if isinstance(s, (n.Push, n.Pop, n.Reserve, n.Return, n.Break, n.Continue)):
            self.flush()
            self.parts.append(s)
            for a in (*n.defs_of(s), *n.uses_of(s)):
                self.note(a, -1)
            return
        if not any(v in self.ways.varying for v in n.defs_of(s)) and isinstance(
            s, (n.Let, n.Set, n.Load)
        ):
            # The threads of a block may be one: it reads what it wrote.
            if isinstance(s, n.Set) or (isinstance(s, n.Load) and self.is_changed(s.array)):
                self.flush()
            self.parts.append(s)
            return
        if isinstance(s, n.Let) and s.op in ("tid", "thread"):
            return  # each segment has it
        if has_effect((s,)):
            self.later.append(s)
            return
        if self.later and self.must_wait(s):
            self.flush()
        self.open.append(s)

    def is_changed(self, array: n.Var) -> bool:
        """Whether effects that are still to come may write to an array."""
        return any(
            isinstance(s, n.Call) or (isinstance(s, (n.Store, n.Atomic)) and s.array == array)
            for s in n.walk(tuple(self.later))
        )

    def must_wait(self, s: n.Stmt) -> bool:
        """Whether a statement must run after the effects before it: it may read what they wrote."""
        if any(not isinstance(x, (n.Let, n.Set)) for x in n.walk((s,))):
            return True
        later = list(n.walk(tuple(self.later)))
        defined = {v for e in later for v in n.defs_of(e)}
        used = {a for e in later for a in n.uses_of(e)}
        return bool(
            defined.intersection(n.uses_of(s)) or (defined | used).intersection(n.defs_of(s))
        )

    def is_long(self, s: n.Stmt) -> bool:
        trips = constant_trips(s)
        return trips is None or trips >= TURNS

    def finished(self) -> Together | None:
        """All of it, with the widest block whose values the cache holds."""
        out = self.out
        for v, places in self.places.items():
            if (len(places) > 1 or -1 in places) and v not in self.coordinates:
                out.kept[v] = None
        size = sum(_size(v.type) for v in out.kept)
        out.width = next((w for w in WIDTHS if w * size <= KEPT), 0)
        out.ahead = sum(self.saved(self.fn.body, 0, 1)) * out.width
        return out if out.width else None

    def saved(self, block: n.Block, depth: int, trips: int | None) -> Iterator[int]:
        """Bytes that pushes in inner loops of constant length take, for each lane."""
        for s in block:
            if isinstance(s, n.Push) and depth > 1 and trips is not None:
                yield trips * (-(-_size(s.value.type) // 8) * 8)
            inside = isinstance(s, (n.For, n.While))
            for b in n.blocks_of(s):
                yield from self.saved(b, depth + inside, constant_trips(s) if inside else trips)


def _coordinates(fn: n.Function) -> set[n.Var]:
    return {s.dst for s in n.walk(fn.body) if isinstance(s, n.Let) and s.op in ("tid", "thread")}
