"""Records without the user's arrays, for inspection and not for backward passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.compile.pipeline import Request
from engine.diagnostics import Diagnostic, Span, TapeError
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.kernel import Kernel
from engine.runtime.storage import Hold
from engine.tape.outline import outline
from engine.tape.records.copy import CopyRecord
from engine.tape.records.foreign import ForeignRecord
from engine.tape.records.function import FunctionRecord
from engine.tape.records.launch import LaunchRecord
from engine.tape.records.record import Record
from engine.tape.restoration import Restoration


def captured(record: Record, contents: bool = True) -> Record:
    """A record that says the same and keeps none of the user's memory alive.

    contents: whether the copies of what a launch read are kept.
    """
    if isinstance(record, LaunchRecord):
        return CapturedLaunch(record, contents)
    if isinstance(record, FunctionRecord):
        # Its closure may hold arrays, and these all others that they came from.
        return FunctionRecord(_Gone(record.name), [], record._site)
    if isinstance(record, ForeignRecord):
        return CapturedForeign(record, contents)
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


class CapturedForeign(ForeignRecord):
    """A stretch as a check needs it: outlines of its arrays, and the function itself."""

    __slots__ = ()

    def __init__(self, r: ForeignRecord, contents: bool) -> None:
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
