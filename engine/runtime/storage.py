"""Memory that arrays share, and copies of its earlier contents.

Tape records remember the inputs of launches without copying them: a record takes a
`Hold` on the bytes that it read, and the first write that would change them copies
them into the hold first. Writes that the engine makes all announce themselves with
`before_write`. Memory that user code can change unseen (a NumPy view of it is alive, or it came
from outside) is taken to stay as it is; while an observer `keeps` it, or where
`config.snapshot_exposed_bytes` says so, it is copied when the hold is taken.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import numpy as np

from engine import config
from engine.compile.cpu import CPU
from engine.lang import strided
from engine.lang.strided import byte_range
from engine.runtime import events
from engine.runtime.chunks import LEAST as FEW
from engine.runtime.chunks import SIZE, Chunk, Copier, FarChunk, Lost
from engine.runtime.device import HOST, Device, get_cuda_devices
from engine.runtime.guards import Guard
from engine.runtime.launch_errors import fail, size_text
from engine.runtime.neighbours import Neighbours

NumpyArray = np.ndarray[Any, Any]

# Bytes of one array that are copied where an observer keeps what may change unseen.
_WATCHED_BYTES = 64 << 20

# Memory from outside, and of the engine's own whose address somebody has: see `runtime.adopted`.
neighbours = Neighbours()


class Storage:
    """One block of memory: addresses `lo` to `lo + nbytes`, alive as long as this object.

    device: where it is. version: counts writes. owner: whatever keeps the memory alive. reads:
    what launches on a tape have read of it, where somebody wants to know (see `runtime.reads`).
    kept: arrays that records in it refer to, by address of the reference (see `runtime.links`).
    guard: who else sees it and takes it to be immutable (see `runtime.guards`).
    """

    __slots__ = ("__weakref__", "_copier", "_frozen", "_hold", "_views", "device", "external",
                 "guard", "kept", "lo", "nbytes", "owner", "reads", "version",
                 "writable")  # fmt: skip

    def __init__(
        self, owner: object, lo: int, nbytes: int, device: Device, external: bool = False,
        writable: bool = True,
    ) -> None:  # fmt: skip
        self.owner = owner
        self.device = device
        self.lo = lo
        self.nbytes = nbytes
        self.external = external
        self.writable = writable
        self.version = 0
        self.guard: Guard | None = None
        self._hold: weakref.ref[Hold] | None = None
        self._frozen: weakref.ref[Hold] | None = None
        self._copier: Copier | None = None
        self.reads: dict[tuple[bytes, int], strided.Elements] | None = None
        self.kept: dict[int, object] | None = None
        self._views: list[weakref.ref[Any]] = []

    def view(self, ptr: int, shape: Any, strides: Any, dtype: Any) -> Any:
        """A strided part as an array of the library that computes on the device; no copy.

        The array, and any view of it, keeps the storage alive.
        """
        return self.device.backend.view(self, ptr, shape, strides, dtype, self.writable)

    def bytes(self, lo: int, hi: int) -> NumpyArray:
        """Bytes `lo` to `hi` on the host: a view of them, or a copy from another device."""
        return self.device.backend.to_host(self.view(lo, (hi - lo,), (1,), np.uint8))

    def put_bytes(self, lo: int, values: NumpyArray) -> None:
        """Writes bytes from address `lo` on. Nobody is told: see `before_write`."""
        self.device.backend.put(self.view(lo, values.shape, (1,), np.uint8), values)

    # ---- views for user code

    def expose(self, view: np.ndarray[Any, Any]) -> None:
        """Notes that user code got `view`, through which it may write at any time."""
        if self._hold is not None:
            self._let_go()
        seen = weakref.ref(view)
        views = self._views
        if not views:
            self.tell_address()
        if len(views) == 1 and views[0]() is None:
            views[0] = seen  # as it is where somebody looks again and again
            return
        self._views = [r for r in views if r is not seen and r() is not None]
        self._views.append(seen)

    def expose_for_ever(self) -> None:
        """Notes that user code got the address, for an unknown time."""
        self._let_go()
        self.tell_address()
        self.external = True

    def tell_address(self) -> None:
        """Notes that somebody may come back with the address, or one within."""
        if not self.external:
            neighbours.add(self)

    def _let_go(self) -> None:
        """To be called before user code can change the memory unseen."""
        if self._hold is None:
            return
        if _exposed_bytes():
            self._release_hold()
        elif (hold := self._hold()) is not None:
            hold.unseen = True

    @property
    def exposed(self) -> bool:
        """True while user code may change the memory unseen."""
        return self.external or (bool(self._views) and any(r() is not None for r in self._views))

    @property
    def told(self) -> bool:
        """Whether all writes so far have been announced: nobody ever had another way to it."""
        return not (self.external or self._views)

    def unchanged(self, hold: Hold) -> bool:
        """Whether it certainly contains what a hold of it says, without a look at either."""
        if hold.storage is not None:
            return not (hold.unseen or self.exposed or hold.lost)
        # A view that is gone may have been written through before.
        return hold.version == self.version and self.told

    def widen(self, lo: int, hi: int, owner: object) -> None:
        """Takes in memory around it, which `owner` keeps alive."""
        end = max(hi, self.lo + self.nbytes)
        self.lo = min(lo, self.lo)
        self.nbytes = end - self.lo
        self.owner = owner if self.owner is None else (self.owner, owner)
        self._copier = None  # of the memory as it was
        neighbours.add(self)

    # ---- holds

    def before_write(self, lo: int, hi: int) -> None:
        """To be called before bytes `lo` to `hi` (addresses) change."""
        self.version += 1
        if events.everywhere or events.here.get():
            events.writing(self, lo, hi)
        if self._hold is not None:
            hold = self._hold()
            if hold is None:
                self._hold = None
            elif lo < hold.hi and hold.lo < hi:
                self._release_hold()

    def hold(self, lo: int, hi: int, eager: bool = False) -> Hold:
        """A handle on what bytes `lo` to `hi` hold now, good after they change.

        What user code may change unseen is copied at once up to a size that somebody asked for
        (`config.snapshot_exposed_bytes`); beyond it, it is taken to change by the engine alone.
        """
        if eager:
            return self._freeze(lo, hi)
        exposed = self.external or (bool(self._views) and self.exposed)
        if exposed and hi - lo <= _exposed_bytes():
            return self._freeze(lo, hi)
        if self._hold is not None:
            last = self._hold()
            if last is not None:
                if lo < last.lo:
                    last.lo = lo
                if hi > last.hi:
                    last.hi = hi
                if exposed:
                    last.unseen = True
                return last
        hold = Hold(self, lo, hi, exposed)
        self._hold = weakref.ref(hold)
        return hold

    def _freeze(self, lo: int, hi: int) -> Hold:
        """A hold with its own copy, the last one where nothing has changed."""
        last = self._frozen() if self._frozen is not None else None
        if last is not None and (last.lost or not (last.start <= lo and hi <= last.end)):
            last = None
        # A view that is gone may have been written through since.
        if last is not None and last.version == self.version and self.told:
            return last
        hold = Hold(self, lo, hi)
        hold.origin = weakref.ref(self)
        hold.materialise(alone=False)
        if last is not None and last.start == hold.start and last.chunks == hold.chunks:
            last.version = self.version
            return last
        self._frozen = weakref.ref(hold)
        return hold

    def copied(self, lo: int, hi: int) -> tuple[int, int, tuple[Chunk, ...]]:
        """A copy of at least bytes `lo` to `hi`: its addresses, begin and end, and its pieces.

        Raises Lost where it cannot be kept.
        """
        if lo == hi:
            return lo, hi, ()
        if self._copier is None:
            self._copier = Copier(self.lo, self.nbytes)
        return self._copier.copy(partial(self.device.backend.reader, self), lo, hi)

    def copied_there(self, lo: int, hi: int) -> tuple[Chunk, ...]:
        """The same on the device itself, of just these bytes."""
        if lo == hi:
            return ()
        try:
            read = self.device.backend.reader(self, lo, hi)
        except MemoryError:
            raise Lost("no memory was left for a copy") from None
        return (FarChunk(partial(read, lo, hi - lo), hi - lo),)

    def _release_hold(self) -> None:
        hold = self._hold() if self._hold is not None else None
        self._hold = None
        if hold is not None:
            hold.materialise()


class Hold:
    """What a range of a storage held: a reference until it changes, then a copy.

    start, end: the addresses that the copy is of, as whole pieces are copied. lost: why there is
    no copy, empty where there is one or none is needed yet. unseen: other code may change the
    memory, and nobody would know. origin: of a copy that was asked for, the memory; else None.
    """

    __slots__ = ("__weakref__", "_lost", "chunks", "end", "hi", "lo", "origin", "start",
                 "storage", "unseen", "version")  # fmt: skip

    start: int
    end: int
    chunks: tuple[Chunk, ...]
    origin: weakref.ref[Storage] | None
    _lost: str

    def __init__(self, storage: Storage, lo: int, hi: int, unseen: bool = False) -> None:
        self.storage: Storage | None = storage  # only until there is a copy
        self.lo = lo
        self.hi = hi
        self.version = storage.version
        self.unseen = unseen

    def __getattr__(self, name: str) -> Any:
        """What is set where there is a copy: few holds come to have one, and many are made."""
        if name == "chunks":
            return ()
        if name == "_lost":
            return ""
        if name == "origin":
            return None
        if name in ("start", "end"):
            return self.lo if name == "start" else self.hi
        raise AttributeError(name)

    @property
    def lost(self) -> str:
        return self._lost

    def materialise(self, alone: bool = True) -> None:
        """Copies the bytes as they are now. alone: no other copy may share its pieces."""
        held = self.storage
        if held is None:
            return
        try:
            whole = self.lo == held.lo and self.hi - self.lo == held.nbytes
            if alone and held.nbytes <= (SIZE if whole else FEW) and held.device is HOST:
                # As parameters that are updated in each step: all of it in one piece.
                self.start, self.end = held.lo, held.lo + held.nbytes
                self.chunks = (Chunk(CPU.read(held.lo, held.nbytes)),)
            elif not held.device.backend.on_host:
                self.start, self.end = self.lo, self.hi
                self.chunks = held.copied_there(self.lo, self.hi)
            else:
                self.start, self.end, self.chunks = held.copied(self.lo, self.hi)
        except Lost as why:
            self._lost = str(why)
        self.storage = None

    @property
    def spare(self) -> bool:
        """Whether it is a copy that was asked for, of what nothing has written since."""
        memory = None if self.origin is None else self.origin()
        return memory is not None and memory.version == self.version

    @property
    def nbytes(self) -> int:
        """Bytes of memory that its copy takes up, part of which other holds may share."""
        return sum(c.nbytes for c in self.chunks)

    def read(self, ptr: int, shape: Any, strides: Any, dtype: Any) -> np.ndarray[Any, Any] | None:
        """A fresh copy of a strided part as it was; None where it is lost."""
        if self.lost:
            return None
        if self.storage is not None:
            held = self.storage
            return np.array(held.device.backend.to_host(held.view(ptr, shape, strides, dtype)))
        lo, hi = byte_range(ptr, shape, strides, np.dtype(dtype).itemsize)
        pieces: list[bytes] = []
        first, at = lo, self.start
        for c in self.chunks:
            end = at + len(c.data)
            if lo < end and at < hi:
                first = first if pieces else at
                pieces.append(c.data)
            at = end
        if not pieces:
            return np.empty(shape, dtype)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return np.array(np.ndarray(shape, dtype, data, ptr - first, strides))

    def has(self, lo: int, values: NumpyArray) -> bool:
        """Whether there is a copy, which holds just the bytes of an array, from address lo on."""
        if self._lost or self.storage is not None:
            return False
        now, at = values.tobytes(), self.start
        hi, seen = lo + len(now), False
        for c in self.chunks:
            end = at + len(c.data)
            if lo < end and at < hi:
                first, last = max(lo, at), min(hi, end)
                if c.data[first - at : last - at] != now[first - lo : last - lo]:
                    return False
                seen = True
            at = end
        return seen


class Glance(Hold):
    """A hold that copies nothing: it is lost when the memory is written, or may be unseen."""

    __slots__ = ()

    def __init__(self, storage: Storage, lo: int, hi: int) -> None:
        super().__init__(storage, lo, hi, True)

    @property
    def lost(self) -> str:
        assert self.storage is not None
        if self.version == self.storage.version and not self.storage.exposed:
            return ""
        return 'nothing is copied where engine.config.overwrites is "present"'


def _exposed_bytes() -> int:
    """How much of one array is copied where other code may change it unseen."""
    asked = config.snapshot_exposed_bytes
    return max(asked, _WATCHED_BYTES) if any(o.keeps for o in events.everywhere) else asked


def allocate(nbytes: int, zero: bool, device: Device, pinned: bool = False) -> Storage:
    """New memory. Raises LaunchError (E209) where there is not enough.

    pinned: of the host, and such that GPUs read it by themselves, where there are any.
    """
    gpu = next(iter(get_cuda_devices()), None) if pinned and device is HOST else None
    try:
        if gpu is not None:
            owner, address = gpu.backend.allocate_pinned(nbytes, zero)
        else:
            owner, address = device.backend.allocate(device.ordinal, nbytes, zero)
    except MemoryError:
        raise fail(
            "E209", f"out of memory: an array of {size_text(nbytes)} was requested"
        ) from None
    return Storage(owner, address, nbytes, device)
