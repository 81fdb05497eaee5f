"""Records without the user's arrays, for inspection and not for backward passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from engine import config
from engine.classes import dataclass
from engine.compile.pipeline import Request
from engine.diagnostics import Diagnostic, Span, TapeError
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.kernel import Kernel
from engine.runtime.storage import Hold
from engine.tape.outline import Outline, outline
from engine.tape.records import CopyRecord, FuncRecord, LaunchRecord, Record
from engine.tape.restoration import Restoration, contents, differ, differing, present
from engine.tape.stretch import StretchRecord

# Numbers of an array that are not what was expected: which, and their values.
Other: TypeAlias = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def captured(record: Record, contents: bool = True) -> Record:
    """A record that says the same and keeps none of the user's memory alive.

    contents: whether the copies of what a launch read are kept.
    """
    if isinstance(record, LaunchRecord):
        return CapturedLaunch(record, contents)
    if isinstance(record, FuncRecord):
        # Its closure may hold arrays, and these all others that they came from.
        return FuncRecord(_Gone(record.name), [], record._site)
    if isinstance(record, StretchRecord):
        return CapturedStretch(record, contents)
    return CapturedWrite(record, contents)


class CapturedLaunch(LaunchRecord):
    """A launch as a check needs it: outlines of its arrays, and what its inputs contained.

    Arrays that it only wrote come as zeros in `inputs_at_record`.
    """

    __slots__ = ()

    def __init__(self, r: LaunchRecord, contents: bool) -> None:
        self.plan, self.dim, self.blob, self.input_count = r.plan, r.dim, b"", r.input_count
        self.values = [outline(v) if isinstance(v, array) else v for v in r.values]
        self._site, self.aliased, self.selection = r._site, r.aliased, r.selection
        self.journal, self.stack_bytes = None, 0
        self.held = r.held if contents else ()

    @property
    def in_order(self) -> bool:
        """Whether its threads ran one after the other, or as if they did: not on a GPU."""
        return self.plan.backend.on_host

    def _only_written(self, a: Any) -> np.ndarray[Any, Any]:
        return np.asarray(a.blank())

    def requests(self) -> list[Request]:
        return []

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        raise _gone(self)


def in_order(r: LaunchRecord) -> bool:
    """See `CapturedLaunch.in_order`."""
    return r.in_order if isinstance(r, CapturedLaunch) else r.plan.backend.on_host


class CapturedStretch(StretchRecord):
    """A stretch as a check needs it: outlines of its arrays, and the function itself."""

    __slots__ = ()

    def __init__(self, r: StretchRecord, contents: bool) -> None:
        self.stretch, self._site = r.stretch, r._site
        self.inputs: list[Any] = [outline(a) for a in r.inputs]
        self.outputs: list[Any] = [outline(a) for a in r.outputs]
        self.holds = r.holds if contents else {}
        self.results = r.results if contents else None

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        raise _gone(self)


class CapturedWrite(Record):
    """A copy, or another write from the host.

    copy: whether it is one, from the second array to the first. source: what the second held.
    """

    __slots__ = ("_arrays", "_name", "_written", "copy", "source")

    def __init__(self, r: Record, contents: bool) -> None:
        self.copy = isinstance(r, CopyRecord)
        self.source: Hold | None = None
        if isinstance(r, CopyRecord) and contents:
            self.source = r.src.storage.hold(r.src.lo, r.src.hi, eager=True)
        self._arrays: list[Any] = [outline(a) for a in r.arrays]
        self._written: list[Any] = [outline(a) for a in r.written]
        self._name = r.name
        self._site = r._site

    @property
    def name(self) -> str:
        return self._name

    @property
    def arrays(self) -> Sequence[array]:
        return self._arrays

    @property
    def written(self) -> Sequence[array]:
        return self._written

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        raise _gone(self)


class BarredLaunch(Record):
    """A launch that is known of, and cannot be run. why: the reason; definition: of its kernel."""

    __slots__ = ("definition", "dim", "kernel", "why")

    def __init__(
        self, kernel: Kernel, dim: tuple[int, ...], definition: Span, why: str, site: Site | None
    ) -> None:  # fmt: skip
        self.kernel, self.dim, self.definition, self.why = kernel, dim, definition, why
        self._site = site

    @property
    def name(self) -> str:
        return self.kernel.key

    @property
    def arrays(self) -> Sequence[array]:
        return []

    @property
    def written(self) -> Sequence[array]:
        return []

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        raise _gone(self)


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass as it was run: from which arrays, and at which contents.

    records: how many there were on the tape by then.
    restored: whether it used what launches read then, where the tape overwrote that.
    changed: where it did not, what inputs held by then that had changed since their launch, by
    the launch's position among the records and the parameter's index; where an input is
    missing, it held what it had held. read: where it did, what adjoints read of inputs that
    was not what these had held: which numbers, and their values.
    """

    records: int
    seeded: tuple[Outline, ...]
    restored: bool
    changed: Mapping[tuple[int, int], Hold]
    read: Mapping[tuple[int, int], Other]


def ran(
    records: Sequence[Record], seeded: Sequence[array],
    restored: Mapping[int, Sequence[Restoration]],
) -> Backward:  # fmt: skip
    """Notes that a backward pass from some arrays is about to run.

    restored: what it restores, by position among the records.
    """
    if config.overwrites == "present":
        restoring, changed, read = False, _changed(records), {}
    else:
        restoring, changed, read = True, {}, _read(records, restored)
    return Backward(len(records), tuple(outline(a) for a in seeded), restoring, changed, read)


def _read(
    records: Sequence[Record], restored: Mapping[int, Sequence[Restoration]]
) -> dict[tuple[int, int], Other]:
    out: dict[tuple[int, int], Other] = {}
    for position, r in enumerate(records):
        if not isinstance(r, LaunchRecord):
            continue
        held = r.holds.items()
        changed = [(i, hold) for i, hold in held if not r.values[i].storage.unchanged(hold)]
        if not changed:
            continue
        reads, known = r.reads(), {x.index: x for x in restored.get(position, ())}
        for i, hold in changed:
            if i not in reads:
                continue
            a = r.values[i]
            if i not in known:
                where = differing(a, hold)
                if where is not None:
                    out[position, i] = (where, present(a)[where])
                continue
            was = contents(a, hold)
            if was is not None:
                now = known[i].contents()
                where = differ(now, was)
                if where.any():
                    out[position, i] = (where, now[where])
    return out


def _changed(records: Sequence[Record]) -> dict[tuple[int, int], Hold]:
    changed: dict[tuple[int, int], Hold] = {}
    known: dict[tuple[int, int, int], Hold] = {}
    for position, r in enumerate(records):
        if not isinstance(r, LaunchRecord):
            continue
        for i, hold in r.holds.items():
            a = r.values[i]
            memory = a.storage
            if memory.unchanged(hold):
                continue
            key = (id(memory), a.lo, a.hi)
            if key not in known:
                known[key] = memory.hold(a.lo, a.hi, eager=True)
            if known[key] is not hold:
                changed[position, i] = known[key]
    return changed


class _Gone:
    """Has the name of a function, and cannot be called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self) -> None:
        raise TapeError(Diagnostic("E401", f"the captured function {self.__name__!r} is gone"))


def _gone(record: Record) -> TapeError:
    return TapeError(
        Diagnostic("E401", f"the arrays of the captured {record.name!r} are gone", record.site)
    )
