"""The record of a Python function on a tape, and its part in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from engine.diagnostics.site import Site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.storage import Hold
from engine.tape.records.record import Description, Record, Replayer
from engine.tape.restoration import Restoration


class FunctionRecord(Record):
    """A Python function that the user recorded to be called in the backward pass.

    holds: what its arrays held then; empty where nothing is remembered.
    """

    __slots__ = ("_arrays", "function", "holds")

    function: Callable[[], Any]
    repeatable = False

    def __init__(
        self, function: Callable[[], Any], arrays: Sequence[array], site: Site | None
    ) -> None:
        self.function = function
        self._arrays = list(arrays)
        self._site = site
        self.holds: dict[int, Hold] = {}

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def arrays(self) -> Sequence[array]:
        return self._arrays

    @property
    def written(self) -> Sequence[array]:
        return []

    @property
    def snapshots(self) -> Sequence[Hold]:
        return list(self.holds.values())

    def take_holds(self) -> None:
        """Remembers what its arrays contain."""
        self.holds = {i: a.storage.hold(a.lo, a.hi) for i, a, _ in self.watched()}

    def watched(self) -> Iterable[tuple[int, array, Hold | None]]:
        for i, a in enumerate(self._arrays):
            if isinstance(a, array):
                yield i, a, self.holds.get(i)

    def reads(self) -> Collection[int]:
        return range(len(self._arrays))

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        events.needs_host(f"{self.name} is a Python function")
        with ExitStack() as stack:
            for x in restored:
                stack.enter_context(x.in_place())
            self.function()

    @property
    def sources(self) -> Iterable[array]:
        return self._arrays

    @property
    def declared(self) -> Sequence[array]:
        return [a for a in self._arrays if isinstance(a, array)]

    @property
    def listed(self) -> Sequence[Any]:
        return self.declared

    def captured(self, contents: bool = True) -> Record:
        from engine.tape.records.captured import GoneFunction

        # Its closure may hold arrays, and these all others that they came from.
        return FunctionRecord(GoneFunction(self.name), [], self._site)

    def replay(self, by: Replayer) -> None:
        why = f"`{self.name}`, given to Tape.record_func, has no known forward computation"
        by.refuse(self, why)

    def describe(self, count: int) -> Description:
        each = tuple(range(count))
        return Description("function", tuple(f"arrays[{i}]" for i in each), each, ())
