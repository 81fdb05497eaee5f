"""Tapes that others go on from, and that never run backward: their inputs get no gradient.

One tape computes an array from parameters, another one reads it and runs backward, so that the
array has a gradient; nobody hands that on to the first tape. It is a fault where the program then
reads a gradient of those parameters, which no pass has ever made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Reversible
from dataclasses import dataclass, field
from itertools import islice
from weakref import WeakSet, ref

from engine.autograd.facts import Broken
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.paths import Paths
from engine.autograd.watch.reach import Leaf, Reach, has_gradient
from engine.diagnostics import Span
from engine.runtime.array import array
from engine.tape.capture import CapturedTape, Pass
from engine.tape.outline import root_array

_LATEST = 16  # tapes that another one may go on from
_KEPT = 64  # passes that are remembered


@dataclass(frozen=True, eq=False)
class _Link:
    """A tape reads an array that an earlier one has computed from its inputs."""

    before: CapturedTape
    array: ref[array]
    reach: Reach


@dataclass(eq=False)
class _Open:
    """A pass that left a gradient which was not handed on. seen: inputs whose zeros were read."""

    before: CapturedTape
    tape: CapturedTape
    name: str
    site: Span | None
    leaves: set[Leaf]
    seen: set[Leaf] = field(default_factory=set)


class Chained:
    """Follows what tapes hand to each other."""

    def __init__(self) -> None:
        self._links: dict[int, list[_Link]] = {}
        self._open: list[_Open] = []
        # Inputs of tapes that have run backward.
        self._done: WeakSet[array] = WeakSet()

    def read(self, tape: CapturedTape, a: array, others: Iterable[Followed]) -> None:
        """A tape is about to read an array that it has not computed, for the first time.

        others: the tapes before it, the latest first.
        """
        for other in others:
            if other.tape is tape or other.tape.passes or other.paths is None:
                continue
            reach = other.paths.reach(a)
            if reach.is_smooth:
                link = _Link(other.tape, ref(a), reach)
                self._links.setdefault(tape.index, []).append(link)

    def ended(
        self, tape: CapturedTape, run: Pass, paths: Paths | None, inputs: Iterable[array]
    ) -> None:
        """A tape has run backward. paths: None but for the first time. inputs: of the tape."""
        self._done.update(map(root_array, inputs))
        for p in self._open:
            p.leaves -= {x for x in p.leaves if (a := x.array()) is None or self._has_run(a)}
        self._open = [p for p in self._open if p.before is not tape and (p.leaves or p.seen)]
        for link in self._links.pop(tape.index, ()):
            a = link.array()
            if a is None or link.before.passes or not has_gradient(Leaf(0, "", link.array)):
                continue
            leaves = {x for x in link.reach.leaves if (b := x.array()) and not self._has_run(b)}
            if leaves and len(self._open) < _KEPT:
                name = "" if paths is None else paths.name_of(a)
                site = None if run.site is None else run.site.span
                self._open.append(_Open(link.before, tape, name, site, leaves))

    def _has_run(self, a: array) -> bool:
        return root_array(a) in self._done

    def looked_at(self, a: array) -> None:
        """The program reads an array."""
        for p in self._open:
            for leaf in p.leaves - p.seen:
                b = leaf.array()
                grad = None if b is None else b.existing_grad
                if grad is not None and grad.storage is a.storage and not has_gradient(leaf):
                    p.seen.add(leaf)

    def broken(self) -> Iterator[tuple[CapturedTape, Broken]]:
        """What is broken; to be asked at the end."""
        for p in self._open:
            names = sorted(x.name for x in p.seen & p.leaves if x.name)
            if names and not p.before.passes:
                yield p.tape, Broken("tape", p.name, p.site, tuple(names))
        self._open.clear()


def latest(tapes: Reversible[Followed]) -> Iterator[Followed]:
    """Those that another tape may go on from, the latest first."""
    return islice(reversed(tapes), _LATEST)
