"""Copies within the host's memory that no tape or observer needs to see.

What is unusual goes the long way (`engine.runtime.transfer`), with nothing done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.compile.cpu import CPU, FEW, VAST
from engine.runtime import data as d
from engine.runtime import events
from engine.runtime.device import HOST
from engine.runtime.guards import in_one_place

if TYPE_CHECKING:
    from engine.runtime.base import ArrayBase

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def _is_bare(dest: ArrayBase) -> bool:
    """Whether it may be written, as far as can be said at once, and nobody listens."""
    storage = dest.storage
    return (
        storage.device is HOST and storage.writable and storage.guard is None
        and not dest._info.opaque and not events.everywhere and events.graph() is None
        and events.tape() is None and (dest.is_contiguous or not in_one_place(dest))
    )  # fmt: skip


def copied(dest: ArrayBase, src: ArrayBase, to: int, of: int, count: int) -> bool:
    """Copies a few elements as bytes, as `copy` is asked to; False where nothing was done."""
    info = dest._info
    n = count or src.size - of
    nbytes = n * info.size
    if not (
        info is src._info and src.is_contiguous and dest.is_contiguous
        and src.storage.device is HOST and 0 < nbytes <= FEW and to >= 0 <= of
        and of + n <= src.size and to + n <= dest.size and _is_bare(dest)
    ):  # fmt: skip
        return False
    first = dest._ptr + to * info.size
    dest.storage.before_write(first, first + nbytes)
    CPU.write(first, CPU.read(src._ptr + of * info.size, nbytes))
    return True


def take(dest: ArrayBase, src: np.ndarray[Any, Any]) -> bool:
    """Copies numbers that are as `dest` has them, or floats; False where nothing was done."""
    if dest.storage.device is not HOST or dest._info.opaque or events.everywhere:
        return False
    view = dest._parts
    if src.shape != view.shape:
        return False
    same = src.dtype is view.dtype
    if not (same or (src.dtype in _FLOATS and view.dtype in _FLOATS)):
        return False
    if not _is_bare(dest):
        return False
    dest.storage.before_write(dest.lo, dest.hi)
    if not same:
        with np.errstate(all="ignore"):
            view[...] = src
    elif src.nbytes < VAST:
        view[...] = src
    else:
        CPU.put(view, src)
    return True


def take_list(dest: ArrayBase, src: list[Any] | tuple[Any, ...]) -> bool:
    """The same of a list. Raises LaunchError (E206) for what is none of such elements."""
    if not _is_bare(dest):
        return False
    kind = dest._info.kind
    parts, dims = d.as_elements(d.to_numpy(src, kind), kind, None)
    if dims != dest.shape:
        if parts.size != dest._parts.size:
            return False
        parts = parts.reshape(dest._parts.shape)
    return take(dest, parts)
