"""Whether restored values belong to other inputs of the tape than those that it has now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.tape.origins import Origin, Places, read_by
from engine.tape.record import Record
from engine.tape.records import LaunchRecord
from engine.tape.restoration import Restoration


def mixture(
    records: Sequence[Record],
    origins: Sequence[Origin],
    needed: Mapping[int, Sequence[Restoration]],
) -> str | None:
    """A warning, where a restored value came from an array that was changed since; else None.

    What came from what is told by whole arrays: those that a launch reads and writes.
    """
    moved = [o for o in origins if o.moved()]
    if not moved:
        return None
    stale: Places[Origin] = Places()  # they, and what the tape computed from them
    for number, record in enumerate(records[: max(needed) + 1]):
        while moved and moved[0].position == number:
            stale.add(moved[0].read, moved.pop(0))
        for x in needed.get(number, ()):
            origin = stale.find(x.read)
            if origin is not None:
                return _text(records, origin, record, x)
        origin = next((o for a, *_ in read_by(record) if (o := stale.find(a))), None)
        for a in record.written:
            if origin is not None:
                stale.add(a, origin)
            elif not isinstance(record, LaunchRecord):  # which may leave some of it
                stale.discard(a)
    return None


def _text(records: Sequence[Record], origin: Origin, record: Record, x: Restoration) -> str:
    site, by = records[origin.position].site, x.by.site
    return (
        f"{origin.name}{_at(site)} was changed outside of the tape since it was recorded, but "
        f"{record.argument(x.index)}{_at(record.site)}, which depends on it and was overwritten "
        f"by {x.by.name!r}{_at(None if by is None else by.span)}, is restored to what it held "
        "then: the gradient mixes both. Record the tape again after such a change, or give "
        "each operation an array of its own and run them all again"
    )


def _at(place: object) -> str:
    return "" if place is None else f" at {place}"
