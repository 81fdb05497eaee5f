"""Records each write that user code asks the engine for: its memory, place and time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from threading import get_ident

from engine.autograd.facts import Write
from engine.autograd.watch.places import Weak
from engine.classes import dataclass
from engine.diagnostics.site import Site, call_site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.storage import Storage

_KEPT = 256  # writes of one block of memory


@dataclass(slots=True)
class Written:
    """Bytes that were written, by address. taped: while a tape recorded.

    name: of the kernel or operation, where it is known. tape: the number of the tape that recorded
    it, and launch: that of the launch on it; -1 for none.
    """

    clock: int
    lo: int
    hi: int
    site: Site | None
    taped: bool
    name: str = ""
    tape: int = -1
    launch: int = -1

    @property
    def write(self) -> Write:
        """As facts have it."""
        site = None if self.site is None else self.site.span
        return Write(self.name, self.launch, site, self.tape)


class Writes:
    """The last writes to each block of memory, in order. clock: counts them, and more."""

    def __init__(self) -> None:
        self.clock = 0
        self._by: Weak[list[Written]] = Weak()
        self._launching: dict[int, tuple[Site | None, str]] = {}  # by thread

    def launching(self, site: Site | None, kernel: str) -> None:
        """A launch is about to run off any tape, and may write then."""
        self._launching[get_ident()] = site, kernel

    def note(self, memory: Storage, lo: int, hi: int) -> None:
        """Notes a write that is about to happen."""
        self.clock += 1
        taped = events.tape() is not None
        site = call_site(3)
        launched, name = self._launching.get(get_ident(), (None, ""))
        own = name if site is launched and not taped else ""
        new = Written(self.clock, lo, hi, site, taped, own)
        known = self._by.get(memory)
        if known is None:
            self._by.put(memory, [new])
            return
        if len(known) >= _KEPT:
            del known[: _KEPT // 2]
        known.append(new)

    def recorded(
        self, arrays: Iterable[array], site: Site | None, name: str, tape: int, launch: int
    ) -> None:
        """A tape got a record: what was just written to these arrays was written by it."""
        for a in arrays:
            known = self._by.get(a.storage) or []
            for w in reversed(known):
                if w.site is not site or w.name:
                    break
                w.name, w.tape, w.launch = name, tape, launch

    def since(self, clock: int, a: array) -> bool:
        """Whether anything wrote to an array since then."""
        known = self._by.get(a.storage) or []
        return any(w.clock > clock and w.lo < a.hi and a.lo < w.hi for w in known)

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
