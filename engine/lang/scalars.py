"""The scalar classes that users write: as a dtype, as an annotation, and as a cast.

Each is a subclass of Python's `float` or `int`, so an instance is an ordinary
number that has been rounded (or wrapped) to the class's width.
"""

from __future__ import annotations

import builtins
import ctypes
import operator
from typing import Any, ClassVar

import numpy as np

from engine.lang import types as t
from engine.lang.scalar_arithmetic import give_arithmetic


class _Scalar:
    """What every scalar class has: its type in the kernel language."""

    __slots__ = ()
    __ir_type__: ClassVar[t.ScalarType]
    # What C has for it, by the name that programs for Warp know; of half precision the bits.
    _type_: ClassVar[Any]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self!s})"


class _Float(_Scalar, float):
    __slots__ = ()
    _round: ClassVar[Any]

    def __new__(cls, value: Any = 0.0) -> Any:
        with np.errstate(over="ignore"):
            try:
                return float.__new__(cls, cls._round(value))
            except OverflowError:  # of an integer: infinite, as a C cast makes it
                return float.__new__(cls, float("inf") if value > 0 else float("-inf"))

    __str__ = float.__repr__

    @property
    def value(self) -> float:
        """The plain Python number."""
        return float(self)


class _Int(_Scalar, int):
    __slots__ = ()

    def __new__(cls, value: Any = 0) -> Any:
        whole = int(value) if isinstance(value, (float, np.floating)) else operator.index(value)
        bits = cls.__ir_type__.bits
        whole &= (1 << bits) - 1
        if cls.__ir_type__.kind == "i" and whole >> (bits - 1):
            whole -= 1 << bits
        return int.__new__(cls, whole)

    __str__ = int.__repr__

    @property
    def value(self) -> int:
        """The plain Python number."""
        return int(self)


class float16(_Float):
    """A 16-bit float, 11 bits of precision, up to 65504."""

    __slots__ = ()
    __ir_type__ = t.FLOAT16
    _round = np.float16


def _to_bfloat16(value: Any) -> float:
    """The nearest number with 8 bits of precision, ties to even, to the nearest float32."""
    single = np.float32(value)
    if np.isnan(single):
        return float(single)
    bits = int(single.view(np.uint32))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(np.uint32(bits).view(np.float32))


class bfloat16(_Float):
    """A 16-bit float, 8 bits of precision, with the range of float32."""

    __slots__ = ()
    __ir_type__ = t.BFLOAT16
    _round = _to_bfloat16


class float32(_Float):
    """A 32-bit float, 24 bits of precision. `float` in kernels."""

    __slots__ = ()
    __ir_type__ = t.FLOAT32
    _round = np.float32


class float64(_Float):
    """A 64-bit float, 53 bits of precision."""

    __slots__ = ()
    __ir_type__ = t.FLOAT64
    _round = np.float64


class int8(_Int):
    """An 8-bit signed integer; values wrap."""

    __slots__ = ()
    __ir_type__ = t.INT8


class int16(_Int):
    """A 16-bit signed integer; values wrap."""

    __slots__ = ()
    __ir_type__ = t.INT16


class int32(_Int):
    """A 32-bit signed integer; values wrap. `int` in kernels."""

    __slots__ = ()
    __ir_type__ = t.INT32


class int64(_Int):
    """A 64-bit signed integer; values wrap."""

    __slots__ = ()
    __ir_type__ = t.INT64


class uint8(_Int):
    """An 8-bit unsigned integer; values wrap."""

    __slots__ = ()
    __ir_type__ = t.UINT8


class uint16(_Int):
    """A 16-bit unsigned integer; values wrap."""

    __slots__ = ()
    __ir_type__ = t.UINT16


class uint32(_Int):
    """A 32-bit unsigned integer; values wrap."""

    __slots__ = ()
    __ir_type__ = t.UINT32


class uint64(_Int):
    """A 64-bit unsigned integer; values wrap."""

    __slots__ = ()
    __ir_type__ = t.UINT64


class bool(_Scalar):
    """A truth value, one byte in memory. Calling it gives a Python bool."""

    __slots__ = ()
    __ir_type__ = t.BOOL

    def __new__(cls, value: Any = False) -> builtins.bool:  # type: ignore[misc]
        return builtins.bool(value)


SCALAR_CLASSES: dict[t.ScalarType, type] = {
    c.__ir_type__: c
    for c in (
        bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16,
        float32, float64,
    )
}  # fmt: skip

for _kind, _class in SCALAR_CLASSES.items():
    if _class is not bfloat16:
        _class.__numpy_dtype__ = np.dtype(_kind.numpy)  # type: ignore[attr-defined]
    _class._type_ = getattr(  # type: ignore[attr-defined]
        ctypes, {"float16": "c_uint16", "bfloat16": "c_uint16", "float32": "c_float",
                 "float64": "c_double"}.get(_kind.name, f"c_{_kind.name}"))  # fmt: skip
    if _kind.kind == "f":
        _width = np.float32 if _class is bfloat16 else _kind.numpy.type
        give_arithmetic(_class, float, float if _class is float32 else None, _width)
    elif _kind.kind in "iu":
        give_arithmetic(_class, int, int if _class is int32 else None)


def host_number(kind: t.ScalarType, value: Any) -> Any:
    """A number of a type as Python holds it: a plain one where Python's own mean that type."""
    if kind in (t.FLOAT32, t.INT32, t.BOOL):
        return value.item()
    return SCALAR_CLASSES[kind](value)
