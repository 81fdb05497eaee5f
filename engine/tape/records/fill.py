"""The record of a fill on a tape, and its part in the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.tape.records.record import Description, Record, Replayer
from engine.tape.restoration import Restoration

if TYPE_CHECKING:
    from engine.tape.forward import Tangents


class FillRecord(Record):
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

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        if self.dest.grad is not None:
            self.dest.grad.zero_()

    @property
    def stored(self) -> Iterable[array]:
        return (self.dest,)

    def captured(self, contents: bool = True) -> Record:
        from engine.tape.records.captured import CapturedFill

        return CapturedFill(self)

    def replay(self, by: Replayer) -> None:
        by.fill(self, self.dest)

    def describe(self, count: int) -> Description:
        return Description("write", ("dest",), (), (0,))

    def tangent(self, tangents: Tangents) -> None:
        tangents.clear(self.dest)
