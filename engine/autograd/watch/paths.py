"""Finds inputs that a loss depends on by ways without a gradient: copies, launches off the tape.

Followed by whole arrays, while a tape records: what a launch or copy reads is where all that it
writes comes from. A way that leaves the tape and comes back to it is cut where it left.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import ref

from engine.ad.cuts import Flow
from engine.autograd.facts import Broken, Recorded
from engine.autograd.watch.names import Names
from engine.autograd.watch.places import Geometry, WeakPlaces, geometry
from engine.autograd.watch.reach import NONE, Edge, Kind, Leaf, Reach, ReachMap, has_gradient
from engine.diagnostics.callers import call_at, copied, text
from engine.diagnostics.site import Site, call_site, definition_of
from engine.runtime.array import array
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import BoundLaunch
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape
from engine.tape.outline import root_of
from engine.tape.records.record import Record


class Paths:
    """The ways of one tape, from its first record to its first backward pass.

    Records are followed when somebody asks, or does something beside the tape: of most tapes,
    nothing can be cut, and nobody asks.
    """

    def __init__(self, tape: CapturedTape, names: Names) -> None:
        self._tape = tape
        self._names = names
        self._map = ReachMap()
        # What was recorded: the same off the tape evaluates it again, and cuts nothing.
        self._recorded: set[tuple[object, ...]] = set()
        self._looked = 0  # captured records of the tape that are in there
        self._followed = 0  # records
        self._leaves: dict[tuple[int, Geometry], Leaf] = {}
        self._ways: dict[Plan, _Ways] = {}
        # What was written beside the tape by ways that are cut, and where the tape reads it first.
        self._away: WeakPlaces[Edge] = WeakPlaces()
        self._back: dict[Edge, Site] = {}

    # ---- on the tape

    def follow(self, records: Sequence[Record]) -> None:
        """Follows what the tape has recorded by now. records: all of the tape."""
        for number in range(self._followed, len(records)):
            self._recorded_on(records[number])
        self._followed = max(self._followed, len(records))

    def _recorded_on(self, record: Record) -> None:
        launch, site = record.launch, record._site
        if launch is not None:
            plan = launch.plan
            for i in plan.inputs if self._away else ():
                if launch.values[i] is not None:
                    self._returned(launch.values[i], site)
            self._ran(plan, launch.values, lambda i: self._names.of(site, plan, i), launch.fills)
            return
        # All that others compute depends on all that they read. What a function of the user's
        # computes is not known: nothing is said of it.
        found = NONE
        for i, x in enumerate(record.operands()):
            self._returned(x.of, site)
            found |= self._passed(record, x.of, self._read(x.of, lambda _: _copied_text(record), i))
        for a in (*record.written, *record.declared):
            self._map.add(a, self._passed(record, a, found), True, True)

    def _passed(self, record: Record, a: array, reach: Reach) -> Reach:
        """What goes through an array of a record: it is cut where that has no gradient."""
        if a.requires_grad or not reach:
            return reach
        return reach.cut_at(Edge("copy", _call_text(record._site), record._site))

    def _ran(
        self, plan: Plan, values: Sequence[Any], name: Callable[[int], str],
        fills: Callable[[array], bool],
    ) -> None:  # fmt: skip
        ways = self._ways_of(plan)
        found = {}
        for i in plan.inputs:
            if values[i] is not None:
                reach = self._read(values[i], name, i)
                if reach:
                    found[i] = reach
        reached = []
        for way in ways.ways:
            reach = NONE
            for k, edge in way:
                known = found.get(k)
                if known is not None:
                    reach |= known if edge is None else known.cut_at(edge)
            reached.append(reach)
        # Before any of them is written.
        cut = self._map.any_cut
        out = [
            (a, reached[number], cut and self._map.of(a).is_cut and fills(a))
            for i, number in ways.writes if (a := values[i]) is not None
        ]  # fmt: skip
        for a, reach, whole in out:
            self._map.add(a, reach, whole, True)

    def _ways_of(self, plan: Plan) -> _Ways:
        ways = self._ways.get(plan)
        if ways is None:
            ways = self._ways[plan] = _ways(plan)
        return ways

    def _read(self, a: array, name: Callable[[int], str], index: int = 0) -> Reach:
        out, computed = self._map.look(a)
        if not computed and a.requires_grad:
            root, whole = root_of(a), a if a._whole is None else a._whole
            leaf = self._leaves.get((root, geometry(a)))
            if leaf is None or leaf.array() is not whole:
                leaf = self._leaves[root, geometry(a)] = Leaf(root, name(index), ref(whole))
            out |= Reach(frozenset({leaf}))
        return out

    def _left(self, a: array, edge: Edge) -> None:
        """An array was written beside the tape."""
        self._away.at(a.storage).put(a, edge)

    def _returned(self, a: array, site: Site | None) -> None:
        """The tape reads an array."""
        known = self._away.get(a.storage)
        if known is not None and site is not None:
            for edge in known.meeting(a):
                self._back.setdefault(edge, site)

    def reach(self, a: array) -> Reach:
        """The inputs of the tape that an array depends on."""
        self.follow(self._tape.live)
        return self._map.of(a)

    def name_of(self, a: array) -> str:
        """What the user calls an input of the tape; empty where that is not known."""
        self.follow(self._tape.live)
        known = self._leaves.get((root_of(a), geometry(a)))
        return "" if known is None else known.name

    def depends(self, a: array) -> bool:
        """Whether an array depends on an input of the tape."""
        self.follow(self._tape.live)
        return bool(self._map.of(a))

    # ---- beside it

    def unrecorded(self, launch: BoundLaunch) -> None:
        """A launch ran off the tape."""
        self.follow(self._tape.live)
        plan, values, site = launch.plan, launch.values, launch.site
        if self._was_recorded(_ran(plan, values)):
            self._ran(plan, values, lambda i: plan.params[i].name, lambda _: False)
            return
        reach = NONE
        for i in plan.inputs:
            if values[i] is not None and values[i]._info.floating:
                reach |= self._map.of(values[i])
        edge = Edge("launch", plan.kernel.key, site)
        reach = reach.cut_at(edge)
        for i in plan.writes:
            a = values[i]
            if a is not None and a._info.floating and (reach or self._map.of(a)):
                self._map.add(a, reach, False)
                if reach:
                    self._left(a, edge)

    def replayed(self, launch: BoundLaunch, at: Site | None, kind: Kind) -> None:
        """A graph or command launched a kernel in the block of the tape, which records none of it.

        at: the call that launched the graph or command.
        """
        self.follow(self._tape.live)
        plan, values, site = launch.plan, launch.values, launch.site
        if self._was_recorded(_ran(plan, values)):
            self._ran(plan, values, lambda i: self._names.of(site, plan, i), lambda _: False)
            return
        reach = NONE
        for i in plan.inputs:
            if values[i] is not None and values[i]._info.floating:
                reach |= self._read(values[i], lambda i: self._names.of(site, plan, i), i)
        reach = reach.cut_at(Edge(kind, plan.kernel.key, at))
        for i in plan.writes:
            a = values[i]
            if a is not None and a._info.floating:  # what it adds to, it does not depend on
                own = root_of(a)
                others = Reach(NONE.leaves, frozenset(x for x in reach.cut if x[0].root != own))
                self._map.add(a, others, False, True)

    def replayed_copy(self, dest: array, src: array, at: Site | None) -> None:
        """A captured graph made a copy there."""
        self.follow(self._tape.live)
        if self._was_recorded(_copied(dest, src)):
            self._map.add(dest, self._read(src, str), True, True)
        elif dest._info.floating:
            reach = self._read(src, lambda _: "").cut_at(Edge("graph", "", at))
            self._map.add(dest, reach, True, True)

    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        """A copy was made off the tape."""
        self.follow(self._tape.live)
        reach = NONE
        if self._was_recorded(_copied(dest, src)):
            self._map.add(dest, self._read(src, str), True, True)
            return
        if dest._info.floating and not meant:
            site = call_site(3)
            reach = self._map.of(src)
            if clone and src.requires_grad and not self._map.look(src)[1]:
                leaf = Leaf(root_of(src), _argument_text(site), ref(src._whole or src))
                reach |= Reach(frozenset({leaf}))
            kind: Kind = "clone" if clone else "copy"
            edge = Edge(kind, _call_text(site), site)
            reach = reach.cut_at(edge)
            if reach:
                self._left(dest, edge)
        if reach or self._map.of(dest):
            self._map.add(dest, reach, True)

    def filled(self, dest: array) -> None:
        """All elements of an array got one value, off the tape: nothing flows to it."""
        self.follow(self._tape.live)
        if self._map.of(dest):
            self._map.add(dest, NONE, True)

    def _was_recorded(self, what: tuple[object, ...]) -> bool:
        records = self._tape.records
        for number in range(self._looked, len(records)):
            r = records[number]
            if r.launch is not None:
                self._recorded.add(_ran(r.launch.plan, r.launch.values))
            elif r.copied is not None:
                self._recorded.add(_copied(*r.copied))
        self._looked = len(records)
        return what in self._recorded

    # ---- at its backward pass

    def broken(self, run: Pass) -> Iterator[Broken]:
        """Ways to what the pass starts from that are cut; to be asked after it."""
        if not (self._map.any_cut or any(map(self._cuts, run.records[self._followed :]))):
            return
        self.follow(run.records)
        cut: dict[Edge, list[Leaf]] = {}
        for a, _ in run.seeds:
            for leaf, edge in self._map.of(a).cut:
                cut.setdefault(edge, []).append(leaf)
        if not cut:
            return
        smooth = {x.root for a, _ in run.seeds for x in self._map.of(a).leaves}
        for edge, leaves in cut.items():
            if edge.kind == "cast":
                # Where there is another way, what is cut may well be a true zero.
                leaves = [x for x in leaves if x.root not in smooth]
                if not leaves:
                    continue
            names = sorted(_sources(edge, {x.name for x in leaves if x.name}))
            partial = all(map(has_gradient, leaves))
            site = edge.at if edge.site is None else edge.site.span
            back = self._back.get(edge)
            to = None if back is None else back.span
            yield Broken(edge.kind, edge.name, site, tuple(names), partial, to)

    def _cuts(self, record: Record) -> bool:
        """Whether a record can be where a way leaves the tape."""
        if record.launch is not None:
            return self._ways_of(record.launch.plan).cut
        reads = [x.of for x in record.operands()]
        return bool(reads) and not all(a.requires_grad for a in (*reads, *record.written))


def _sources(edge: Edge, names: set[str]) -> set[str]:
    """What the user calls those that a result depends on by a cut: after `h = array(o.numpy())`,
    `h` is the copy, and what had that name before is known by `o`.
    """
    into, source = copied(edge.site) if edge.kind in ("copy", "clone") else ("", "")
    return (names - {into}) | {source} if into in names and source else names


# Methods of arrays that read them.
_READS = ("numpy", "list", "item", "tolist", "__array__")


class _Ways(NamedTuple):
    """What a kernel's arrays depend on, by the positions of its parameters.

    ways: the arrays that something depends on, each with where it is cut, None for nowhere.
    writes: what is written, and which of the ways is its own. cut: whether any is.
    """

    ways: list[tuple[tuple[int, Edge | None], ...]]
    writes: list[tuple[int, int]]
    cut: bool


def _ways(plan: Plan) -> _Ways:
    flows, params = plan.variants.flows, plan.params
    ways: dict[tuple[tuple[int, Edge | None], ...], int] = {}
    writes = []
    for i in plan.writes:
        way: list[tuple[int, Edge | None]] = []
        for k in plan.inputs:
            flow = None if flows is None else flows.get((params[k].name, params[i].name))
            if flow is not None or flows is None:
                way.append((k, None if flow is None or flow.smooth else _cast(flow)))
        writes.append((i, ways.setdefault(tuple(way), len(ways))))
    cut = any(edge is not None for way in ways for _, edge in way)
    return _Ways(list(ways), writes, cut)


def _ran(plan: Plan, values: Sequence[Any]) -> tuple[object, ...]:
    """Equal for launches of one kernel with the same arrays."""
    arrays = (values[p.index] for p in plan.array_params)
    return id(plan), *(None if a is None else geometry(a) for a in arrays)


def _copied(dest: array, src: array) -> tuple[object, ...]:
    return geometry(dest), geometry(src)


def _cast(flow: Flow) -> Edge:
    """The first operation of a kernel without a derivative, on the way between two arrays."""
    if not flow.cuts:
        return Edge("cast", "", None)
    first = flow.cuts[0]
    return Edge("cast", first.operation, None, first.span)


def recorded_function(record: Record) -> Recorded:
    """A function given to `record_func`, with the place of its definition."""
    f: Any = record.function
    f = getattr(f, "func", f)
    code = getattr(f, "__code__", None) or getattr(getattr(f, "__func__", None), "__code__", None)
    code = code or getattr(getattr(type(f), "__call__", None), "__code__", None)  # noqa: B004
    return Recorded(record.name, None if code is None else definition_of(code), record.site)


def read_name(site: Site) -> str:
    """What the user calls the array that a host read is of: `x` in `x.numpy()`, `np.asarray(x)`."""
    call = call_at(site)
    if call is None:
        return ""
    f = call.func
    if isinstance(f, ast.Attribute) and f.attr in _READS:
        return text(f.value)
    return text(call.args[0]) if call.args else ""


def _copied_text(record: Record) -> str:
    """What the user calls what a copy was made of."""
    return "" if record.copied is None else _argument_text(record._site)


def _argument_text(site: Site | None) -> str:
    """The first argument of a call."""
    call = call_at(site)
    return text(call.args[0]) if call is not None and call.args else ""


def _call_text(site: Site | None) -> str:
    """The call itself."""
    call = call_at(site)
    return text(call) if call is not None else ""
