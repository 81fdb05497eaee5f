"""The record of a copy on a tape, and its part in the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.leaves import float_parts
from engine.runtime.storage import Hold
from engine.tape.records.record import Description, Operand, Record, Replayer
from engine.tape.restoration import Restoration

if TYPE_CHECKING:
    from engine.tape.forward import Tangents


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

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
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
                with np.errstate(all="ignore"):  # a program may have NumPy raise
                    if into.device == cotangent.device:
                        np.add(part, seed, out=part, casting="unsafe")
                    else:
                        to.put(part, to.to_host(part) + of.to_host(seed))

    @property
    def stored(self) -> Iterable[array]:
        return (self.dest,)

    @property
    def sources(self) -> Iterable[array]:
        return (self.src,)

    def passes_gradient(self, a: array) -> bool:
        return self.src.requires_grad

    def operands(self) -> Iterable[Operand]:
        yield Operand(self.src, "the source of a copy", self.source, False)

    def only_read(self, captured: Record) -> Iterable[tuple[array, Hold | None]]:
        yield self.src, captured.source

    @property
    def copied(self) -> tuple[array, array]:
        return self.dest, self.src

    def captured(self, contents: bool = True) -> Record:
        from engine.tape.records.captured import CapturedCopy

        return CapturedCopy(self, contents)

    def replay(self, by: Replayer) -> None:
        by.copy(self, self.dest, self.src)

    def describe(self, count: int) -> Description:
        return Description("copy", ("dest", "src"), (1,), (0,))

    def tangent(self, tangents: Tangents) -> None:
        tangents.copy(self.dest, self.src)
