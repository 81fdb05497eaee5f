"""Who wrote to which memory, and when: what the engine was asked for in user code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from typing import NamedTuple

from engine.autograd.watch.places import Weak
from engine.diagnostics.site import Site, call_site
from engine.runtime import recording
from engine.runtime.array import array
from engine.runtime.storage import Storage

_KEPT = 256  # writes of one block of memory


class Written(NamedTuple):
    """Bytes that were written, by address. taped: while a tape recorded."""

    clock: int
    lo: int
    hi: int
    site: Site | None
    taped: bool


class Writes:
    """The last writes to each block of memory, in order. clock: counts them, and more."""

    def __init__(self) -> None:
        self.clock = 0
        self._by: Weak[list[Written]] = Weak()

    def note(self, memory: Storage, lo: int, hi: int) -> None:
        """Notes a write that is about to happen."""
        self.clock += 1
        taped = recording.active.get() is not None
        new = Written(self.clock, lo, hi, call_site(3), taped)
        known = self._by.get(memory)
        if known is None:
            self._by.put(memory, [new])
            return
        if len(known) >= _KEPT:
            del known[: _KEPT // 2]
        known.append(new)

    def after(
        self, clock: int, a: array, own: Collection[tuple[object, int]], last: int
    ) -> Written | None:
        """The first write to an array since then that a tape did not record.

        own: calls that the tape recorded, by code and instruction. last: when it recorded the
        last one; what other tapes write later is surely not its own.
        """
        known = self._by.get(a.storage) or []
        start = bisect_right([w.clock for w in known], clock)
        some = [w for w in known[start:] if w.lo < a.hi and a.lo < w.hi]
        for w in some:
            if not w.taped:
                return w
        for w in some:
            site = None if w.site is None else (w.site.code, w.site.instruction)
            if w.clock > last or (site is not None and site not in own):
                return w
        return None
