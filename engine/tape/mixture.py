"""Tests whether saved values belong to earlier inputs of the tape than its present ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from engine.cached import cached_property
from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.storage import Hold
from engine.tape.flow import flowing
from engine.tape.origins import Origin, Places
from engine.tape.records import LaunchRecord
from engine.tape.records.record import Record
from engine.tape.restoration import NumpyArray, Restoration, differing, planes

Needed = Mapping[int, Sequence[Restoration]]


def mixture(
    records: Sequence[Record], origins: Sequence[Origin], needed: Needed, journals: Sequence[int]
) -> str | None:
    """A warning, where a saved value came from an array that was changed since; else None.

    Saved is what is restored, and what launches journaled. What came from what is told by whole
    arrays: those that a launch reads and writes. journals: the launches that have one.
    """
    moved = [(o, where) for o in origins if (where := o.moved()) is not None]
    last = max([*needed, *journals], default=-1)
    if not moved or last < 0:
        return None
    look = _Look(records, needed)
    stale: Places[_Stale] = Places()  # what moved, and what the tape computed from it
    for number, record in enumerate(records[: last + 1]):
        while moved and moved[0][0].position == number:
            origin, where = moved.pop(0)
            stale.add(origin.read, _Stale(origin, where))
        for x in needed.get(number, ()):
            for tag in stale.every(x.read):
                if tag.meets(x) and look.matters(number, tag.origin):
                    return _text(records, tag.origin, _restored(record, x), look.mixed)
        if number in journals:
            launch = record.launch
            assert launch is not None
            for a in _journaled_from(launch):
                for tag in stale.every(a):
                    if look.matters(number, tag.origin):
                        return _text(records, tag.origin, _journaled(launch), look.mixed)
        tags = [t for a, *_ in record.operands() for t in stale.every(a)]
        # Of several, one that the tape leaves as it is: it says more.
        found = min(tags, key=lambda t: t.origin.rewritten, default=None)
        for a in record.written:
            if found is not None:
                stale.add(a, _Stale(found.origin))
            elif record.launch is None:  # which may leave some of it
                stale.discard(a)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Stale:
    """An array that was changed, and which numbers; or what was computed from it."""

    origin: Origin
    where: NumpyArray | None = None

    def meets(self, x: Restoration) -> bool:
        """Whether the numbers that are restored may be of it."""
        if self.where is None:
            return True
        a, b = self.origin.read, x.read
        lo, hi = min(a.lo, b.lo), max(a.hi, b.hi)
        plane = np.zeros(hi - lo, np.bool_)
        planes(plane, lo, a)[self.where] = True
        return bool(planes(plane, lo, b)[x.where].any())


class _Look:
    """What a pass reads of the present."""

    def __init__(self, records: Sequence[Record], needed: Needed) -> None:
        self.records = records
        self.needed = needed

    @cached_property
    def flowing(self) -> frozenset[int]:
        """The records through which a gradient may flow."""
        return flowing(self.records)

    @cached_property
    def mixed(self) -> bool:
        """Whether something that it reads as it is at present is not what it was then."""
        return any(
            _differs(a, hold, [x.where for x in self.needed.get(k, ()) if x.index == index])
            for k in self.flowing
            for index, a, hold in _read(self.records[k])
        )

    def matters(self, number: int, origin: Origin) -> bool:
        """Whether a record's saved values that came from a changed array are to be told of.

        An array that the tape itself overwrites may be used for something else afterwards: if
        all values that it reads are unchanged, the gradient is right.
        """
        return number in self.flowing and (not origin.rewritten or self.mixed)


def _read(record: Record) -> Iterator[tuple[int, array, Hold | None]]:
    reads = None
    for index, a, hold in record.watched():
        if reads is None:
            reads = record.reads()
        if index in reads:
            yield index, a, hold


def _differs(a: array, hold: Hold | None, restored: Sequence[NumpyArray]) -> bool:
    if hold is None or hold.lost or a.storage.unchanged(hold):
        return False
    differs = differing(a, hold)
    if differs is None:
        return False
    for where in restored:
        differs &= ~where
    return bool(differs.any())


# ---- what journals depend on


def _journaled_from(record: LaunchRecord) -> list[array]:
    """The arrays that the journaled values came from."""
    plan = record.plan
    names = record.selection.journaled
    if not _journals_first(record, names):
        return [record.values[i] for i in plan.inputs if record.values[i] is not None]
    return [
        a for p in plan.array_params if p.name in names and (a := record.values[p.index])
        is not None
    ]  # fmt: skip


def _journals_first(record: LaunchRecord, names: frozenset[str]) -> bool:
    """Whether each thread surely journals what its arrays held before the launch, and no more.

    So if it has no branches, reads them all before it writes at all, at places that are its own.
    """
    from engine.ir import nodes as n

    body = record.plan.variants.prepared.body
    wrote = False
    for s in body:
        if isinstance(s, n.Store):
            wrote = True
        elif isinstance(s, n.Load):
            if wrote and s.array.name in names:
                return False
        elif not isinstance(s, (n.Let, n.Set)):
            return False
    classes = record.classes()
    for g in classes.groups:
        if names & set(g.names):
            if g.sharing != "owned":
                return False
            if any(None in a.index for a in g.accesses if a.kind == "read" and a.array in names):
                return False
    return classes.known


# ---- words


def _restored(record: Record, x: Restoration) -> str:
    by = x.by.site
    return (
        f"{record.argument(x.index)}{_at(record.site)}, which depends on it and was overwritten "
        f"by {x.by.name!r}{_at(None if by is None else by.span)}, is restored to its earlier "
        "content"
    )


def _journaled(record: LaunchRecord) -> str:
    return (
        f"kernel {record.name!r}{_at(record.site)} overwrites values that depend on it and that "
        "its adjoint reads in their earlier state"
    )


def _text(records: Sequence[Record], origin: Origin, saved: str, mixed: bool) -> str:
    result = "mixes both" if mixed else "belongs to the operations that ran"
    return (
        f"{origin.name}{_at(records[origin.position].site)} was changed outside of the tape since "
        f"it was recorded, but {saved}: the gradient {result}. Record the tape again after such a "
        "change, or give each operation a separate array and run them all again"
    )


def _at(place: object) -> str:
    return "" if place is None else f" at {place}"
