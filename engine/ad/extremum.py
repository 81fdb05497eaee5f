"""Tells when an atomic minimum or maximum replaced the stored value, in both AD directions."""

from __future__ import annotations

from engine.ir import nodes as n
from engine.ir.builder import Builder
from engine.lang.types import is_float


def replaced(b: Builder, s: n.Atomic, value: n.Atom, before: n.Atom) -> n.Atom:
    """Whether a scalar took the place of what was there.

    It did where it was less (or greater), or where no number was there but NaN, which counts
    as missing. Of equal values the first one stays.
    """
    better = b.op("lt" if s.kind == "min" else "gt", value, before)
    if not is_float(value.type):
        return better
    missing = b.op("ne", before, before)
    return b.op("lor", better, b.op("land", missing, b.op("eq", value, value)))
