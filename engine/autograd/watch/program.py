"""What detectors know together of a program: its tapes, and what happened to its arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import get_ident

from engine.autograd.facts import Fact
from engine.autograd.watch.creations import Creations
from engine.autograd.watch.detector import EVENTS, Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.moved import Touches
from engine.autograd.watch.names import Names
from engine.autograd.watch.paths import Paths
from engine.autograd.watch.places import WeakPlaces
from engine.autograd.watch.writes import Writes
from engine.diagnostics import Span
from engine.runtime.array import array
from engine.runtime.events import PassedOver
from engine.tape.capture import CapturedTape, Monitor, active_tape, passed_over
from engine.tape.records.record import Record

_ALL = -1  # no thread has that number


class Program:
    """One program, and its detectors.

    aside: what launches off the tapes wrote. prelude, early: what the host read before the first
    tape recorded anything. facts: what is known of no tape. tapes: in the order in which they
    recorded first. passes: the tapes that run backward, by thread. gone: tapes that have forgotten
    their records, to be looked at when no other thread is here.
    """

    def __init__(self, monitor: Monitor, detectors: Iterable[type[Detector]]) -> None:
        self.writes = Writes()
        self.names = Names()
        self.creations = Creations()
        self.aside: WeakPlaces[None] = WeakPlaces()
        self.prelude = Touches()
        self.early: list[tuple[array, Span, str]] = []
        self.facts: list[Fact] = []
        self.tapes: dict[int, Followed] = {}
        self.passes: dict[int, Followed] = {}
        self.gone: list[tuple[CapturedTape, Sequence[Record]]] = []
        self.closed = False
        self._monitor = monitor
        # The tape that recorded last: of each thread, and of all.
        self._last: dict[int, Followed] = {}
        self._not_run: list[Followed] = []
        made = [kind(self) for kind in detectors]
        self._listeners = {
            event: tuple(d for d in made if getattr(type(d), event) is not getattr(Detector, event))
            for event in EVENTS
        }

    def listeners(self, event: str) -> tuple[Detector, ...]:
        """The detectors that have a method for an event, in the order of their names."""
        return self._listeners[event]

    @property
    def busy(self) -> bool:
        """Whether what happens now is part of a backward pass, or too late."""
        return self.closed or get_ident() in self.passes

    # ---- its tapes

    def of(self, tape: CapturedTape) -> Followed:
        """What is known of a tape."""
        if self.gone:
            self.look_at_gone()
        found = self.tapes.get(id(tape))
        if found is None:
            found = self.tapes[id(tape)] = Followed(tape, self.names, self.creations)
            self._not_run.append(found)
            if len(self.tapes) == 1 and tape.index == 0:
                found.touches = self.prelude
                found.touches.begin()
        return found

    def look_at_gone(self) -> None:
        """Looks at tapes that have forgotten their records, while these are there."""
        while self.gone:
            tape, records = self.gone.pop()
            followed = self.tapes.get(id(tape))
            if followed is not None:
                if followed.paths is not None:
                    followed.paths.follow(records)
                for d in self.listeners("forgetting"):
                    d.forgetting(followed, records)

    def recording(self, tape: CapturedTape) -> Followed:
        """What is known of a tape, which records now."""
        followed = self._last[get_ident()] = self._last[_ALL] = self.of(tape)
        return followed

    def running(self, tape: Followed) -> None:
        """A tape runs backward, in this thread."""
        self.passes[get_ident()] = tape
        self._last = {k: f for k, f in self._last.items() if f is not tape}

    def has_run(self, tape: Followed) -> None:
        """A tape has run backward."""
        if tape.paths is not None:
            tape.paths = None
            self._not_run = [f for f in self._not_run if f is not tape]

    def current(self) -> Followed | None:
        """The tape that what happens now belongs to: it records, or did last and is to run."""
        if self.busy:
            return None
        tape = active_tape(self._monitor)
        if tape is not None:
            return self.of(tape)
        return self._last.get(get_ident()) or self._last.get(_ALL)

    @property
    def is_recorded(self) -> bool:
        """Whether some tape has recorded something, or does now."""
        return bool(self.tapes) or active_tape(self._monitor) is not None

    def others(self, tape: Followed) -> bool:
        """Whether there are tapes that this one may go on from."""
        return len(self._not_run) > 1 and any(
            f is not tape and f.paths is not None for f in self._not_run
        )

    def open_paths(self) -> Iterator[Paths]:
        """The ways of all tapes that have not run backward, and may."""
        for f in list(self._not_run):
            if f.paths is not None and f.tape.gone:
                f.paths = None
            if f.paths is None:
                self._not_run.remove(f)
            else:
                yield f.paths

    def passed_over(self) -> tuple[Followed, PassedOver] | None:
        """The tape in whose block a graph or command runs, and what that is."""
        found = passed_over(self._monitor)
        return None if found is None else (self.of(found[0]), found[1])
