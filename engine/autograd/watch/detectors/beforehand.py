"""Finds launches before a tape whose results the tape reads: their inputs get no gradient.

A simulation may well be warmed up off the tape. It is a fault where somebody asked for the gradient
of an input that no tape ever reads, and finds zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import ref

from engine.autograd.facts import Broken, Sought
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.paths import read_name
from engine.autograd.watch.places import Weak
from engine.autograd.watch.program import Program
from engine.autograd.watch.reach import NONE, Edge, Leaf, Reach, ReachMap, has_gradient
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.plan_parts import BoundLaunch
from engine.tape.outline import root_array, root_of
from engine.tape.records.record import Record

_KEPT = 256  # inputs of each kind that are kept alive, to be looked at later


class Beforehand(Detector):
    """Follows what launches off the tape compute from arrays that require a gradient.

    Records of tapes are looked at only when they are needed, until such a launch runs. Inputs that
    only the host read before the first tape need another run of the program (`Sought`).
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._map = ReachMap()
        # By root, with a bit for each (see `Reach`).
        self._inputs: dict[int, array] = {}
        self._bits: dict[int, int] = {}
        self._taped: Weak[None] = Weak()
        # Tapes that recorded something since they were looked at, and how much was looked at.
        self._behind: dict[Followed, None] = {}
        self._followed: dict[Followed, int] = {}
        self._used: dict[tuple[Leaf, Edge], tuple[Followed, Site | None]] = {}

    def unrecorded(self, launch: BoundLaunch) -> None:
        if self.program.passed_over() is not None:
            return  # the tape tells of it, to which it belongs
        self._catch_up()
        plan, values, site = launch.plan, launch.values, launch.site
        reach = NONE
        for i in plan.inputs:
            a = values[i]
            if a is None or not a._info.floating:
                continue
            reach |= self._map.of(a)
            root = root_of(a)
            if a.requires_grad and root_array(a) not in self._taped and len(self._inputs) < _KEPT:
                whole = self._inputs.setdefault(root, a._whole or a)
                leaf = Leaf(root, self.program.names.of(site, plan, i), ref(whole))
                bit = self._bits.setdefault(root, 1 << len(self._bits))
                reach |= Reach(frozenset({leaf}), bits=bit)
        reach = reach.cut_at(Edge("launch", plan.kernel.key, site)).flat()
        for i in plan.writes:
            a = values[i]
            if a is not None and a._info.floating:
                own, kept = root_of(a), reach
                bit = self._bits.get(own, 0)
                if reach.bits & bit:
                    others = frozenset(x for x in reach.cut if x[0].root != own)
                    kept = Reach(NONE.leaves, others, reach.bits & ~bit)
                if kept or self._map.of(a):
                    self._map.add(a, kept, False)

    def lent(self, a: array, site: Site | None) -> None:
        program = self.program
        if program.is_recorded or program.busy or not a.requires_grad or site is None:
            return
        if len(program.early) < _KEPT:
            program.prelude.touch(a, True, program.aside.meets(a))
            program.early.append((root_array(a), site.span, read_name(site)))

    def recorded(self, tape: Followed, record: Record) -> None:
        if self._map.empty:
            self._behind[tape] = None
        else:
            self._follow(tape, tape.tape.live)
            self._take(tape, record)
            self._followed[tape] += 1

    def forgetting(self, tape: Followed, records: Sequence[Record]) -> None:
        self._follow(tape, records)

    def pass_over(self, tape: Followed, done: bool) -> None:
        self._look_back()

    def closed(self) -> None:
        self._look_back()

    def _follow(self, tape: Followed, records: Sequence[Record]) -> None:
        """Looks at what a tape has recorded by now. records: all of it."""
        self._behind.pop(tape, None)
        known = self._followed.get(tape, 0)
        for number in range(known, len(records)):
            self._take(tape, records[number])
        self._followed[tape] = max(known, len(records))

    def _catch_up(self) -> None:
        for tape in list(self._behind):
            self._follow(tape, tape.tape.live)

    def _take(self, tape: Followed, record: Record) -> None:
        beforehand = not self._map.empty
        launch = record.launch
        if launch is not None:
            # A backward pass makes gradients for all arguments, those too that nothing reads:
            # that one is there does not say that somebody asked for it.
            for p in launch.plan.floats:
                a = launch.values[p.index]
                if a is not None and a._flag and a.requires_grad:
                    self._tape(a)
            for i in launch.plan.inputs if beforehand else ():
                a = launch.values[i]
                if a is not None and a._info.floating:
                    for way in self._map.of(a).cut:
                        self._used.setdefault(way, (tape, record._site))
        for a in record.written:
            if beforehand:
                self._map.add(a, NONE, True)
            self._tape(a)

    def _tape(self, a: array) -> None:
        root = a if a._origin is None else root_array(a)
        if root not in self._taped:
            self._taped.put(root, None)

    def _look_back(self) -> None:
        """Tells what is known to be broken by now, each once."""
        if self._used:
            self._catch_up()
        for (leaf, edge), (tape, back) in list(self._used.items()):
            a = leaf.array()
            if a is None or root_array(a) in self._taped:
                del self._used[leaf, edge]
            elif a.existing_grad is not None and not has_gradient(leaf):
                del self._used[leaf, edge]
                site = None if edge.site is None else edge.site.span
                to = None if back is None else back.span
                tape.tell(Broken(edge.kind, edge.name, site, (leaf.name,), to=to))
        self._look_early()

    def _look_early(self) -> None:
        """Looks for inputs that only the host read, before the first tape, and their gradients."""
        first = next((f for f in self.program.tapes.values() if f.tape.index == 0), None)
        if first is None or first.total is None:
            return
        if any(isinstance(f, Sought) for f in first.tape.facts):
            return
        wanted = [x for x in self.program.early if self._forgotten(x[0])]
        if wanted:
            names = tuple(dict.fromkeys(name for _, _, name in wanted if name))
            sites = tuple(dict.fromkeys(span for _, span, _ in wanted))
            first.tell(Sought(0, *first.total, sites, (), names))
            self.program.early.clear()

    def _forgotten(self, a: array) -> bool:
        """Whether no tape read an array, and the program asked for its gradient all the same."""
        self._catch_up()
        if a in self._taped or a.existing_grad is None:
            return False
        return not has_gradient(Leaf(root_of(a), "", ref(a)))
