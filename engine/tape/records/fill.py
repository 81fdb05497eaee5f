"""The record of a fill on a tape."""

from __future__ import annotations

from engine.tape.records.linear import LinearRecord


class FillRecord(LinearRecord, kind="write", from_host=True):
    """`fill_`, `zero_` or item assignment: what was there before gets no gradient."""

    __slots__ = ()
