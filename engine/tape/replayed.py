"""A tape's part in captured graphs: launches that run later, and their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine import config, hooks
from engine.compile.backend import Limits
from engine.diagnostics.site import call_site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.blocks import Block
from engine.runtime.deferred import DeferredLaunch, Noted, Operation
from engine.runtime.plan_parts import BoundLaunch
from engine.tape import rows
from engine.tape.memory import MemoryUse, memory_of, own_memory
from engine.tape.overwrites import MODES, Overwrites
from engine.tape.records import LaunchRecord, Record, kind_of
from engine.tape.restoration import Restoration

if TYPE_CHECKING:  # late: only what is captured and runs again needs it
    from engine.tape.replay import Replay
    from engine.tape.scopes import ScopeStack


class ReplayedTape(Block, events.Recorder):
    """The records of a tape. Many are made where somebody looks at them.

    Those are of graphs, and of launches that Python had no part in (see `engine.tape.rows`).
    """

    _records: list[Record]
    _rows: list[Any]  # they follow the records
    _overwrites: Overwrites
    _stack: ScopeStack | None
    # Records, and what follows them; where the tape has no list of all of them.
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
        rows.ended(self._rows)
        made = self._made()
        rows.ended(self._rows)  # where graphs had recorded, they are others now
        return made

    @records.setter
    def records(self, records: list[Record]) -> None:
        self._set(records, rows.begun(grows=False))

    def _made(self) -> list[Record]:
        """The records, for a short look: it does not grow with all that is recorded after it."""
        if rows.has_any(self._rows):
            rows.make(self._rows, self._records)
        if self._unmade is not None:
            records, replays = self._unmade
            self._set([*records, *(record for r in replays for record in r.records())])
        return self._records

    @property
    def memory(self) -> MemoryUse:
        """The memory that the tape takes up beside arrays and their gradients."""
        return memory_of(self._made(), self._overwrites.holds)

    def _own_memory(self) -> MemoryUse:
        """The same, without what captures copied."""
        return own_memory(self._made(), self._overwrites.holds)

    def _listed(self) -> list[Any]:
        """The records, or rows that stand for all of them."""
        if rows.has_any(self._rows) and not self._records and self._unmade is None:
            return self._rows
        return self._made()

    def _set(self, records: list[Record], new: list[Any] | None = None) -> None:
        if new is None:
            new = rows.begun()
        self._rows[0] = False  # as `rows.ended`, without a call: nobody is to look in between
        self._rows, self._records, self._unmade = new, records, None

    def _add(self, record: Record) -> None:
        """Puts a record behind all others."""
        if rows.has_any(self._rows):
            self._rows.append(record)
        else:
            (self._records if self._unmade is None else self._made()).append(record)

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
            self._unmade = (self._made(), [])
            rows.ended(self._rows)
        self._unmade[1].append(replay)

    def _verifies(self) -> bool:
        """Whether to mark what is read, and to warn where it is written."""
        return config.verify_autograd_array_access

    def is_alone(self) -> bool:
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

    def _restored(self) -> Mapping[int, Sequence[Restoration]]:
        """What a backward pass would restore now, by position among the records."""
        found = self._overwrites
        return found.needed(() if found.are_none() else self._made()[:])  # others may forget them

    # ---- what graphs capture: it is there to be looked at, and made anew when the graph runs

    def prepared(
        self, launches: Sequence[DeferredLaunch], now: Limits
    ) -> Sequence[Operation] | None:
        """What runs launches of a graph and records them, in as few calls as can be.

        None where that is not known yet. now: the limits of all of them.
        """
        from engine.tape.replay import pieces

        return pieces(launches, now)

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


def _unseen(
    operations: Sequence[Noted], steps: Sequence[Noted], fresh: Sequence[Callable[[], None]]
) -> Callable[[], bool] | None:
    from engine.tape.unseen import unseen  # late: only what is captured and runs again needs it

    return unseen(operations, steps, fresh)


hooks.fuse = _unseen
