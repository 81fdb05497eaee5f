"""Finds equal launches: the same kernel and grid, and arguments with the same values.

What is found of one holds for the others, so it is checked once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from engine.autograd.launch.recorded_arguments import shape_key
from engine.autograd.results import LaunchResult
from engine.lang.types import UINT64, scalar_of
from engine.runtime.storage import Hold
from engine.tape.records import LaunchRecord
from engine.tape.restoration import contents

# Verdicts that another launch with the same values would get, too.
_LASTING = {"pass", "kink", "skipped", "fail", "nan"}


class EqualLaunches:
    """What was found of launches, by the values of their arguments."""

    def __init__(self) -> None:
        self._found: dict[Hashable, LaunchResult] = {}
        # Of arrays as they were: launches that read what nobody has changed share a hold.
        self._digests: WeakKeyDictionary[Hold, dict[Hashable, bytes]] = WeakKeyDictionary()

    def key(self, record: LaunchRecord) -> Hashable | None:
        """Equal for equal launches; None where a value is not known, or may not be all there is."""
        values: list[Any] = []
        for p, v in zip(record.plan.params, record.values, strict=True):
            # Numbers of 64 bits without a sign may stand for an object, as a hash grid.
            if scalar_of(p.kind) == UINT64:
                return None
            if v is None:
                values.append(None)
            elif p.array_kind is None:
                values.append(p.packed(v))
            elif p.index in record.holds:
                digest = self._digest(v, record.holds[p.index])
                if digest is None:
                    return None
                values.append(digest)
            elif p.index in record.plan.inputs:
                return None
            else:
                values.append(None)  # no result depends on what was there
        return shape_key(record), tuple(values)

    def _digest(self, a: Any, hold: Hold) -> bytes | None:
        known = self._digests.setdefault(hold, {})
        place = (a.ptr, tuple(a.shape), tuple(a.strides), str(a.dtype))
        if place not in known:
            held = contents(a, hold)
            if held is None:
                return None
            known[place] = hashlib.blake2b(np.ascontiguousarray(held).data, digest_size=16).digest()
        return known[place]

    def found(self, key: Hashable | None) -> LaunchResult | None:
        """What was found of a launch with this key."""
        return None if key is None else self._found.get(key)

    def add(self, key: Hashable | None, found: LaunchResult) -> None:
        """Notes what was found, if it holds for equal launches."""
        verdicts = {p.verdict for p in found.pairs}
        by_itself = not any(p.by_whole for p in found.pairs)
        # Those that are skipped have nothing to check; variables of the program differ by launch.
        if key is None or found.skipped or found.detached or not found.pairs:
            return
        if by_itself and verdicts <= _LASTING:
            pairs = (replace(p, corner=None) for p in found.pairs)  # told once
            self._found.setdefault(key, replace(found, pairs=tuple(pairs)))
