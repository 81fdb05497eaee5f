"""`__cuda_array_interface__`: memory of a GPU as other libraries describe it, field by field."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.lang.foreign import Memory
from engine.lang.strided import byte_range, misplaced
from engine.lang.types import BY_NAME
from engine.runtime.mismatch import Mismatch

if TYPE_CHECKING:
    from engine.runtime.array import array

NAME = "__cuda_array_interface__"
_KNOWN = range(4)  # versions
_LEGACY = 1  # the default stream, which has no number of its own


def described(value: Any, device: str = "cuda:0") -> Memory:
    """The memory that an object says it has. device: where.

    Raises Mismatch: E206 for an interface with a fault, by the field; E202 for a type of numbers
    that there are no arrays of.
    """
    who = f"a {type(value).__name__}"
    found = getattr(value, NAME)
    if not isinstance(found, dict):
        raise Mismatch("E206", f"{who} whose {NAME} is not a dictionary: {found!r:.60}")
    for field in ("version", "shape", "typestr", "data"):
        if field not in found:
            raise _fault(who, field, "it is missing")
    _check_version(who, found["version"])
    shape = _numbers(who, "shape", found["shape"])
    if any(n < 0 for n in shape):
        raise _fault(who, "shape", f"{shape} has a negative number")
    dtype = _dtype(who, found["typestr"])
    steps = tuple(dtype.itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape)))
    strides = found.get("strides")
    strides = steps if strides is None else _numbers(who, "strides", strides)
    if len(strides) != len(shape):
        raise _fault(who, "strides", f"{strides} are not one for each of {len(shape)} dimensions")
    address, read_only = _data(who, found["data"], math.prod(shape))
    if found.get("mask") is not None:
        raise _fault(who, "mask", "an array with a mask has no place here", "fill it first")
    _check_stream(who, found.get("stream"))
    why = misplaced(address, shape, strides, dtype.itemsize, dtype.itemsize)
    if why:
        raise _fault(who, "strides" if "strides" in why else "data", why)
    lo, hi = byte_range(address, shape, strides, dtype.itemsize)
    return Memory(address, shape, strides, BY_NAME[dtype.name], value, not read_only, device, lo,
                  hi - lo)  # fmt: skip


def refusal(value: Any) -> Mismatch:
    """Why an object with such an interface cannot be used where nothing computes on GPUs."""
    try:
        found = described(value)
    except Mismatch as e:
        return e
    return Mismatch("E204", f"memory of a GPU ({found.scalar}, shape {found.shape})",
                    "copy it to the CPU first")  # fmt: skip


def exported(a: array) -> dict[str, Any]:
    """The memory of an array, for other libraries. Raises AttributeError of one on the CPU."""
    storage, info = a.storage, a._info
    if not storage.device.is_cuda:
        raise AttributeError(f"the array is on {storage.device}, not on a GPU")
    if info.opaque:
        raise AttributeError(f"other libraries have no arrays of {a.dtype.__name__}")
    a._lend()
    storage.expose_for_ever()
    return {
        "version": 3,
        "shape": a.shape + info.inner,
        "typestr": info.typestr,
        "data": (a.ptr if a.size else 0, not storage.writable),
        "strides": None if a.is_contiguous else a.strides + info.steps,
        "stream": storage.device.backend.stream or _LEGACY,
    }


def _fault(who: str, field: str, why: str, help: str = "") -> Mismatch:
    text = f"{who} whose {NAME} has no valid {field!r}: {why}"
    return Mismatch(
        "E206", text, help or "it must follow version 3 of the interface or an earlier version"
    )


def _check_version(who: str, version: object) -> None:
    if type(version) is not int or version < 0:
        raise _fault(who, "version", f"{version!r} is not a number")
    if version not in _KNOWN:
        raise _fault(who, "version", f"{version} is later than 3")


def _numbers(who: str, field: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, tuple) or not all(type(n) is int for n in value):
        raise _fault(who, field, f"{value!r} is not a tuple of integers")
    return value


def _dtype(who: str, typestr: object) -> np.dtype[Any]:
    try:
        if not isinstance(typestr, str):
            raise TypeError
        dtype = np.dtype(typestr)
    except TypeError:
        raise _fault(who, "typestr", f"{typestr!r} names no type") from None
    if dtype.name not in BY_NAME or not dtype.isnative:
        raise Mismatch("E202", f"{who} of {typestr!r}, which there are no arrays of",
                       "convert it to a type that arrays have")  # fmt: skip
    return dtype


def _data(who: str, data: object, size: int) -> tuple[int, bool]:
    if not isinstance(data, tuple) or len(data) != 2:
        raise _fault(who, "data", f"{data!r} is not a pair of an address and a truth value")
    address, read_only = data
    if address is None and not size:
        address = 0
    if type(address) is not int or address < 0 or not isinstance(read_only, (bool, int)):
        raise _fault(who, "data", f"{data!r} is not a pair of an address and a truth value")
    if size and not address:
        raise _fault(who, "data", "its address is 0, and there are elements")
    return address, bool(read_only)


def _check_stream(who: str, stream: object) -> None:
    if stream is None:
        return
    if type(stream) is not int or stream < 1:
        raise _fault(who, "stream", f"{stream!r} is not a stream: 1 is the legacy "
                                    "default one, 2 that of each thread")  # fmt: skip
