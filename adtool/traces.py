"""The recordings of a run's tapes, handed from the child process to its parent as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from adtool import codec
from engine.autograd import TapeTrace, trace
from engine.classes import dataclass

if TYPE_CHECKING:
    from engine import CapturedTape

_MOST = 1 << 63  # no count, and no number of bytes, is larger


@dataclass(frozen=True, slots=True)
class Traces:
    """The tapes of a run, numbered as `adtool check` does. recorded: how many there were."""

    tapes: tuple[TapeTrace, ...]
    recorded: int

    def tape(self, number: int) -> TapeTrace | None:
        """The tape of a number; None where it was not kept, or is not there."""
        return next((t for t in self.tapes if t.tape == number), None)


def write(captured: Sequence[CapturedTape], limit: int, path: Path) -> None:
    """Writes what tapes with records hold. Where that cannot be, there is no file."""
    tapes = [t for t in captured if t.records]
    kept, left = [], limit
    for number, tape in enumerate(tapes):
        if left <= 0:
            break
        found = replace(trace(tape, left), tape=number)
        left -= len(found.operations)
        kept.append(found)
    text = codec.brief(Traces(tuple(kept), len(tapes)))
    with suppress(OSError):
        path.write_text(text, encoding="ascii")


def loads(text: str) -> Traces:
    """Traces from JSON. Raises CodecError where the text is not whole (`require_whole`)."""
    found = codec.loads(Traces, text)
    require_whole(found)
    return found


def require_whole(traces: Traces) -> None:
    """Raises CodecError where a number names nothing, or two lists do not fit each other.

    What draws pictures and tables relies on it, so it is called wherever traces are read.
    """
    _within("recorded", [traces.recorded], 0)
    for t in traces.tapes:
        x, tape = t.listing, f"tape {t.tape}"
        _within(tape, [t.tape, x.records], 0)
        for a in x.arrays:
            _within(f"{tape}, array {a.name!r}", [a.nbytes, *a.shape], 0)
        _within(f"{tape}, base", (a.base for a in x.arrays), -1, len(x.arrays))
        _within(f"{tape}, seeded", x.seeded, 0, len(x.arrays))
        _within(f"{tape}, sites", (line for _, line in x.sites), 0)
        for s in x.scopes:
            _within(f"{tape}, scope {s.name!r}", [s.begin, s.end, s.depth], 0)
        if t.memory is not None:
            _within(f"{tape}, memory", [getattr(t.memory, f.name) for f in fields(t.memory)], 0)
        for k in x.kernels:
            _within(f"kernel {k.name!r}", (*k.reads, *k.writes), 0, len(k.parameters))
            _within(f"kernel {k.name!r}", [k.line], 0)
        if len(t.operations) != len(x.operations):
            raise codec.CodecError(f"{tape}: some operations have no trace")
        for o, traced in zip(x.operations, t.operations, strict=True):
            place = f"{tape}, operation {o.index}"
            _within(place, [o.index, *o.dim], 0)
            _within(place, [o.launch], -1)
            _within(place, [o.kernel], 0, len(x.kernels))
            _within(place, [o.site], -1, len(x.sites))
            _within(place, o.arrays, -1, len(x.arrays))
            count = len(x.kernels[o.kernel].parameters)
            flow = traced.flow
            sizes = [] if flow is None else [flow.incoming, flow.outgoing, flow.added]
            if any(len(s) != count for s in (o.arrays, *sizes)):
                raise codec.CodecError(f"{place}: {count} parameters are expected")


def _within(place: str, numbers: Iterable[int], least: int, count: int = _MOST) -> None:
    for n in numbers:
        if not least <= n < count:
            raise codec.CodecError(f"{place}: {n} is not from {least} to {count - 1}")
