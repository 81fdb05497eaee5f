"""Arrays from and to other libraries by DLPack, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import hooks
from engine.interop.base import InteropError, refused
from engine.interop.cupy import ADAPTER as CUPY
from engine.lang.strided import misplaced, row_major
from engine.lang.structs import StructType
from engine.lang.types import (
    BFLOAT16,
    BOOL,
    SCALARS,
    ScalarType,
    ValueType,
    scalar_of,
)
from engine.lang.values import to_value_type, value_class
from engine.runtime import capsules
from engine.runtime.adopted import wrap
from engine.runtime.annotation import MAX_DIMS, element_info
from engine.runtime.array import array
from engine.runtime.device import get_cuda_devices

_CPU, _CUDA, _PINNED = 1, 2, 3  # kinds of devices, by DLPack's numbers; CPUs read pinned memory
# Codes of types, as DLPack counts.
_CODES = ("int", "uint", "float", "opaque", "bfloat", "complex", "bool")
_SCALARS = {t.numpy: t for t in SCALARS.values()}


def _refused(message: str, help: str = "") -> InteropError:
    return refused("E206", message, help=help)


class _Taken:
    """Something with `__dlpack__` for a capsule, as NumPy asks for it."""

    __slots__ = ("capsule",)

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)


class _Writable:
    """Memory that NumPy shows as read-only since the capsule is of the first version.

    Such capsules cannot say whether their memory may be written. Libraries write it.
    """

    __slots__ = ("__array_interface__", "keeps")

    def __init__(self, parts: Any) -> None:
        self.keeps = parts
        found = self.__array_interface__ = parts.__array_interface__
        found["data"] = (found["data"][0], False)


def to_dlpack(wp_array: array) -> object:
    """A DLPack capsule of an array's memory, which it keeps alive. Components are the last axes.

    It is one of DLPack's first version, which all libraries take. Raises LaunchError (E206) for
    arrays of structs, for read-only memory, of which that version cannot tell, and for what is no
    array.
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

    Capsules of DLPack's first version do not say whether memory may be written: it is taken to
    be, but for that of JAX arrays. Raises InteropError (a LaunchError, a TypeError and a
    RuntimeError) E206 for other devices and types, and for layouts that would need a copy.
    """
    kind = None if dtype is None else to_value_type(dtype)
    if isinstance(source, array):
        if isinstance(source._ir.element, StructType):
            raise _refused(f"there are no DLPack tensors of {source.dtype.__name__}",
                           "give away the fields of structs")  # fmt: skip
        source._lend()
        source.storage.expose_for_ever()
        return _array(source._fresh_view(), kind)
    if type(source) is np.ndarray:
        return _array(source, kind)
    adapter = hooks.adapter(type(source))
    if adapter is not None and adapter.untold(source):
        shared: array = adapter.share(source, dtype, "from_dlpack")
        return shared
    on_gpu = _of_gpu(source)
    if on_gpu is not None:
        return CUPY.share(on_gpu, dtype, "from_dlpack")
    return _array(_parts(source), kind)


def _of_gpu(source: Any) -> Any:
    """A tensor on a GPU that kernels run on, as CuPy has it; None for all others."""
    try:
        device, number = (int(k) for k in source.__dlpack_device__())
    except (AttributeError, TypeError, ValueError):
        return None
    gpus = get_cuda_devices() if device == _CUDA else []
    if number >= len(gpus):
        return None
    try:
        return gpus[number].backend.taken(source)
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise _refused(f"from_dlpack: {type(source).__name__} gives no tensor: "
                       f"{(str(e) or type(e).__name__).splitlines()[0]}") from None  # fmt: skip


def _array(parts: Any, kind: ValueType | None) -> array:
    """NumPy's view of a tensor as an array over the same memory."""
    scalar = _SCALARS.get(parts.dtype)
    if scalar is None:
        if parts.dtype.name != "bfloat16":
            raise _refused(f"from_dlpack: there are no arrays of {parts.dtype}",
                           "convert it there first")  # fmt: skip
        scalar = BFLOAT16
    if not parts.flags.aligned:
        raise _refused("from_dlpack: the numbers are not at multiples of their size",
                       "pass a copy")  # fmt: skip
    kind = scalar if kind is None else kind
    info = element_info(kind)
    if info.numpy != parts.dtype:
        _check_types(scalar, scalar_of(kind), kind)
    shape, n = parts.shape, len(info.inner)
    strides = row_major(shape, info.numpy.itemsize) if parts.flags.c_contiguous else parts.strides
    if n:
        if shape[-n:] != info.inner or len(shape) < n:
            raise _refused(
                f"from_dlpack: a tensor of shape {shape} has no elements of "
                f"{value_class(kind).__name__}, whose components are {info.inner}",
                "reshape it there first, so that the components are the last axes",
            )
        if strides[-n:] != info.steps and parts.size:
            raise _refused(f"from_dlpack: elements of {value_class(kind).__name__} do not lie in "
                           "one piece in this tensor", "make it contiguous first")  # fmt: skip
        shape, strides = shape[:-n], strides[:-n]
    if not shape:
        shape, strides = (1,), (info.size,)
    if len(shape) > MAX_DIMS:
        raise _refused(f"from_dlpack: an array has 1 to {MAX_DIMS} dimensions, got shape {shape}",
                       "reshape it there first")  # fmt: skip
    address = parts.__array_interface__["data"][0]
    why = misplaced(address, parts.shape, parts.strides, parts.itemsize)
    if why:
        raise _refused(f"from_dlpack: there is no such memory: {why}", "pass a copy")
    return array._make(wrap(parts, address=address), address, shape, strides, info.kind)


def _parts(source: Any) -> Any:
    """The tensor as NumPy has it."""
    capsule = source
    if hasattr(source, "__dlpack__"):
        if hasattr(source, "__dlpack_device__"):
            where = source.__dlpack_device__()
            try:
                device, number = (int(k) for k in where)
            except (TypeError, ValueError):
                raise _refused(f"from_dlpack: {type(source).__name__} has the device {where!r:.80}",
                               "`__dlpack_device__` gives two integers") from None  # fmt: skip
            if device not in (_CPU, _PINNED):
                raise _refused(f"Unsupported source device for DLPack: device_type={device}, "
                               f"device_id={number}", "copy it to the CPU first")  # fmt: skip
        try:
            capsule = _asked(source)
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            raise _refused(f"from_dlpack: {type(source).__name__} gives no tensor: "
                           f"{(str(e) or type(e).__name__).splitlines()[0]}",
                           "pass a plain copy of its numbers: array(x)") from None  # fmt: skip
    name = capsules.name_of(capsule)
    if not name:
        got, help = type(capsule).__name__, "pass an object with `__dlpack__`, or a capsule"
        if got == "PyCapsule":
            got, help = repr(capsule), "a capsule can be used once"
        raise _refused(f"Expected a valid DLPack capsule, got {got}", help)
    code, bits, lanes = capsules.element(capsule, name)
    halves = (code, bits, lanes) == (capsules.BFLOAT, 16, 1)
    if halves:
        BFLOAT16.numpy  # noqa: B018  (raises E112 where NumPy has no such type)
        capsules.rename(capsule, name, capsules.UNSIGNED)
    try:
        parts = np.from_dlpack(_Taken(capsule))
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        if halves and capsules.name_of(capsule) == name:  # for whoever takes it in place of this
            capsules.rename(capsule, name, capsules.BFLOAT)
        of = _CODES[code] if code < len(_CODES) else f"code {code} of type, with "
        raise _refused(f"from_dlpack: {str(e).splitlines()[0]}", f"its elements are {of}{bits}"
                       + f" in groups of {lanes}" * (lanes > 1)) from None  # fmt: skip
    if name == "dltensor" and not parts.flags.writeable:
        parts = np.asarray(_Writable(parts))
    return parts.view(BFLOAT16.numpy) if halves else parts


def _asked(source: Any) -> object:
    """The capsule that an object gives, of version 1.0 if it can."""
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:  # it knows the first version only
        return source.__dlpack__()


def _check_types(have: ScalarType, want: ScalarType, kind: ValueType) -> None:
    """Raises InteropError for memory of one type that cannot be taken for another."""
    whole = have.kind in "iu" and want.kind in "iu"
    bits = BOOL in (have, want) and have.kind in "iub" and want.kind in "iub"
    if have == want or (have.bits == want.bits and (whole or bits)):
        return
    code = {"i": "int", "u": "uint", "f": "float", "b": "bool"}[have.kind]
    name = "bfloat16" if have == BFLOAT16 else f"{code}{have.bits}"
    raise _refused(f"from_dlpack: Incompatible data types: DLPack {name} and Warp "
                   f"{value_class(kind).__name__}",
                   "leave dtype out, and convert the array: utils.array_cast")  # fmt: skip
