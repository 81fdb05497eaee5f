"""Packs launch arguments as bytes, in the layout of `engine.codegen`.

Every argument starts on an 8-byte boundary: a scalar takes one slot, a vector or
matrix its components, an array its address, shape and byte strides.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from engine import hooks
from engine.lang.numbers import number_kind
from engine.lang.types import (
    BFLOAT16,
    ArrayType,
    MatrixType,
    ScalarType,
    VectorType,
    scalar_of,
    shape_of,
)
from engine.logger import log_warning
from engine.runtime import cuda_interface
from engine.runtime.adopted import adopt, wrap
from engine.runtime.annotation import describe, element_info
from engine.runtime.array import array
from engine.runtime.base import HEADER
from engine.runtime.data import check_memory
from engine.runtime.device import get_cuda_devices
from engine.runtime.foreign import Described, plain
from engine.runtime.mismatch import Mismatch as Mismatch
from engine.runtime.outside import misfit

_CODES = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip

Packer = Callable[[Any], bytes]


def pack_numpy(a: np.ndarray[Any, Any], ndim: int) -> bytes:
    """A NumPy array as an argument of `ndim` dimensions. It must outlive what reads it."""
    address = a.__array_interface__["data"][0] if a.size else 0
    return HEADER[ndim](address, *a.shape[:ndim], *a.strides[:ndim])


def null(kind: ArrayType) -> bytes:
    """An array argument that is none."""
    return bytes(8 + 16 * kind.ndim)


def packer(kind: ScalarType | VectorType | MatrixType, name: str = "") -> Packer:
    """A function from a Python value to the bytes of a parameter. Raises Mismatch."""
    if isinstance(kind, ScalarType):
        return {"f": _float, "b": _bool}.get(kind.kind, _integer)(kind)
    return _composite(kind, name)


def _float(kind: ScalarType) -> Packer:
    pack = (
        _bfloat if kind == BFLOAT16 else struct.Struct(f"<{_CODES[kind.name]}{8 - kind.size}x").pack
    )

    def packed(value: Any) -> bytes:
        try:
            return pack(value if type(value) is float else float(_number(value, "iuf b")))
        except OverflowError:  # too large for 32 bits: infinite, as a C cast makes it
            return pack(float("inf") if value > 0 else float("-inf"))

    return packed


def _bfloat(value: float) -> bytes:
    return np.asarray(value, BFLOAT16.numpy).tobytes() + bytes(6)


def _integer(kind: ScalarType) -> Packer:
    pack = struct.Struct(f"<{_CODES[kind.name]}{8 - kind.size}x").pack
    low = -(1 << (kind.bits - 1)) if kind.kind == "i" else 0
    high = (1 << (kind.bits - (kind.kind == "i"))) - 1

    def packed(value: Any) -> bytes:
        if type(value) is not int:
            value = int(_number(value, "iu b", "convert on purpose with int(...)"))
        try:
            return pack(value)
        except struct.error:
            raise Mismatch("E202", f"{value}, outside {low}..{high}") from None

    return packed


def _bool(kind: ScalarType) -> Packer:
    del kind

    def packed(value: Any) -> bytes:
        true = value is not None and _number(value, "iuf b")
        return b"\1\0\0\0\0\0\0\0" if true else bytes(8)

    return packed


def _number(value: Any, kinds: str, help: str = "") -> Any:
    """A number, or what stands for one, whose NumPy kind is one of `kinds`. Raises Mismatch."""
    if isinstance(value, (bool, int, float)):
        kind = "f" if isinstance(value, float) else "i"
    elif isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        kind = number_kind(value.dtype)
    elif isinstance(value, np.ndarray):
        raise Mismatch("E202", shown_value(value))
    else:
        given, (value, kind) = value, _outside(value)
        if kind not in kinds:
            raise Mismatch("E202", shown_value(given), help)
    if kind not in kinds:
        raise Mismatch("E202", f"{value!r} of type {type(value).__name__}", help)
    return value


def _outside(value: Any) -> tuple[Any, str]:
    """The number that an object of another library stands for, and its NumPy kind."""
    found = hooks.adapter(type(value))
    one = None if found is None else found.number(value)
    if one is not None:
        return one, number_kind(one.dtype)
    kind = "i" if hasattr(value, "__index__") else "f" if hasattr(value, "__float__") else ""
    try:
        if kind:
            return operator.index(value) if kind == "i" else float(value), kind
    except (TypeError, ValueError):
        pass
    raise Mismatch("E202", shown_value(value))


def _composite(kind: VectorType | MatrixType, name: str) -> Packer:
    shape, dtype = shape_of(kind), kind.scalar.numpy
    pad = bytes(-kind.size % 8)
    pad_size = kind.size

    def packed(value: Any) -> bytes:
        if getattr(value, "__ir_type__", None) is kind:
            return bytes(value._data.tobytes()) + pad
        try:
            value = _spread(plain(value), kind, name)
            found = np.asarray(value)
        except (ValueError, TypeError, RuntimeError):  # rows of other lengths, tensors in a list
            found = np.asarray(None)
        fits = number_kind(found.dtype) in "biuf" and found.shape in (shape, (found.size,))
        if not fits or found.size * dtype.itemsize != pad_size:
            raise Mismatch("E202", shown_value(value), f"pass {describe(kind)}(...)")
        if dtype.kind in "iu" and number_kind(found.dtype) == "f":
            raise Mismatch("E202", shown_value(value), "convert the components with int(...)")
        with np.errstate(all="ignore"):
            return bytes(np.ascontiguousarray(found, dtype).tobytes()) + pad

    return packed


def _spread(value: Any, kind: VectorType | MatrixType, name: str) -> Any:
    """A value for all components, where Warp takes one. Raises Mismatch where it refuses it."""
    if type(value) in (int, float) or isinstance(getattr(value, "__ir_type__", None), ScalarType):
        got = f"a single value: {shown_value(value)}"
        raise Mismatch("E202", got, f"pass {describe(kind)}(...)")
    if isinstance(value, (bool, np.generic)) and not isinstance(value, np.void):
        wanted = describe(kind)
        log_warning(
            f"a value of type `{type(value).__name__}` is taken for all components of "
            f"`{wanted}`, kernel parameter {name!r}: deprecated, pass {wanted}(...)",
            DeprecationWarning,
        )
        return np.full(shape_of(kind), value)
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1 == len(value):
        return np.full(shape_of(kind), value[0])
    return value


def as_array(value: Any, kind: ArrayType) -> array | None:
    """A value for an array parameter as an array of that type, sharing memory. Raises Mismatch."""
    if value is None:
        return None
    if isinstance(value, array):
        if value._ir == kind:
            return value
        code = "E203" if value._ir.element == kind.element else "E202"
        raise Mismatch(code, describe(value._ir))
    if isinstance(value, np.ndarray):
        return _wrapped(value, kind)
    if isinstance(value, Described):
        return as_array(value.as_array(kind), kind)
    found = hooks.adapter(type(value))
    if found is not None:
        made: array = found.argument(value, kind)
        return made
    if hasattr(value, cuda_interface.NAME):
        return _of_gpu(value, kind)
    shares = hasattr(value, "__array_interface__")
    if not shares and not hasattr(value, "__dlpack__"):
        raise Mismatch("E202", shown_value(value), "make an array of it: array(data, dtype=...)")
    try:
        parts = np.asarray(value) if shares else np.from_dlpack(value)
    except (ValueError, TypeError, RuntimeError, BufferError, OverflowError) as e:
        raise Mismatch("E202", f"{shown_value(value)}: {e}",
                       "pass an object that describes existing memory") from None  # fmt: skip
    return _wrapped(check_memory(parts), kind)


def _wrapped(found: np.ndarray[Any, Any], kind: ArrayType) -> array:
    """Memory of another library, without a copy: a copy would lose what a kernel writes."""
    info, n, shape = element_info(kind.element), kind.ndim, found.shape
    why = misfit(found, info.numpy)
    if why is not None:
        raise Mismatch("E202", *why)
    if len(shape) != n + len(info.inner) or shape[n:] != info.inner:
        code = "E203" if shape[len(shape) - len(info.inner) :] == info.inner else "E202"
        raise Mismatch(code, f"a NumPy array of shape {shape}")
    if found.strides[n:] != info.steps and found.size:
        raise Mismatch("E202", f"a NumPy array with strides {found.strides}",
                       "components must lie side by side in memory")  # fmt: skip
    address = found.__array_interface__["data"][0]
    storage = wrap(found, address=address)
    return array._make(storage, address, shape[:n], found.strides[:n], info.kind)


def _of_gpu(value: Any, kind: ArrayType) -> array:
    """Memory of a GPU that an object describes, without a copy. Raises Mismatch."""
    gpus = get_cuda_devices()
    if not gpus:
        raise cuda_interface.refusal(value)
    found = cuda_interface.described(value)
    number = gpus[0].backend.device_of(found.address) if found.address else 0
    if number < 0:
        raise Mismatch("E204", f"memory at {found.address:#x}, which is not on a GPU",
                       "pass an array whose memory is on the device")  # fmt: skip
    place = next((d for d in gpus if d.ordinal == number), gpus[0])
    info, n, shape = element_info(kind.element), kind.ndim, found.shape
    if found.scalar != scalar_of(kind):
        raise Mismatch("E202", f"memory of a GPU with {found.scalar}")
    if len(shape) != n + len(info.inner) or shape[n:] != info.inner:
        code = "E203" if shape[len(shape) - len(info.inner) :] == info.inner else "E202"
        raise Mismatch(code, f"memory of a GPU of shape {shape}")
    if found.strides[n:] != info.steps and all(shape):
        raise Mismatch("E202", f"memory of a GPU with strides {found.strides}",
                       "components must lie side by side in memory")  # fmt: skip
    stream = getattr(value, cuda_interface.NAME).get("stream")
    if stream is not None:
        place.backend.wait(stream)
    storage = adopt(value, found.lo, found.nbytes, found.writable, "", place)
    return array._make(storage, found.address, shape[:n], found.strides[:n], info.kind)


def shown_value(value: Any) -> str:
    """A value and its type, for an error."""
    kind = getattr(value, "__ir_type__", None)
    name = describe(kind) if kind is not None else type(value).__name__
    text = repr(value)
    return f"{text} of type {name}" if len(text) <= 40 else f"a value of type {name}"
