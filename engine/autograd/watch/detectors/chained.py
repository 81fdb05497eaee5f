"""Finds tapes that others continue and that never run backward: their inputs get no gradient.

One tape computes an array from parameters, another one reads it and runs backward, so that the
array has a gradient; nobody hands that on to the first tape. It is a fault where the program then
reads a gradient of those parameters, which no pass has ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import islice
from weakref import WeakSet, ref

from engine.autograd.facts import Broken
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.program import Program
from engine.autograd.watch.reach import Edge, Leaf, Reach, has_gradient
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.diagnostics.site import Site, call_site
from engine.runtime.array import array
from engine.tape.backward import Pass
from engine.tape.outline import root_array

_LATEST = 16  # tapes that another one may go on from
_KEPT = 64  # passes that are remembered


@dataclass(frozen=True, eq=False)
class _Link:
    """A tape reads an array that follows from what an earlier one has computed from its inputs.

    reach: those inputs, where that tape has computed the array itself. cut: else, by where the way
    has left that tape. site: the call that reads.
    """

    before: Followed
    array: ref[array]
    reach: Reach
    cut: dict[Edge, set[Leaf]]
    site: Site | None


@dataclass(eq=False)
class _Open:
    """A pass that left a gradient which was not handed on. seen: inputs whose zeros were read.

    cut: where the way to them ends, so that it cannot be.
    """

    before: Followed
    tape: Followed
    name: str
    site: Span | None
    leaves: set[Leaf]
    cut: Edge | None = None
    seen: set[Leaf] = field(default_factory=set)


class Chained(Detector):
    """Follows what tapes hand to each other, and tells of what they do not (`Broken`)."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._links: dict[Followed, list[_Link]] = {}
        self._open: list[_Open] = []
        # Inputs of tapes that have run backward.
        self._done: WeakSet[array] = WeakSet()

    def first_read(self, tape: Followed, a: array) -> None:
        for other in islice(reversed(self.program.tapes.values()), _LATEST):
            if other is tape or other.tape.passes or other.paths is None:
                continue
            reach = other.paths.reach(a)
            cut: dict[Edge, set[Leaf]] = {}
            for leaf, edge in reach.cut:
                if edge.kind != "cast":  # of which that tape would tell itself
                    cut.setdefault(edge, set()).add(leaf)
            if reach.is_smooth or cut:
                link = _Link(other, ref(a), reach, cut, call_site())
                self._links.setdefault(tape, []).append(link)

    def ended(self, tape: Followed, run: Pass) -> None:
        self._done.update(map(root_array, tape.inputs))
        for p in self._open:
            p.leaves -= {x for x in p.leaves if self._reached(x, p.cut)}
        self._open = [
            p for p in self._open
            if (p.cut is not None or p.before is not tape) and (p.leaves or p.seen)
        ]  # fmt: skip
        for link in self._links.pop(tape, ()):
            a = link.array()
            if a is None or not has_gradient(Leaf(0, "", link.array)):
                continue
            name = "" if tape.paths is None else tape.paths.name_of(a)
            site = None if run.site is None else run.site.span
            if not link.before.tape.passes:
                self._add(_Open(link.before, tape, name, site, set(link.reach.leaves)))
            back = None if link.site is None else link.site.span
            for edge, leaves in link.cut.items():
                self._add(_Open(link.before, tape, "", back, set(leaves), edge))

    def _add(self, p: _Open) -> None:
        p.leaves = {x for x in p.leaves if not self._reached(x, p.cut)}
        if p.leaves and len(self._open) < _KEPT:
            self._open.append(p)

    def _reached(self, leaf: Leaf, cut: Edge | None) -> bool:
        """Whether an input is gone, or a pass has reached it."""
        a = leaf.array()
        return a is None or (self._has_run(a) if cut is None else has_gradient(leaf))

    def _has_run(self, a: array) -> bool:
        return root_array(a) in self._done

    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array]) -> None:
        for p in self._open:
            for leaf in p.leaves - p.seen:
                b = leaf.array()
                grad = None if b is None else b.existing_grad
                read = grad is not None and any(grad.storage is a.storage for a in arrays)
                if read and not has_gradient(leaf):
                    p.seen.add(leaf)

    def closed(self) -> None:
        for p in self._open:
            names = tuple(sorted(x.name for x in p.seen & p.leaves if x.name))
            if names and p.cut is not None:
                at = p.cut.at if p.cut.site is None else p.cut.site.span
                p.tape.tell(Broken(p.cut.kind, p.cut.name, at, names, to=p.site))
            elif names and not p.before.tape.passes:
                p.tape.tell(Broken("tape", p.name, p.site, names))
        self._open.clear()
