"""Arrays of several objects as one, for launches that query several meshes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from engine.runtime.array import array
from engine.runtime.creation import empty
from engine.runtime.storage import Storage
from engine.runtime.transfer import copy

# Of each pool: the arrays in it, and where each begins.
_parts: WeakKeyDictionary[Storage, list[tuple[int, array]]] = WeakKeyDictionary()


def pooled(given: Sequence[array]) -> array:
    """Copies of arrays of one type, one after the other. An active tape records the copies.

    So gradients of the pool find their way by the tape; those of a launch that no tape records
    are dealt out by `deal`.
    """
    moves = any(a.requires_grad for a in given)
    pool = empty(sum(map(len, given)), dtype=given[0].dtype, device="cpu", requires_grad=moves)
    parts, at = [], 0
    for a in given:
        if len(a):
            copy(pool, a, at, 0, len(a))
            parts.append((at, a))
        at += len(a)
    _parts[pool.storage] = parts
    return pool


def deal(arrays: Iterable[Any]) -> None:
    """Adds the gradients of pools to those of the arrays in them."""
    for pool in arrays:
        found = pool.existing_grad if isinstance(pool, array) else None
        if found is None:
            continue
        for at, a in _parts.get(pool.storage, ()):
            own = a.grad if a.requires_grad else None
            if own is not None:
                own.storage.before_write(own.lo, own.hi)
                own._parts[...] += found._parts[at : at + len(a)]
