"""Finds overwritten inputs of launches, and the elements of them that a backward pass needs.

Whether a gradient depends on what was lost is tried out: just before a record of the pass runs, its
adjoint runs on copies of its gradients, once with what the launch had read and once with what is
there without that. Where both give the same, nothing was needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from engine import config
from engine.autograd.facts import Overwritten, Write
from engine.autograd.watch.elements import Elements
from engine.autograd.watch.trials import gradients, tried
from engine.autograd.watch.writes import Writes
from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.launch import run
from engine.runtime.storage import Hold
from engine.tape.backward import Pass
from engine.tape.naming import variable
from engine.tape.records import LaunchRecord, Record
from engine.tape.restoration import (
    Change,
    NumpyArray,
    Restoration,
    differing,
)

# Bytes of gradients that are copied to try out records of one kind where nothing comes of it;
# beyond that every second, fourth, ... is tried.
_BUDGET = 1 << 30
_LOOKS = 64  # launches of one kind that are run again to see what they read; then the same

Kind = Literal["wrong", "outside", "restored", "within", "unneeded"]


@dataclass(frozen=True, slots=True)
class _Loss:
    """Numbers of an argument that are not what the launch read. Keeps no array alive.

    nbytes: what the tape saved, to restore them; None where the pass reads what is there now.
    recorded: whether it was a record of the tape that wrote. clock: when something outside did,
    -1 where nobody saw it.
    version: of the memory at the pass that found it.
    """

    number: int
    index: int
    where: NumpyArray
    hold: Hold
    nbytes: int | None
    by: Write
    outside: bool
    version: int
    recorded: bool = False
    clock: int = -1

    @property
    def restored(self) -> bool:
        """Whether passes read what the launch had read."""
        return self.nbytes is not None


class OverwrittenReads:
    """The losses of a tape at its backward passes, and what comes of them.

    What a pass finds at first counts, and of what later ones find what the tape itself
    overwrote in records that are new: other writes in between are how a tape is evaluated again.
    """

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._found: dict[Hashable, Overwritten] = {}
        self._spent: dict[Hashable, int] = {}
        self._tried: dict[Hashable, int] = {}
        self._losses: dict[int, list[_Loss]] = {}
        self._looked: dict[Hashable, int] = {}
        # Kernels of which what a launch saved matters, with what suffers else.
        self._suffering: dict[Hashable, tuple[str, ...]] = {}
        self._saving: dict[Hashable, tuple[Hashable, Kind, _Loss]] = {}
        self._seen = 0  # records of the passes so far
        self._seeded = True  # whether there are gradients to go on from
        # Of the pass that runs.
        self._run: Pass | None = None

    def began(self, run: Pass, clocks: Sequence[int]) -> None:
        """A pass begins. clocks: when each record was made."""
        self._run = run
        self._clocks = clocks
        self._launches = _numbers(run.records)
        self._elements = Elements(run.records)
        if len(run.records) == self._seen:
            self._keep(lambda x: self._argument(x).storage.version == x.version)
            return
        sites = {r._site for r in run.records if r._site is not None}
        self._own = {(site.code, site.instruction) for site in sites}
        old, self._losses = self._seen, {}
        for loss in self._all():
            if loss.number >= old or not loss.outside:
                self._losses.setdefault(loss.number, []).append(loss)
        self._seen = len(run.records)

    def rehearse(self, run: Pass, clocks: Sequence[int]) -> None:
        """Looks at a tape that has run no backward pass, as if one came from all that it computes.

        What was written outside may have been meant for another use of the arrays: not told.
        """
        self._seeded = False
        self.began(run, clocks)
        self._keep(lambda x: x.restored)
        for number in range(len(run.records) - 1, -1, -1):
            self.before(number)
        self.ended()

    def ended(self) -> None:
        """The pass is over: lets go of the program's arrays."""
        self._run = None
        del self._elements

    @property
    def facts(self) -> list[Overwritten]:
        """What was found out so far, in the order of the tape."""
        return sorted(self._found.values(), key=lambda f: f.launch)

    @property
    def outside(self) -> bool:
        """Whether something that is not on the tape wrote to what the pass reads."""
        return any(x.outside for some in self._losses.values() for x in some)

    def _keep(self, wanted: Callable[[_Loss], bool]) -> None:
        self._losses = {
            k: kept for k, some in self._losses.items() if (kept := list(filter(wanted, some)))
        }

    def _records(self) -> Sequence[Record]:
        assert self._run is not None
        return self._run.records

    def _launch(self, number: int) -> LaunchRecord:
        record = self._records()[number].launch
        assert record is not None
        return record

    def _argument(self, loss: _Loss) -> array:
        a: array = self._launch(loss.number).values[loss.index]
        return a

    def forgive(self) -> None:
        """Leaves out what was written outside, where all fits and was computed again after it."""
        self._keep(lambda x: not (x.outside and self._again_since(x)))

    def _again_since(self, loss: _Loss) -> bool:
        """Whether something wrote to the launch's results since; else they are equal by chance."""
        if loss.clock < 0:
            return True  # or before the tape: a hold may be older than a write that nobody saw
        written = self._records()[loss.number].written
        return any(self._writes.since(loss.clock, a) for a in written)

    # ---- what is lost

    def _all(self) -> Iterator[_Loss]:
        assert self._run is not None
        for number, r in enumerate(self._run.records):
            record = r.launch
            if record is None or 0 in record.dim:
                continue
            some = self._run.restored.get(number, ())
            values, held = record.values, record.holds.items()
            if not some and all(values[i].storage.unchanged(hold) for i, hold in held):
                continue
            known = {x.index: x for x in some}
            reads = record.reads()
            for i in sorted(reads):
                yield from self._of_argument(number, record, i, known.get(i))
            self._unneeded(number, record, reads)
            self._reused(number, record)

    def _of_argument(
        self, number: int, record: LaunchRecord, i: int, x: Restoration | None
    ) -> Iterator[_Loss]:
        a, hold = record.values[i], record.holds.get(i)
        if a is None or hold is None or (x is None and a.storage.unchanged(hold)):
            return
        differs = differing(a, hold)
        if differs is None:
            return
        version = a.storage.version
        if x is not None:
            saved = x.where & differs
            differs &= ~saved
            if saved.any():
                by, own = self._change(x.by), not x.by.loose
                yield _Loss(number, i, saved, hold, x.nbytes, by, False, version, own)
        if not differs.any():
            return
        at = self._elements.writer(number, a) if config.overwrites == "present" else None
        if at is not None:
            by = self._record(at)
            yield _Loss(number, i, differs, hold, None, by, False, version, True)
            return
        w = self._writes.after(self._clocks[number], a, self._own, self._clocks[-1])
        write, clock = (Write(), -1) if w is None else (w.write, w.clock)
        yield _Loss(number, i, differs, hold, None, write, True, version, clock=clock)

    def _unneeded(self, number: int, record: LaunchRecord, reads: Collection[int]) -> None:
        """Tells of reads of which no adjoint needs the value, and that the tape overwrote."""
        for i in record.plan.reads:
            a, hold = record.values[i], record.holds.get(i)
            if i in reads or i in record.plan.writes or a is None or hold is None:
                continue
            where = None if a.storage.unchanged(hold) else differing(a, hold)
            if where is None:
                continue
            by = self._elements.writer(number, a)
            if by is not None:
                loss = _Loss(number, i, where, hold, None, self._record(by), False, 0, True)
                self._tell(loss, "unneeded", ())

    def _reused(self, number: int, record: LaunchRecord) -> None:
        """Tells of such reads of what the launch writes itself."""
        for i, lost in _reused(record):
            key = (record.name, i, record.site, lost)
            if key in self._found:
                self._again(key, 0)
            elif self._looks(key):
                some = self._elements.lost if lost else self._elements.read_back
                where, by = some(number, i)
                if where is not None:
                    w = self._record(by)
                    loss = _Loss(number, i, where, record.holds[i], None, w, False, 0, True)
                    self._found[key] = self._fact(loss, "unneeded", ())

    def _change(self, c: Change) -> Write:
        span = None if c.site is None else c.site.span
        number = -1 if c.loose else self._launches.get(c.position, -1)
        return Write(c.name, number, span)

    def _record(self, position: int) -> Write:
        r = self._records()[position]
        return Write(r.name, self._launches.get(position, -1), r.site)

    # ---- what comes of it

    def before(self, number: int) -> None:
        """To be called before the record of that number runs backward."""
        record = self._records()[number].launch
        if record is None:
            return
        for restored in (True, False):
            some = [x for x in self._losses.get(number, ()) if x.restored == restored]
            new = [x for x in some if self._affordable(self._key(x, record), record)]
            for loss in some:
                if loss not in new:
                    self._again(self._key(loss, record), loss.nbytes or 0)
            for loss, changed in self._try(record, some, new):
                kind: Kind = "outside" if loss.outside else "restored" if restored else "wrong"
                self._tell(loss, kind if changed else "unneeded", changed)
        if record.journal_bytes:
            self._within(number, record)

    def _affordable(self, key: Hashable, record: LaunchRecord) -> bool:
        """Whether to try a record out: not where one of its kind was, or too many in vain."""
        known = self._found.get(key)
        if known is not None and known.kind != "unneeded":
            return False
        tried = self._tried[key] = self._tried.get(key, 0) + 1
        self._spent[key] = self._spent.get(key, 0) + sum(g.hi - g.lo for g in gradients(record))
        return self._spent[key] < _BUDGET or tried & (tried - 1) == 0

    def _try(
        self, record: LaunchRecord, some: Sequence[_Loss], new: Sequence[_Loss]
    ) -> Iterator[tuple[_Loss, tuple[str, ...]]]:
        """Losses with the parameters whose gradients depend on them.

        Each is tried beside what all others were and beside what they are now; where only all
        together matter, each of them does. some: of one kind. new: those to be tried.
        """
        if not new:
            return
        was, now = self._reads(some, ()), self._reads((), some)
        together = self._differing(record, now, was)
        if not together or len(some) == 1:
            yield from ((x, together) for x in new)
            return
        alone = {}
        for x in new:
            others = [y for y in some if y is not x]
            alone[id(x)] = self._differing(record, self._reads(others, [x]), was) or (
                self._differing(record, self._reads([x], others), now)
            )
        for x in new:
            none = not any(alone.values()) and len(new) == len(some)
            yield x, together if none else alone[id(x)]

    def _differing(
        self, record: LaunchRecord, one: Sequence[Restoration], other: Sequence[Restoration]
    ) -> tuple[str, ...]:
        return tried(
            record, lambda: record.reverse(one), lambda: record.reverse(other), self._seeded
        )

    def _reads(self, was: Sequence[_Loss], now: Sequence[_Loss]) -> list[Restoration]:
        """What a launch is to read: what the pass has it read, but some as it was or is now."""
        assert self._run is not None
        number = (*was, *now)[0].number
        known = {x.index: x for x in self._run.restored.get(number, ())}
        wanted = {i: (x.where, x.hold, x.by) for i, x in known.items()}
        for x in (*was, *now):
            a = self._argument(x)
            by = Change(number, a, "", None)
            where, hold, by = wanted.get(x.index, (np.zeros_like(x.where), x.hold, by))
            wanted[x.index] = (where | x.where if x in was else where & ~x.where, hold, by)
        record = self._launch(number)
        return [
            Restoration.of(i, record.values[i], hold, by, where)
            for i, (where, hold, by) in wanted.items() if where.any()
        ]  # fmt: skip

    def _within(self, number: int, record: LaunchRecord) -> None:
        """Tells of a launch whose adjoint needs what it saved, as something overwrote it."""
        selection, variants = record._selection_now(), record.plan.variants
        none: frozenset[str] = frozenset()
        names = selection.journaled & variants.read & variants.written
        if not names or not selection.useful or variants.needs_journal(selection.wrt, none):
            return
        key = ("within", record.name)
        if key not in self._suffering and not self._affordable(key, record):
            return

        def naive() -> None:
            grads = record.gradients(selection)
            blob = record._pack(record.values) + b"".join(g._packed for g in grads)
            run(record.plan.unobserved(record.dim, blob, "adjoint", selection.wrt, none))

        assert self._run is not None
        reads = self._run.restored.get(number, ())
        changed = self._suffering.get(key) or tried(
            record, lambda: record.reverse(reads), naive, self._seeded
        )
        if changed:
            self._suffering[key] = changed
            self._tell_saved(number, record, names, changed)

    def _tell_saved(
        self, number: int, record: LaunchRecord, names: Collection[str], changed: Sequence[str]
    ) -> None:
        p = next(p for p in record.plan.array_params if p.name in names)
        own = p.name in record.plan.variants.reuse.lost
        kept = ("within", record.name)
        if own or kept not in self._saving or self._looks(kept):
            loss = self._saved(number, record, p.index, own)
            if loss is None:
                return
            itself = loss.by.launch == self._launches[number] and not loss.outside
            kind: Kind = "within" if itself else "restored"
            key: Hashable = kept if itself else (*kept, loss.by.site, loss.by.name, loss.outside)
            self._saving[kept] = key, kind, loss
        key, kind, loss = self._saving[kept]
        if key in self._found:
            self._again(key, record.journal_bytes)
        else:
            self._found[key] = self._fact(loss, kind, changed, record.journal_bytes)

    def _saved(self, number: int, record: LaunchRecord, i: int, own: bool) -> _Loss | None:
        """Who overwrote what a launch has read of an array that it writes to itself.

        own: whether the launch surely did. None where nobody has.
        """
        a, hold, by = record.values[i], record.holds[i], self._record(number)
        where = np.ones(a._parts.shape, np.bool_)
        loss = _Loss(number, i, where, hold, None, by, False, 0)
        if own:
            return loss
        read, written = (self._elements.best(number, i, writes) for writes in (False, True))
        if (read & written).any():
            return replace(loss, where=read & written)
        differs = differing(a, hold)
        if differs is None or not (read & differs).any():
            return None
        where = read & differs
        at = self._elements.writer(number, a, where)
        if at is not None:
            return replace(loss, where=where, by=self._record(at))
        w = self._writes.after(self._clocks[number], a, self._own, self._clocks[-1])
        by = Write() if w is None else w.write
        return replace(loss, where=where, by=by, outside=True)

    # ---- telling

    def _promising(self, key: Hashable, loss: _Loss) -> bool:
        """Whether the launch may have read what is lost, and it is worth the time to ask."""
        if not (loss.where & self._elements.may(loss.number, loss.index)).any():
            return False
        return key in self._found or self._looks(key)

    def _looks(self, key: Hashable) -> bool:
        """Whether to look at one more of a kind."""
        looked = self._looked[key] = self._looked.get(key, 0) + 1
        return looked < _LOOKS or looked & (looked - 1) == 0

    def _by_whom(self, loss: _Loss) -> _Loss:
        """The loss with the record that wrote to the elements which are told of."""
        if not loss.recorded:
            return loss
        at = self._elements.writer(loss.number, self._argument(loss), loss.where)
        return loss if at is None else replace(loss, by=self._record(at))

    def _key(self, loss: _Loss, record: LaunchRecord) -> Hashable:
        return (record.name, loss.index, record.site, loss.by.name, loss.by.site, loss.outside,
                loss.restored)  # fmt: skip

    def _again(self, key: Hashable, nbytes: int) -> None:
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(
                known, launches=known.launches + 1, nbytes=known.nbytes + nbytes
            )

    def _tell(
        self, loss: _Loss, kind: Kind, changed: Sequence[str], key: Hashable = None, nbytes: int = 0
    ) -> None:
        record = self._launch(loss.number)
        key = key or self._key(loss, record)
        if kind == "unneeded":
            key = (key, kind)
            if not self._promising(key, loss):
                return
        elif (key, "unneeded") in self._found:
            del self._found[key, "unneeded"]
        if key in self._found:
            self._again(key, loss.nbytes or 0)
            return
        if kind != "within":
            where, certain = self._elements.read(loss.number, loss.index, loss.where)
            if kind == "unneeded" and not (certain and where.any()):
                return
            if where.any():
                loss = replace(loss, where=where)
            loss = self._by_whom(loss)
        self._found[key] = self._fact(loss, kind, changed, nbytes)

    def _fact(
        self, loss: _Loss, kind: Kind, changed: Sequence[str], nbytes: int = 0
    ) -> Overwritten:
        record = self._launch(loss.number)
        places = np.argwhere(loss.where)
        return Overwritten(
            kind, self._launches[loss.number], record.name,
            record.plan.params[loss.index].name, variable(record, loss.index), record.site, loss.by,
            tuple(map(int, places.min(0))), tuple(map(int, places.max(0))), len(places),
            nbytes or loss.nbytes or 0, tuple(changed), passed=_passed(record, changed),
        )  # fmt: skip


def _numbers(records: Sequence[Record]) -> dict[int, int]:
    launches = [k for k, r in enumerate(records) if r.launch is not None]
    return {position: number for number, position in enumerate(launches)}


def _reused(record: LaunchRecord) -> Iterator[tuple[int, bool]]:
    """Parameters that a launch reads and writes itself, where no gradient needs what it read.

    With whether it overwrites what it has read; else it reads what it has written.
    """
    reuse = record.plan.variants.reuse
    if not (reuse.lost or reuse.back):
        return
    now = record._selection_now()
    for p in record.plan.floats:
        known = p.name in now.wrt and p.index in record.holds
        saved = now.saves_journal and p.name in now.journaled
        if known and p.index not in now.reads and not saved:
            if p.name in reuse.lost or p.name in reuse.back:
                yield p.index, p.name in reuse.lost


def _passed(record: LaunchRecord, names: Sequence[str]) -> tuple[str, ...]:
    """What the user passed for parameters."""
    at = {p.name: p.index for p in record.plan.floats}
    return tuple(variable(record, at[name]) for name in names)
