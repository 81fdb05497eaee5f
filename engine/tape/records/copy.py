"""The record of a copy on a tape."""

from __future__ import annotations

from engine.runtime.array import array
from engine.tape.records.linear import LinearRecord, NumpyArray


class CopyRecord(LinearRecord, kind="copy"):
    """`copy`, `clone` or `assign`: what is overwritten passes its gradient to the source."""

    __slots__ = ()

    def forward(self, values: NumpyArray) -> NumpyArray:
        return values

    def transpose(self, cotangents: NumpyArray) -> NumpyArray:
        return cotangents

    @property
    def copied(self) -> tuple[array, array] | None:
        return None if self.src is None else (self.dest, self.src)
