"""The monitor's knowledge of one tape while the program runs."""

from __future__ import annotations

from collections.abc import Sequence

from engine.autograd.facts import Fact
from engine.autograd.watch.creations import Creations, Read
from engine.autograd.watch.moved import Touches
from engine.autograd.watch.names import Names
from engine.autograd.watch.paths import Paths
from engine.autograd.watch.writes import Writes
from engine.runtime.array import array
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape
from engine.tape.records.record import Record


class Followed:
    """What detectors know together of one tape.

    Which inputs it touched, and what it reads of arrays without a gradient, is looked up only when
    a detector needs it (`catch_up`): for most tapes none does. clocks: when each record was made,
    by the clock of `Writes`. run: the pass that runs; inputs: of the tape then, that require a
    gradient. total: what its first pass started from, and the derivative of that, where both are
    known.
    """

    def __init__(self, tape: CapturedTape, names: Names, creations: Creations) -> None:
        self.tape = tape
        self.clocks: list[int] = []
        # Until its first backward pass.
        self.paths: Paths | None = Paths(tape, names)
        self.touches = Touches()
        self.read = Read()
        self.run: Pass | None = None
        self.inputs: Sequence[array] = ()
        self.total: tuple[float, float] | None = None
        self._creations = creations
        self._seen = 0  # records that were looked at
        self._launches = 0

    def tell(self, fact: Fact) -> None:
        """Adds a fact to those of the tape, or to one of them that is alike."""
        facts = self.tape.facts
        for k, known in enumerate(facts):
            both = known.joined(fact)
            if both is not None:
                facts[k] = both
                return
        facts.append(fact)

    def recorded(self, record: Record, writes: Writes) -> None:
        """The tape got a record: tells the program's writes."""
        number = -1
        if record.launch is not None:
            number, self._launches = self._launches, self._launches + 1
        writes.recorded(record.written, record._site, record.name, self.tape.index, number)
        self.clocks.append(writes.clock)

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

    def look(self, records: Sequence[Record]) -> None:
        """Catches up where the tape writes floats without a gradient, and so may read them back."""
        if self._creations and any(
            a._info.floating and not a.requires_grad
            for number in range(self._seen, len(records)) for a in records[number].written
        ):  # fmt: skip
            self.catch_up(records)

    def settled(self, records: Sequence[Record]) -> None:
        """The tape has run backward: what it had recorded by then is no longer needed."""
        self._seen, self.touches = len(records), Touches()
