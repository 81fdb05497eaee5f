"""Memory that must not change, such as the memory of a JAX array.

Memory that comes from there is read-only to the engine. Memory that went there is, for as long as
something there holds on to it. `config.immutable` lets it be written, with a warning.
"""

from __future__ import annotations

import gc
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine import config
from engine.itself import ENGINE
from engine.lang.strided import overlaps_itself
from engine.logger import log_warning

if TYPE_CHECKING:
    from engine.runtime.array import array
    from engine.runtime.base import ArrayBase

# What is dropped is let go of by other threads too, which may need a moment.
_PATIENCE = (0.0, 0.001, 0.004, 0.02, 0.1)


class Guard:
    """Who sees memory that may not change.

    who: for messages. lent: what lives as long as somebody there sees a range of addresses, each
    with the range; None where all of the memory is theirs.
    """

    __slots__ = ("lent", "told", "who")
    made: ClassVar[bool] = False  # whether there has been one: else nobody need look

    def __init__(self, who: str, lent: list[tuple[weakref.ref[Any], int, int]] | None) -> None:
        self.who = who
        self.lent = lent
        self.told = False
        Guard.made = True

    def sees(self, lo: int, hi: int) -> bool:
        """Whether addresses `lo` to `hi` are seen at present."""
        if self.lent is None:
            return True
        self.lent = [x for x in self.lent if x[0]() is not None]
        return any(lo < end and begin < hi for _, begin, end in self.lent)

    def objects(self, lo: int, hi: int) -> bool:
        """Whether they may not be written; warns where they are seen, and may be all the same."""
        if not self.sees(lo, hi):
            return False
        if written():
            if not self.told:
                self.told = True
                log_warning(f"memory of {self.who}, which is immutable, is written: results "
                            "may come from values before or after the write")  # fmt: skip
            return False
        if self.lent is None:
            return True
        gc.collect()
        for pause in _PATIENCE:
            time.sleep(pause)
            if not self.sees(lo, hi):
                return False
        return True


def written() -> bool:
    """Whether memory that others take to be immutable is written, as programs for Warp do it."""
    if config.immutable is None:
        return sys.modules.get("warp") is ENGINE
    return config.immutable == "warn"


def lend(a: array, who: str) -> np.ndarray[Any, Any]:
    """A view for somebody who takes memory to be immutable; alive as long as it is looked at.

    It is writable, since DLPack's first version can give away nothing else; bfloat16 are bits.
    """
    storage, info = a.storage, a._info
    dtype = info.numpy if info.numpy.kind != "V" else np.dtype(f"u{info.numpy.itemsize}")
    view: np.ndarray[Any, Any] = storage.device.backend.view(
        storage, a.ptr, a.shape + info.inner, a.strides + info.steps, dtype, True
    )
    if storage.guard is None:
        storage.guard = Guard(who, [])
    lent = storage.guard.lent
    if lent is not None:
        if len(lent) > 8:
            lent[:] = [x for x in lent if x[0]() is not None]
        lent.append((weakref.ref(view), a.lo, a.hi))
    return view


def in_one_place(a: ArrayBase) -> bool:
    """Whether two elements of an array lie in one place, so that it can be read, not written."""
    return not a.is_contiguous and overlaps_itself(a.shape, a.strides, a._ir.element.size)


def objection(a: array) -> tuple[str, str] | None:
    """Why an array cannot be written, and what to do; None where it can."""
    storage = a.storage
    if storage.guard is not None and storage.guard.objects(a.lo, a.hi):
        who = storage.guard.who
        if storage.guard.lent is None:
            return (
                f"memory of {who}, which is immutable",
                "write to a copy of it: clone(a), or array(x)",
            )
        return (
            f"memory that {who} shows and treats as immutable",
            "write to a copy, clone(a), or delete the result of to_jax and everything made from it",
        )
    if not storage.writable:
        return "read-only memory", "pass a copy"
    if in_one_place(a):
        return "elements that overlap", "pass a copy"
    return None
