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
from engine.tape.outline import outline
from engine.tape.records.foreign import ForeignRecord
from engine.tape.records.launch import LaunchRecord
from engine.tape.records.record import Description, Record, Replayer
from engine.tape.restoration import Restoration


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

    def _only_written(self, a: Any) -> np.ndarray[Any, Any]:
        return np.asarray(a.blank())

    def requests(self) -> list[Request]:
        return []

    def is_ready(self) -> bool:
        return False

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        raise self.gone()


class CapturedForeign(ForeignRecord):
    """A stretch as a check needs it: outlines of its arrays, and the function itself."""

    __slots__ = ()

    def __init__(self, r: ForeignRecord, contents: bool) -> None:
        self.stretch, self._site = r.stretch, r._site
        self.inputs: list[Any] = [outline(a) for a in r.inputs]
        self.outputs: list[Any] = [outline(a) for a in r.outputs]
        self.holds = r.holds if contents else {}
        self.results = r.results if contents else None

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        raise self.gone()


class BarredLaunch(Record):
    """A launch that is known of, and cannot be run. why: the reason; definition: of its kernel."""

    __slots__ = ("definition", "dim", "kernel", "why")

    kernel: Kernel
    definition: Span

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

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        raise self.gone()

    def captured(self, contents: bool = True) -> Record:
        return self

    def replay(self, by: Replayer) -> None:
        by.refuse(self, f"kernel {self.name!r} cannot be run: {self.why}")

    def describe(self, count: int) -> Description:
        return Description("launch", (), (), ())


class GoneFunction:
    """Has the name of a function, and cannot be called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self) -> None:
        raise TapeError(Diagnostic("E401", f"the captured function {self.__name__!r} is gone"))
