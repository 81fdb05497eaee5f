"""Finds contents that operations of a tape overwrite and its adjoints read (`config.overwrites`).

While the tape records, every write to memory that an earlier record may read again in its
backward pass is noted, with holds on what was there before and after. A backward pass
restores just the numbers that such writes changed: all else is read as it is at present.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING

from engine import config
from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import Site, call_site, call_span
from engine.logger import log_warning
from engine.runtime.array import array
from engine.runtime.launch_errors import size_text
from engine.runtime.storage import Hold, Storage
from engine.tape.records import LaunchRecord
from engine.tape.records.record import Record
from engine.tape.restoration import Change, Restoration

# What looks at overwrites is imported late: most tapes have none.
if TYPE_CHECKING:
    from engine.tape.origins import Origins

MODES = ("restore", "present", "warn", "error")

# What nothing is added to.
_NONE: list[Change] = []
_NOTHING: frozenset[tuple[int, int, int]] = frozenset()

Needed = Mapping[int, Sequence[Restoration]]
_NEEDS_NOTHING: Needed = {}


def mode() -> str:
    """The setting. Raises TapeError (E401) where it has none of its values."""
    if config.overwrites not in MODES:
        raise TapeError(
            Diagnostic(
                "E401", f"engine.config.overwrites is {config.overwrites!r}", call_span(),
                notes=(f"it must be one of {', '.join(map(repr, MODES))}",),
            )
        )  # fmt: skip
    return config.overwrites


class Overwrites:
    """Watches one tape between two resets.

    changes: writes to memory that an earlier record of the tape had read, in order. journaled:
    whether a launch saved what it overwrote. mixed: what the last backward pass was warned of, None
    for nothing.
    """

    __slots__ = (
        "_found",
        "_known_origins",
        "_listed",
        "_missed",
        "_read",
        "_scanned",
        "_warned",
        "_written",
        "changes",
        "journaled",
        "mixed",
    )

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.journaled = False
        self.mixed: str | None = None
        # What records may read again: by memory, a range of addresses around all of it.
        self._read: dict[Storage, tuple[int, int]] = {}
        # Something was recorded while nobody watched.
        self._missed = False
        self._found: tuple[tuple[int, int], Needed] | None = None
        self._known_origins: Origins | None = None
        # The records as they were last seen: changes know them by their numbers.
        self._listed: Sequence[Record] = ()
        self._warned: frozenset[tuple[int, int, int]] = _NOTHING
        # Memory that the first records wrote, and how many these are.
        self._written: set[Storage] | None = None
        self._scanned = 0

    def until(self, count: int) -> Overwrites:
        """What is known of the first records alone."""
        out = Overwrites()
        if count:
            out.changes = [c for c in self.changes if c.position < count]
            out._read, out._missed, out._warned = dict(self._read), self._missed, self._warned
            out.journaled = self.journaled
        return out

    # ---- while the tape records

    def launching(
        self, record: LaunchRecord, position: Callable[[], int], before: bool = True
    ) -> list[Change]:
        """To be called before a launch runs; `wrote` is to be called with the result after it.

        position: gives its number among the records. before: whether it is; a launch may also be
        recorded that has run already.
        """
        if config.overwrites == "present":
            self._missed = True
            return _NONE
        # Every recorded launch comes here: no calls but where something is overwritten.
        read, values, selection = self._read, record.values, record.selection
        found = _NONE
        if read:
            for i in record.plan.writes:
                a = values[i]
                if a is not None and a.storage in read:
                    found = found or []
                    self._about(found, a, position, record.name, record._site, before)
        for i in selection.watched:
            a = values[i]
            if a is not None:
                known = read.get(a.storage)
                if known is None:
                    read[a.storage] = (a.lo, a.hi)
                elif a.lo < known[0] or known[1] < a.hi:
                    self._watch(a)
        return found

    def watched(self, more: Mapping[Storage, tuple[int, int]]) -> None:
        """Takes note of what launches may read again, that overwrite nothing of it."""
        read = self._read
        if not read:
            read.update(more)
            return
        for storage, (lo, hi) in more.items():
            known = read.get(storage, (lo, hi))
            read[storage] = (min(lo, known[0]), max(hi, known[1]))

    def are_none(self) -> bool:
        """Whether surely nothing was overwritten that a record may read again."""
        return not (self.changes or self._missed or self.journaled) and config.overwrites in MODES

    def writing(
        self, dest: array, name: str, position: Callable[[], int], loose: bool
    ) -> list[Change]:
        """The same for a write from the host. loose: whether it has no record."""
        found: list[Change] = []
        if dest.storage in self._read and mode() != "present":
            self._about(found, dest, position, name, call_site(), True, loose)
        return found

    def _about(
        self, found: list[Change], a: array, position: Callable[[], int], name: str,
        site: Site | None, before: bool, loose: bool = False,
    ) -> None:  # fmt: skip
        lo, hi = self._read[a.storage]
        if a.lo < hi and lo < a.hi:
            c = Change(position(), a, name, site, loose)
            if before and config.tape_snapshots != "off":
                c.before = a.storage.hold(a.lo, a.hi)
            found.append(c)

    def wrote(self, changes: Iterable[Change]) -> None:
        """Takes note of what writes left."""
        for c in changes:
            if config.tape_snapshots != "off":
                c.after = c.dest.storage.hold(c.dest.lo, c.dest.hi)
            self.changes.append(c)

    def watch(self, record: Record) -> None:
        """Takes note of what a record may read in its backward pass."""
        for _, a, _ in record.watched():
            self._watch(a)

    def _watch(self, a: array) -> None:
        known = self._read.get(a.storage)
        if known is None:
            self._read[a.storage] = (a.lo, a.hi)
        elif a.lo < known[0] or known[1] < a.hi:
            self._read[a.storage] = (min(a.lo, known[0]), max(a.hi, known[1]))

    def written(self, records: Sequence[Record], a: array) -> bool:
        """Whether a record wrote to an array's memory."""
        if self._written is None:
            self._written = set()
        for r in records[self._scanned :]:
            self._written.update(w.storage for w in r.written)
        self._scanned = len(records)
        return a.storage in self._written

    def left(self, records: Sequence[Record]) -> None:
        """To be called when the tape stops recording."""
        self._listed = records
        if self.changes or (self.journaled and not self._missed and _journals(records)):
            self._origins.scan(records, self.changes)
            self._origins.leave()

    @property
    def holds(self) -> list[Hold]:
        """The holds on what writes of the tape changed."""
        around = [h for c in self.changes for h in (c.before, c.after) if h is not None]
        return [*around, *(self._known_origins.holds if self._known_origins else ())]

    @property
    def _origins(self) -> Origins:
        if self._known_origins is None:  # most tapes need none
            from engine.tape.origins import Origins

            self._known_origins = Origins()
        return self._known_origins

    # ---- when it runs backward

    def needed(self, records: Sequence[Record]) -> Needed:
        """What each record reads in a backward pass now that was overwritten, by its number.

        Raises TapeError: E401 where what it held is lost, or the setting is none; E408 where
        it says so. Warns as it says, and where what is restored belongs to other inputs of the
        tape than the present ones.
        """
        self.mixed = None
        if self.are_none():
            return _NEEDS_NOTHING
        if mode() == "present":
            return {}
        journals = [] if self._missed or not self.journaled else _journals(records)
        if not records or not (self.changes or self._missed or journals):
            return {}
        self._look(records)
        out: dict[int, list[Restoration]] = {}
        for number, all_of_it in self._replaced(records).items():
            reads = records[number].reads()
            some = [x for x in all_of_it if x.index in reads]
            if some:
                out[number] = some
        journals = [k for k in journals if records[k].reads_journal()]
        if not (out or journals):
            return out
        if out and config.overwrites == "error":
            raise _refused(records, *_first(out))
        for number, some in out.items():
            for x in some:
                if x.hold is None or x.hold.lost:
                    raise records[number].unknown(x.index, x.hold)
        if config.overwrites == "warn":
            self._warn(records, out)
        from engine.tape.mixture import mixture

        self.mixed = mixture(records, self._origins.all, out, journals)
        if self.mixed is not None:
            log_warning(self.mixed)
        return out

    def _look(self, records: Sequence[Record]) -> None:
        """Raises TapeError (E401) where what was overwritten is not known for these records."""
        known, self._listed = self._listed, records
        if len(known) <= len(records) and all(map(is_, known, records)):
            if all(c.loose or _is_by(records, c) for c in self.changes):
                return
        self._found = None
        if self.changes:
            self._listed = known
            raise TapeError(
                Diagnostic(
                    "E401", "the list of the tape's records was changed, so that overwritten "
                    "values can no longer be found", call_span(),
                    help="record on another tape, or `reset` this one and record again",
                )
            )  # fmt: skip

    def _replaced(self, records: Sequence[Record]) -> Needed:
        key = (len(records), len(self.changes))
        if self._found is None or self._found[0] != key:
            changes = _all_writes(records) if self._missed else self.changes
            from engine.tape.replaced import replaced

            self._origins.scan(records, self.changes)
            self._found = key, replaced(records, changes, self._origins.all)
        return self._found[1]

    def _warn(self, records: Sequence[Record], needed: Needed) -> None:
        """Says of each array once that it was overwritten."""
        costs: dict[tuple[int, int, int], list[tuple[int, Restoration]]] = {}
        for number, some in sorted(needed.items()):
            for x in some:
                costs.setdefault((id(x.read.storage), x.read.lo, x.read.hi), []).append((number, x))
        for key, uses in costs.items():
            if key in self._warned:
                continue
            self._warned |= {key}
            number, x = uses[0]
            cost = size_text(sum(u.nbytes for _, u in uses))
            log_warning(
                f"{_what(records[number], x)}: {cost} of saved values are restored for the "
                "gradient; other engines (Warp) would give a wrong one here"
            )


def _all_writes(records: Sequence[Record]) -> list[Change]:
    """What records wrote, where nobody watched what that changed."""
    return [
        Change(k, a, r.name, r._site) for k, r in enumerate(records) for a in r.written if a.size
    ]


def _is_by(records: Sequence[Record], c: Change) -> bool:
    """Whether the record of a change is where it was."""
    return c.position < len(records) and any(a is c.dest for a in records[c.position].written)


def _journals(records: Sequence[Record]) -> list[int]:
    """The launches that saved what they overwrote."""
    return [k for k, r in enumerate(records) if r.journal_bytes]


def _first(needed: Needed) -> tuple[int, Restoration]:
    number = min(needed)
    return number, needed[number][0]


def _what(record: Record, x: Restoration) -> str:
    by = f" at {x.by.site.span}" if x.by.site is not None else ""
    at = f" at {record.site}" if record.site is not None else ""
    return f"{record.argument(x.index)}{at} was overwritten by {x.by.name!r}{by}"


def _refused(records: Sequence[Record], number: int, x: Restoration) -> TapeError:
    record = records[number]
    by = f" at {x.by.site.span}" if x.by.site is not None else ""
    return TapeError(
        Diagnostic(
            "E408", f"the gradient needs the content of {record.argument(x.index)}, which "
            f"{x.by.name!r} overwrote later on the tape{by}", record.site,
            help="give each operation a separate array, or set engine.config.overwrites = "
                 '"restore"',
        )
    )  # fmt: skip
