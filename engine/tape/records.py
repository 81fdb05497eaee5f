"""The record of each kind of operation, and its part in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from engine.diagnostics.site import Site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.leaves import float_parts
from engine.runtime.storage import Hold
from engine.tape.launch_record import LaunchRecord
from engine.tape.record import Record
from engine.tape.restoration import Restoration

__all__ = ["CopyRecord", "FuncRecord", "LaunchRecord", "OverwriteRecord", "Record"]


class CopyRecord(Record):
    """`copy`, `clone` or `assign`: what is overwritten passes its gradient to the source.

    source: what the source held, where it came from outside of the tape.
    """

    __slots__ = ("dest", "source", "src")

    def __init__(
        self, dest: array, src: array, site: Site | None, source: Hold | None = None
    ) -> None:
        self.dest = dest
        self.src = src
        self._site = site
        self.source = source

    @property
    def name(self) -> str:
        return "copy"

    @property
    def arrays(self) -> Sequence[array]:
        return [self.dest, self.src]

    @property
    def written(self) -> Sequence[array]:
        return [self.dest]

    @property
    def snapshots(self) -> Sequence[Hold]:
        return () if self.source is None else (self.source,)

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        cotangent = self.dest.grad
        if cotangent is None:
            return
        seeds = [part.copy() for part in float_parts(cotangent)]
        cotangent.zero_()
        into = self.src.grad
        if into is not None:
            into.storage.before_write(into.lo, into.hi)
            of, to = cotangent.device.backend, into.device.backend
            for part, seed in zip(float_parts(into), seeds, strict=True):
                if into.device == cotangent.device:
                    np.add(part, seed, out=part, casting="unsafe")
                else:
                    to.put(part, to.to_host(part) + of.to_host(seed))


class OverwriteRecord(Record):
    """`fill_`, `zero_` or item assignment: what was there before gets no gradient."""

    __slots__ = ("_name", "dest")

    def __init__(self, dest: array, what: str, site: Site | None) -> None:
        self.dest = dest
        self._name = what
        self._site = site

    @property
    def name(self) -> str:
        return self._name

    @property
    def arrays(self) -> Sequence[array]:
        return [self.dest]

    @property
    def written(self) -> Sequence[array]:
        return [self.dest]

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        if self.dest.grad is not None:
            self.dest.grad.zero_()


class FuncRecord(Record):
    """A Python function that the user recorded to be called in the backward pass.

    holds: what its arrays held then; empty where nothing is remembered.
    """

    __slots__ = ("_arrays", "function", "holds")

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

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        events.needs_host(f"{self.name} is a Python function")
        with ExitStack() as stack:
            for x in restored:
                stack.enter_context(x.in_place())
            self.function()
