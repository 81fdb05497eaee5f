"""Large gradients that are known to be zero."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from engine.compile.cpu import VAST
from engine.runtime.storage import Storage

if TYPE_CHECKING:
    from engine.runtime.array import array

# Where they are, and which write was the last. All writes but users' own count, and those are
# told apart: see `Storage.told`.
_known: WeakKeyDictionary[Storage, tuple[int, int, int]] = WeakKeyDictionary()
# Memory whose address somebody has asked for, who may write there: of it, nothing is known.
_addressed: WeakSet[Storage] = WeakSet()


def is_blank(a: array) -> bool:
    """Whether all bytes of a contiguous array are certainly zero; nobody asks about small ones."""
    storage = a.storage
    return (
        a.hi - a.lo >= VAST and storage.told and storage not in _addressed
        and _known.get(storage) == (a.lo, a.hi, storage.version)
    )  # fmt: skip


def note_address(storage: Storage) -> None:
    """Notes that somebody is told where memory is."""
    if storage.nbytes >= VAST:
        _addressed.add(storage)


def note_blank(a: array) -> None:
    """Notes that they are."""
    if a.hi - a.lo >= VAST:
        _known[a.storage] = (a.lo, a.hi, a.storage.version)
