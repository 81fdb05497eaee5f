"""Checks arrays that functions of `Tape.record_func` read in a backward pass for later changes.

Whether the gradient depends on it, only another run of the program can tell (`watch/moved`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from engine.autograd.facts import Overwritten, Write
from engine.autograd.watch.elements import Elements
from engine.autograd.watch.writes import Writes
from engine.diagnostics.callers import argument_list, call_at, text
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Hold
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape
from engine.tape.records import Record
from engine.tape.restoration import NumpyArray, contents, present, raw

_NAMES = ("", "arrays")  # the parameters of record_func


class FunctionReads:
    """Of one tape, from its first record to its first backward pass."""

    def __init__(self) -> None:
        self._holds: dict[int, tuple[int, dict[int, Hold]]] = {}
        self._run: Pass | None = None
        # Of the function that runs: what differs, by the position of the array.
        self._number = -1
        self._changed: dict[int, NumpyArray] = {}
        self.found: dict[int, Overwritten] = {}

    def recorded(self, tape: CapturedTape, record: Record, clock: int) -> None:
        """A function was recorded. clock: of the writes until now."""
        holds = {i: hold or a.storage.hold(a.lo, a.hi) for i, a, hold in record.watched()}
        self._holds[len(tape.records) - 1] = clock, holds

    def began(self, run: Pass) -> None:
        """The pass begins."""
        self._run = run if self._holds else None

    def ended(self) -> None:
        """The pass is over: lets go of the program's arrays."""
        self._run, self._number = None, -1
        self._holds, self._changed = {}, {}

    def before(self, number: int) -> None:
        """To be called before the record of that number runs backward."""
        self._number, self._changed = number, {}
        record = None if self._run is None else self._run.records[number]
        if record is None or record.function is None or self._run is None:
            return
        restored = {x.index for x in self._run.restored.get(number, ())}
        for i, hold in self._holds.get(number, (0, {}))[1].items():
            a = record.arrays[i]
            if i in restored or a.storage.unchanged(hold):
                continue
            was = contents(a, hold)
            if was is not None and (where := (raw(present(a)) != raw(was)).any(-1)).any():
                self._changed[i] = where

    def looked_at(self, reads: Sequence[array], writes: Writes) -> None:
        """Somebody reads arrays while the pass runs."""
        if not self._changed or self._run is None or self._number in self.found:
            return
        record = self._run.records[self._number]
        for i, where in self._changed.items():
            a = record.arrays[i]
            if any(may_meet(a, b) for b in reads):
                self.found[self._number] = self._told(record, i, where, writes)
                return

    def _told(self, record: Record, i: int, where: NumpyArray, writes: Writes) -> Overwritten:
        assert self._run is not None
        a = record.arrays[i]
        by = Elements(self._run.records).writer(self._number, a, where)
        if by is not None:
            r = self._run.records[by]
            launch = -1
            if r.launch is not None:
                launch = sum(x.launch is not None for x in self._run.records[:by])
            write = Write(r.name, launch, r.site)
        else:
            seen = writes.after(self._holds[self._number][0], a, (), writes.clock)
            write = Write() if seen is None else seen.write
        places = np.argwhere(where)
        return Overwritten(
            "outside" if by is None else "wrong", -1, record.name, "", _name(record._site, i),
            record.site, write, tuple(map(int, places.min(0))), tuple(map(int, places.max(0))),
            len(places),
        )  # fmt: skip


def _name(site: Site | None, i: int) -> str:
    """What the user calls an array that was given to record_func."""
    call = call_at(site)
    f = None if call is None else call.func
    if call is None or not (isinstance(f, ast.Attribute) and f.attr == "record_func"):
        return ""
    given = argument_list(call, _NAMES)
    return text(given[i]) if given is not None and i < len(given) else ""
