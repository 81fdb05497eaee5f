"""Large gradients that are known to be zero, so that nobody has to look.

Nobody who got an address alone is known: what is only known so must not decide what gradients are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from engine.compile.cpu import VAST
from engine.runtime.storage import Storage

if TYPE_CHECKING:
    from engine.runtime.array import array

# Where they are, and which write was the last. All writes but users' own count, and those are
# told apart: see `Storage.told`.
_known: WeakKeyDictionary[Storage, tuple[int, int, int]] = WeakKeyDictionary()


def is_blank(a: array) -> bool:
    """Whether all bytes of a contiguous array are certainly zero; nobody asks about small ones."""
    storage = a.storage
    return (
        a.hi - a.lo >= VAST and storage.told
        and _known.get(storage) == (a.lo, a.hi, storage.version)
    )  # fmt: skip


def note_blank(a: array) -> None:
    """Notes that they are."""
    if a.hi - a.lo >= VAST:
        _known[a.storage] = (a.lo, a.hi, a.storage.version)
