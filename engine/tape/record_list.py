"""The records of a tape; those of captured graphs are made when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine import config
from engine.classes import Protocol
from engine.diagnostics.site import call_site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.blocks import Block
from engine.runtime.plan_parts import BoundLaunch
from engine.tape.memory import MemoryUse, memory_of, own_memory
from engine.tape.overwrites import MODES, Overwrites
from engine.tape.records import LaunchRecord, Record, kind_of
from engine.tape.restoration import Restoration

if TYPE_CHECKING:
    from engine.tape.scopes import ScopeStack


class Replay(Protocol):
    """What a run of a captured graph recorded. count: how many launches. arrays: of all of them."""

    count: int

    @property
    def arrays(self) -> Sequence[array]:
        """The arrays of the launches, as records have them."""

    def records(self) -> Iterator[Record]:
        """Makes the records."""


class RecordList(Block, events.Recorder):
    """The records of a tape. Those of graphs are made where somebody looks at them."""

    _records: list[Record] | None  # compiled code adds to them; None where there is no such list
    _overwrites: Overwrites
    _stack: ScopeStack | None
    # Records, and what follows them, in place of a list of all.
    _unmade: tuple[list[Record], list[Replay]] | None = None
    _token: Any = None
    # What observers keep with the tape: it goes when the tape does.
    _notes: dict[events.Observer, Any] | None = None
    _seeded: dict[int, array]
    _former: Collection[array]
    loss: array | None

    @property
    def records(self) -> list[Record]:
        """What was recorded, in order; it grows with what is recorded from then on."""
        return self._made()

    @records.setter
    def records(self, records: list[Record]) -> None:
        self._set(records)

    def _made(self) -> list[Record]:
        """The records, where those of graphs are made if that was not done yet."""
        made = self._records
        if made is None:
            assert self._unmade is not None
            records, replays = self._unmade
            made = [*records, *(record for r in replays for record in r.records())]
            self._set(made)
        return made

    @property
    def memory(self) -> MemoryUse:
        """The memory that the tape takes up beside arrays and their gradients."""
        return memory_of(self._made(), self._overwrites.holds)

    def _own_memory(self) -> MemoryUse:
        """The same, without what captures copied."""
        return own_memory(self._made(), self._overwrites.holds)

    def _set(self, records: list[Record]) -> None:
        self._records, self._unmade = records, None

    def _add(self, record: Record) -> None:
        """Puts a record behind all others."""
        self._made().append(record)

    def _append(self, record: Record, seconds: float | None = None) -> None:
        """The same, and tells those who listen."""
        for o in self._followers():
            o.tape_recorded(self, record, seconds)
        self._add(record)

    def _followers(self) -> Sequence[events.Observer]:
        """Those who are told what it records and runs backward."""
        raise NotImplementedError

    def _tell_forgot(self) -> None:
        """Tells that it is about to forget its records."""
        if events.everywhere:
            events.tell("tape_forgot", self)

    def _count(self) -> int:
        """How many records there are."""
        if self._unmade is None:
            return len(self._made())
        records, replays = self._unmade
        return len(records) + sum(r.count for r in replays)

    def keep(self, replay: Replay) -> None:
        """Notes what a graph has run and recorded."""
        if not replay.count:
            return
        if self._unmade is None:
            self._unmade, self._records = (self._made(), []), None
        self._unmade[1].append(replay)

    def _verifies(self) -> bool:
        """Whether to mark what is read, and to warn where it is written."""
        return config.verify_autograd_array_access

    def has_default_settings(self) -> bool:
        """Whether its records are for itself, and taken as they are by default."""
        return not (
            self._followers() or config.verify_autograd_array_access
            or config.overwrites == "present" or config.overwrites not in MODES
            or config.tape_snapshots != "lazy"
            or config.snapshot_exposed_bytes
        )  # fmt: skip

    def _replays(self) -> Sequence[Replay]:
        """What its records are made of, where none of them was looked at; else nothing."""
        return () if self._unmade is None or self._unmade[0] else self._unmade[1]

    def _restorations(self) -> Mapping[int, Sequence[Restoration]]:
        """What a backward pass would restore now, by position among the records."""
        found = self._overwrites
        return found.needed(() if found.are_none() else self._made()[:])  # others may forget them

    # ---- what graphs capture: it is there to be looked at, and made anew when the graph runs

    def sketch_launch(self, launch: BoundLaunch) -> None:
        """Notes a launch that a graph has captured, and that has not run."""
        self._add(record_of(launch))

    def sketch_write(
        self, kind: str, name: str, dest: array, src: array | None = None,
        numbers: Sequence[float] = (),
    ) -> None:  # fmt: skip
        if dest.requires_grad or (src is not None and src.requires_grad):
            self._add(kind_of(kind)(name, dest, src, call_site(), None, numbers))

    def rewinding(self) -> Callable[[], None]:
        """What makes the tape forget all that is recorded from now on."""
        return partial(self._rewind, self._count())

    def _anew(self) -> None:
        """Makes it what it was when it was made, where a graph makes it again."""
        self._rewind(0)
        self._stack = None
        self._seeded = {}
        self._former = ()
        self.loss = None

    def _rewind(self, count: int) -> None:
        self._tell_forgot()
        unmade = self._unmade
        known = self._made() if unmade is None or count > len(unmade[0]) else unmade[0]
        self._set(known[:count])
        self._overwrites = self._overwrites.until(count)
        if self._stack is not None:
            self._stack = self._stack.until(count)


def record_of(launch: BoundLaunch) -> LaunchRecord:
    """The record of a launch, of which nothing is held."""
    plan, values = launch.plan, launch.values
    aliased = plan.aliased(values)
    selection = plan.select(values, aliased)
    return LaunchRecord(
        plan, launch.dim, values, launch.blob, launch.inputs, launch.site, aliased, selection
    )
