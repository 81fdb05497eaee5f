"""The watcher's knowledge of one tape while the program runs."""

from __future__ import annotations

from collections.abc import Sequence

from engine.autograd.facts import Broken, Recorded, Shared, Sought, Stale
from engine.autograd.watch.accumulated import merged
from engine.autograd.watch.creations import Creations, Read
from engine.autograd.watch.functions import FunctionReads
from engine.autograd.watch.moved import Touches
from engine.autograd.watch.names import Names
from engine.autograd.watch.overwritten import OverwrittenReads
from engine.autograd.watch.paths import Paths
from engine.autograd.watch.recomputed import Recomputed
from engine.autograd.watch.shared import SharedGradients
from engine.autograd.watch.views import View
from engine.diagnostics import Span
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape
from engine.tape.records.record import Record


class Followed:
    """What is known of one tape.

    Which inputs it touched, and what it reads of arrays without a gradient, is found when somebody
    asks (`catch_up`): of most tapes nobody does.
    """

    def __init__(self, tape: CapturedTape, names: Names, creations: Creations) -> None:
        self.tape = tape
        self._creations = creations
        self._seen = 0  # records that were looked at
        self.total: tuple[float, float] | None = None
        self.clocks: list[int] = []
        self.launches = 0
        self.overwritten: OverwrittenReads | None = None
        self.recomputed: Recomputed | None = Recomputed(tape)
        self.stale: list[Stale] = []
        self.run: Pass | None = None
        # Until its first backward pass.
        self.paths: Paths | None = Paths(tape, names)
        self.broken: list[Broken] = []
        self.touches = Touches()
        # By the host: where, what the user calls the array, and which elements.
        self.reads: list[tuple[Span, str, bytes]] = []
        self.used = False  # something was recorded after that
        self.seen: set[View] = set()
        self.functions: list[tuple[int, Recorded]] = []
        self.reading = FunctionReads()
        self.sought: Sought | None = None
        self.shared: SharedGradients | None = None
        self.facts: list[Shared] = []
        self.read = Read()

    def publish(self) -> None:
        """Tells what is known by now."""
        if self.overwritten is not None:
            self.tape.facts[:] = [
                *self.overwritten.facts, *merged(self.stale), *self.broken,
                *filter(None, [self.sought]), *self.facts, *self.read.facts(),
            ]  # fmt: skip

    def catch_up(self, records: Sequence[Record] | None = None) -> None:
        """Looks at what was recorded since the last time. records: all of the tape."""
        records = self.tape.live if records is None else records
        for number in range(self._seen, len(records)):
            r = records[number]
            if self.paths is not None:
                for a, hold in r.only_read(self.tape.records[number]):
                    self.touches.touched(a, hold)
            self.touches.recorded(r)
            if r.launch is not None:
                self.read.recorded(r.launch, self._creations, self.touches.computed)
        self._seen = max(self._seen, len(records))

    def read_by_host(self) -> list[tuple[Span, str]]:
        """What the host read, but for what it overwrote then: views serve for both."""
        late = self.touches.late
        some = [x for x in self.reads if x[2] not in late] or self.reads
        return [(span, name) for span, name, _ in some]

    def looked_through(self) -> list[tuple[Span, str]]:
        """Views of what depends on inputs, which the host had while the tape recorded."""
        assert self.paths is not None
        return [
            (v.span, v.name) for v in self.seen
            if (a := v.array()) is not None and a._packed not in self.touches.late
            and (self.touches.has(a) or self.paths.depends(a))
        ]  # fmt: skip

    def look(self, records: Sequence[Record]) -> None:
        """Catches up where the tape writes floats without a gradient, and so may read them back."""
        if self._creations and any(
            a._info.floating and not a.requires_grad
            for number in range(self._seen, len(records)) for a in records[number].written
        ):  # fmt: skip
            self.catch_up(records)

    def settled(self, records: Sequence[Record]) -> None:
        """The tape has run backward: nobody asks for what it had recorded by then."""
        self._seen, self.touches = len(records), Touches()
