"""Memory from outside: one storage for all arrays that show the same block."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from engine.lang.strided import ADDRESSES, byte_range
from engine.runtime.device import HOST, Device
from engine.runtime.guards import Guard, written
from engine.runtime.launch_errors import fail
from engine.runtime.storage import NumpyArray, Storage, neighbours

# Memory that came from outside, by address, size and whether it may be written: wrappers of one
# piece of memory share one Storage.
_external: dict[tuple[int, int, bool], weakref.ref[Storage]] = {}
_noted = [1 << 12]  # from how many on those that are gone are looked for


def known_memory(data: NumpyArray) -> bool:
    """Whether a NumPy array lies in memory that the engine made."""
    return isinstance(HOST.backend.owner_of(data), Storage)


def wrap(data: NumpyArray, immutable: str = "", address: int | None = None) -> Storage:
    """The storage of a NumPy array's memory: a known one where the memory is known.

    immutable: who takes it to be so, where it does not say so itself. address: of the first
    element, where that has been asked for.
    """
    if data.base is None:
        return _wrap_own(data, data.__array_interface__["data"][0] if address is None else address)
    root: Any = data
    base = root.base
    while isinstance(base, np.ndarray):
        root, base = base, base.base
    writable = data.flags.writeable
    known = getattr(base, "owner", None)
    if (
        type(known) is Storage and known.writable == writable
        and known is HOST.backend.owner_of(data)
    ):  # fmt: skip
        return known
    if address is None or root is not data:
        address = root.__array_interface__["data"][0]
    lo: int = address
    nbytes: int = root.nbytes
    if not root.flags.c_contiguous:
        lo, hi = byte_range(lo, root.shape, root.strides, root.itemsize)
        nbytes = hi - lo
    if not writable and not immutable and type(base) is memoryview:
        maker = type(base.obj).__module__.partition(".")[0]
        immutable = "a JAX array" if maker in ("jax", "jaxlib") else ""
    return adopt(root, lo, nbytes, writable, immutable)


def _wrap_own(data: NumpyArray, address: int) -> Storage:
    """The same for an array that owns its memory, which begins at `address`."""
    flags = data.flags
    nbytes: int = data.nbytes
    if not flags.c_contiguous:
        lo, hi = byte_range(address, data.shape, data.strides, data.itemsize)
        nbytes = hi - lo
    return adopt(data, address, nbytes, flags.writeable)


def adopt(
    owner: object, lo: int, nbytes: int, writable: bool = True, immutable: str = "",
    device: Device = HOST,
) -> Storage:  # fmt: skip
    """The storage of memory that somebody else owns: a known one where it is known.

    owner: what keeps it alive. immutable: who takes it to be so.
    Raises LaunchError (E206) where no memory can be.
    """
    if nbytes and not 0 < lo <= ADDRESSES - nbytes:
        raise fail("E206", f"there is no memory from the address {lo:#x} to {lo + nbytes:#x}",
                   help="pass an array whose elements are in memory")  # fmt: skip
    if immutable:
        writable = written()
    key = (lo, nbytes, writable)
    held = _external.get(key)
    found = None if held is None else held()
    if found is not None and (found.device is not device or not _has(found, lo, nbytes)):
        found = None
    if found is None and nbytes and not immutable:
        found = _around(owner, lo, nbytes, writable, device)
        if found is not None:
            _note(key, found)
    if found is None:
        found = Storage(owner, lo, nbytes, device, external=True, writable=writable)
        if nbytes:
            _note(key, found)
            neighbours.add(found)
    if immutable and found.guard is None:
        found.guard = Guard(immutable, None)
    return found


def _has(storage: Storage, lo: int, nbytes: int) -> bool:
    return storage.lo <= lo and lo + nbytes <= storage.lo + storage.nbytes


def _around(
    owner: object, lo: int, nbytes: int, writable: bool, device: Device
) -> Storage | None:  # fmt: skip
    """The storage of a block of which this is a piece; None where there is none.

    Memory that begins or ends elsewhere becomes one block with the largest that it meets.
    """
    hi = lo + nbytes
    met = neighbours.meeting(lo, hi)
    if met:
        met = [s for s in met if s.device is device and s.writable == writable and s.guard is None]
    if not met:
        return None
    found = max(met, key=lambda s: s.nbytes)
    found.expose_for_ever()  # whoever came with the address has it
    if not _has(found, lo, nbytes):
        found.widen(lo, hi, owner)
    elif found.owner is None:
        found.owner = owner
    return found


def known_as(storage: Storage, lo: int, nbytes: int) -> None:
    """Notes that a part of a storage goes to another library, which may give it back as a whole."""
    if nbytes and storage.owner is not None:  # else it keeps nothing alive
        key = (lo, nbytes, storage.writable)
        held = _external.get(key)
        if held is None or held() is not storage:
            _note(key, storage)


def _note(key: tuple[int, int, bool], storage: Storage) -> None:
    if len(_external) >= _noted[0]:
        for k in [k for k, r in list(_external.items()) if r() is None]:
            _external.pop(k, None)
        _noted[0] = max(_noted[0], 2 * len(_external))
    _external[key] = weakref.ref(storage)
