"""Privatized arrays for the parts of a launch, and their reduction into one.

The first part has the array itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.compile.cpu.copies import Copies, add, view
from engine.compile.cpu.dealing import Winners
from engine.compile.cpu.schedule import Private
from engine.lang.numbers import number_kind


class Merged(Copies):
    """Copies to which nothing is done yet; to those in a given memory, something may be."""

    def __init__(
        self, private: Private, count: int, memory: NDArray[np.uint8] | None = None
    ) -> None:
        super().__init__(private.array, private.at, count, memory)
        self.private = private
        if memory is None and private.kind not in ("add", "xor"):
            # What is done to a copy twice is done once: they begin with what is there.
            now = view(private.array)
            for part in self.parts:
                part[...] = now

    def merge(self, tell: bool) -> Winners | None:
        """Brings the copies into the array, one after another.

        tell: give the winners, if gradients are theirs.
        """
        kind, target = self.private.kind, view(self.array)
        if kind == "add":
            add(target, self, self.parts)
            return None
        if kind not in _REPLACE:
            for part in self.parts:
                _COMBINE[kind](target, part)
            return None
        winners = np.zeros(target.shape, np.uint8) if tell and self.private.wins else None
        for k, part in enumerate(self.parts, 1):
            better = _REPLACE[kind](target, part)
            if winners is not None:
                winners[better] = k
        return None if winners is None else Winners(self.private.names, winners)


def _lesser(target: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
    return _replace(target, part, part < target)


def _greater(target: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
    return _replace(target, part, part > target)


def _replace(
    target: NDArray[Any], part: NDArray[Any], better: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Replaces what is better, or where no number was; says where."""
    better |= _missing(target) & ~_missing(part)
    np.copyto(target, part, where=better)
    return better


def _missing(a: NDArray[Any]) -> NDArray[Any]:
    return np.isnan(a) if number_kind(a.dtype) == "f" else np.zeros(a.shape, bool)


def _and(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_and(target, part, out=target)


def _or(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_or(target, part, out=target)


def _xor(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_xor(target, part, out=target)


_COMBINE = {"and": _and, "or": _or, "xor": _xor}
_REPLACE = {"min": _lesser, "max": _greater}
