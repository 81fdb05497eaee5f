"""Arrays from and to other libraries by DLPack, without a copy. On the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.lang.types import BOOL, ScalarType, scalar_of
from engine.lang.values import to_value_type, value_class
from engine.runtime.array import array

_CPU, _PINNED = 1, 3  # devices whose memory the CPU reads, by DLPack's numbers
_CAPSULES = ("dltensor", "dltensor_versioned")


class DLPackError(LaunchError, TypeError, RuntimeError):
    """What was given is no DLPack tensor, or none that an array can be."""


def _refused(message: str, help: str = "") -> DLPackError:
    return DLPackError(Diagnostic("E206", message, call_span(), help))


class _Taken:
    """Something with `__dlpack__` for a capsule, as NumPy asks for it."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)


class _Writable:
    """Memory that NumPy shows as read-only since the capsule is of the first version.

    Such capsules cannot say whether their memory may be written. Libraries write it.
    """

    def __init__(self, parts: Any) -> None:
        self.owner = parts
        found = dict(parts.__array_interface__)
        found["data"] = (found["data"][0], False)
        self.__array_interface__ = found


def to_dlpack(wp_array: array) -> object:
    """A DLPack capsule of an array's memory, which it keeps alive. Components are the last axes.

    Raises LaunchError (E206) for arrays of structs, and for what is no array.
    """
    if not isinstance(wp_array, array):
        raise _refused(f"to_dlpack takes an array, got {type(wp_array).__name__}")
    return wp_array.__dlpack__()


def from_dlpack(source: Any, dtype: Any = None) -> array:
    """An array over the memory of a DLPack tensor: no copy is made, and it is kept alive.

    Args:
        source: an object with `__dlpack__`, or a capsule, which is used up.
        dtype: the element type, the tensor's where left out. Vectors and matrices take the last
            axes; integers of one width, and bool as 8 bits, may be taken for one another.

    A capsule of DLPack's first version does not say whether memory may be written: it is taken to
    be. Raises DLPackError (a LaunchError, a TypeError and a RuntimeError) E206 for other devices
    and types, and for layouts that would need a copy.
    """
    parts = _parts(source)
    kind = None if dtype is None else to_value_type(dtype)
    if kind is not None:
        parts = _as_scalar(parts, scalar_of(kind))
    made: array = array(parts, dtype=kind, copy=False)
    if made.size and made.ptr != parts.__array_interface__["data"][0]:
        raise _refused(f"from_dlpack: elements of {value_class(made._ir.element).__name__} do not "
                       "lie in one piece in this tensor", "make it contiguous first")  # fmt: skip
    return made


def _parts(source: Any) -> Any:
    """The tensor as NumPy has it."""
    if type(source).__name__ == "PyCapsule":
        if not any(f'"{name}"' in repr(source) for name in _CAPSULES):
            raise _refused(f"Expected a valid DLPack capsule, got {source!r}",
                           "a capsule can be used once")  # fmt: skip
        source = _Taken(source)
    elif not hasattr(source, "__dlpack__"):
        raise _refused(f"Expected a valid DLPack capsule, got {type(source).__name__}")
    elif hasattr(source, "__dlpack_device__"):
        device, number = source.__dlpack_device__()
        if int(device) not in (_CPU, _PINNED):
            raise _refused(f"Unsupported source device for DLPack: device_type={int(device)}, "
                           f"device_id={number}", "copy it to the CPU first")  # fmt: skip
    try:
        parts = np.from_dlpack(source)
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise _refused(f"from_dlpack: {str(e).splitlines()[0]}") from None
    if not parts.flags.writeable and not _says_read_only(source):
        parts = np.asarray(_Writable(parts))
    return parts


def _says_read_only(source: Any) -> bool:
    """Whether a read-only flag means anything: NumPy sets it for all of the first version."""
    if isinstance(source, _Taken):
        return "versioned" in repr(source.capsule)
    flags = getattr(source, "flags", None)
    return getattr(flags, "writeable", None) is False or _is_versioned(source)


def _is_versioned(source: Any) -> bool:
    try:
        return "versioned" in repr(source.__dlpack__(max_version=(1, 0)))
    except TypeError:
        return False


def _as_scalar(parts: Any, scalar: ScalarType) -> Any:
    have, want = parts.dtype, scalar.numpy
    whole = have.kind in "iu" and scalar.kind in "iu"
    bits = BOOL.numpy in (have, want) and (have.kind in "iub" and scalar.kind in "iub")
    if have == want:
        return parts
    if have.itemsize == want.itemsize and (whole or bits):
        return parts.view(want)
    raise _refused(f"from_dlpack: Incompatible data types: DLPack {have.name} and {scalar}",
                   "leave dtype out, and convert the array: utils.array_cast")  # fmt: skip
