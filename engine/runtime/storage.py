"""Memory that arrays share, and copies of it for whoever must know what it held.

Tape records remember the inputs of launches without copying them: a record takes a
`Hold` on the bytes that it read, and the first write that would change them copies
them into the hold first. Writes that the engine makes all announce themselves with
`before_write`; memory that user code can change unseen (a NumPy view of it is alive,
or it came from outside) is copied when the hold is taken.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from engine import config
from engine.runtime.errors import fail, size_text

# Memory that came from outside, by (address, size): two wrappers share one Storage.
_external: weakref.WeakValueDictionary[tuple[int, int], Storage] = weakref.WeakValueDictionary()
# Bytes that materialised holds take up at present.
_held = 0


class Storage:
    """One block of memory: addresses `lo` to `lo + nbytes`, alive as long as this object.

    version: counts writes. owner: whatever keeps the memory alive.
    """

    __slots__ = ("__weakref__", "_frozen", "_hold", "_views", "external", "lo", "nbytes",
                 "owner", "version", "writable")  # fmt: skip

    def __init__(
        self, owner: object, lo: int, nbytes: int, external: bool = False, writable: bool = True
    ) -> None:
        self.owner = owner
        self.lo = lo
        self.nbytes = nbytes
        self.external = external
        self.writable = writable
        self.version = 0
        self._hold: weakref.ref[Hold] | None = None
        self._frozen: weakref.ref[Hold] | None = None
        self._views: list[weakref.ref[Any]] = []

    # ---- views for user code

    def expose(self, view: np.ndarray[Any, Any]) -> None:
        """Notes that user code got `view`, through which it may write at any time."""
        self._release_hold()
        self._views = [r for r in self._views if r() is not None]
        self._views.append(weakref.ref(view))

    def expose_for_ever(self) -> None:
        """Notes that user code got the address, for an unknown time."""
        self._release_hold()
        self.external = True

    @property
    def exposed(self) -> bool:
        """True while user code may change the memory unseen."""
        return self.external or (bool(self._views) and any(r() is not None for r in self._views))

    # ---- holds

    def before_write(self, lo: int, hi: int) -> None:
        """To be called before bytes `lo` to `hi` (addresses) change."""
        self.version += 1
        if self._hold is not None:
            hold = self._hold()
            if hold is None:
                self._hold = None
            elif lo < hold.hi and hold.lo < hi:
                self._release_hold()

    def hold(self, lo: int, hi: int, eager: bool = False) -> Hold:
        """A handle on what bytes `lo` to `hi` hold now, good after they change."""
        exposed = self.exposed
        if eager or (exposed and hi - lo <= config.snapshot_exposed_bytes):
            return self._freeze(lo, hi, exposed)
        hold = self._hold() if self._hold is not None else None
        if hold is None:
            hold = Hold(self, lo, hi)
            self._hold = weakref.ref(hold)
        else:
            hold.lo = min(lo, hold.lo)
            hold.hi = max(hi, hold.hi)
        return hold

    def _freeze(self, lo: int, hi: int, exposed: bool) -> Hold:
        """A hold with its own copy, shared with the last one where nothing has changed."""
        last = self._frozen() if self._frozen is not None else None
        if last is not None and last.lo <= lo and hi <= last.hi and last.data is not None:
            if not exposed and last.version == self.version:
                return last
            if np.array_equal(last.data[lo - last.lo : hi - last.lo], bytes_at(lo, hi, self)):
                return last
        hold = Hold(self, lo, hi)
        hold.materialise()
        self._frozen = weakref.ref(hold)
        return hold

    def _release_hold(self) -> None:
        hold = self._hold() if self._hold is not None else None
        self._hold = None
        if hold is not None:
            hold.materialise()


class Hold:
    """What a range of a storage held: a reference until it changes, then a copy.

    lost: the copy was not made because `config.snapshot_limit_bytes` was reached.
    """

    __slots__ = ("__weakref__", "data", "hi", "lo", "lost", "storage", "version")

    def __init__(self, storage: Storage, lo: int, hi: int) -> None:
        self.storage = storage
        self.lo = lo
        self.hi = hi
        self.version = storage.version
        self.data: np.ndarray[Any, Any] | None = None
        self.lost = False

    def materialise(self) -> None:
        """Copies the bytes as they are now."""
        global _held
        size = self.hi - self.lo
        if _held + size > config.snapshot_limit_bytes:
            self.lost = True
            return
        try:
            self.data = bytes_at(self.lo, self.hi, self.storage).copy()
        except MemoryError:
            self.lost = True
            return
        _held += size

    @property
    def nbytes(self) -> int:
        """Bytes of memory that this hold takes up itself."""
        return 0 if self.data is None else self.data.nbytes

    def read(self, ptr: int, shape: Any, strides: Any, dtype: Any) -> np.ndarray[Any, Any] | None:
        """A fresh copy of a strided part as it was; None where it is lost."""
        if self.lost:
            return None
        if self.data is None:
            return np.array(np.asarray(Export(self.storage, ptr, shape, strides, dtype)))
        held = np.ndarray(shape, dtype, self.data, ptr - self.lo, strides)
        return np.array(held)

    def __del__(self) -> None:
        global _held
        if getattr(self, "data", None) is not None:
            _held -= self.nbytes


class Export:
    """Hands memory to NumPy and keeps its owner alive.

    Being no ndarray itself, it ends NumPy's chain of bases: the array made from it
    stays alive as long as any view of that array does.
    """

    __slots__ = ("__array_interface__", "storage")

    def __init__(self, storage: Storage, ptr: int, shape: Any, strides: Any, dtype: Any) -> None:
        self.storage = storage
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": np.dtype(dtype).str,
            "data": (ptr, not storage.writable),
        }


def bytes_at(lo: int, hi: int, storage: Storage) -> np.ndarray[Any, Any]:
    """Memory as bytes, without a copy."""
    return np.asarray(Export(storage, lo, (hi - lo,), (1,), np.uint8))


def allocate(nbytes: int, zero: bool) -> Storage:
    """New memory. Raises LaunchError (E209) where there is not enough."""
    try:
        memory = np.zeros(nbytes, np.uint8) if zero else np.empty(nbytes, np.uint8)
    except (MemoryError, ValueError, OverflowError):
        raise fail(
            "E209", f"out of memory: an array of {size_text(nbytes)} was asked for"
        ) from None
    return Storage(memory, memory.ctypes.data, nbytes)


def byte_range(ptr: int, shape: Any, strides: Any, itemsize: int) -> tuple[int, int]:
    """Lowest and one past the highest address of a strided array; equal for an empty one."""
    lo = hi = ptr
    for n, s in zip(shape, strides, strict=True):
        if n == 0:
            return ptr, ptr
        if s < 0:
            lo += (n - 1) * s
        else:
            hi += (n - 1) * s
    return lo, hi + itemsize


def wrap(data: np.ndarray[Any, Any]) -> Storage:
    """The storage of a NumPy array's memory: a known one where the memory is known."""
    root: Any = data
    while isinstance(root.base, np.ndarray):
        root = root.base
    if isinstance(root.base, Export) and (root.base.storage.writable == data.flags.writeable):
        return root.base.storage
    lo = root.__array_interface__["data"][0]
    hi = lo + root.nbytes
    if not root.flags.c_contiguous:
        lo, hi = byte_range(lo, root.shape, root.strides, root.itemsize)
    found = _external.get((lo, hi - lo))
    if found is None or (data.flags.writeable and not found.writable):
        found = Storage(root, lo, hi - lo, external=True, writable=data.flags.writeable)
        _external[(lo, hi - lo)] = found
    return found
