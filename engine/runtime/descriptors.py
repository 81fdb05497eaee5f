"""Arrays and structs in C layout: `value.__ctype__()`, and arguments in that form.

An array is its address, that of its gradient, shape, strides and dimensions, as in records of
structs (`engine.lang.structs.record_dtype`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct, error
from typing import Any

import numpy as np

from engine.diagnostics import LaunchError
from engine.lang.structs import (
    StructArrayType,
    StructType,
    UserType,
    record_dtype,
)
from engine.lang.types import FLOAT32, ArrayType
from engine.runtime.annotation import element_info
from engine.runtime.array import array
from engine.runtime.foreign import Described
from engine.runtime.launch_errors import fail
from engine.runtime.links import array_at, descriptor, from_record
from engine.runtime.pack import Mismatch, shown_value


class _Described(Described):
    """made: bytes, and what gives the array that they tell of: a function, its arguments. Where a
    program has changed the bytes, or copied them from elsewhere, what they say counts.
    """

    __slots__ = ()
    made: tuple[bytes, Callable[..., array], tuple[Any, ...]]

    def as_array(self, kind: ArrayType) -> array:
        was, make, arguments = getattr(self, "made", (b"", None, ()))
        if make is not None and bytes(self) == was:  # type: ignore[call-overload]
            found: array = make(*arguments)
            self.made = was, _itself, (found,)  # type: ignore[misc]  # the structure has a place
            return found
        return value_of(self, kind)  # type: ignore[no-any-return]

    def __copy__(self) -> Any:
        """Another structure of the same array, which it keeps alive as well."""
        out = _described()(self)
        if hasattr(self, "made"):
            out.made = self.made
        return out

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("an array as C sees it is an address in this process: pickle the array")


def _itself(a: array) -> array:
    return a


def described(
    address: int, gradient: int, shape: Sequence[int], strides: Sequence[int],
    made: Callable[..., array], *arguments: Any,
) -> ctypes.Structure:  # fmt: skip
    """An array as C sees it, made of numbers; launches take it.

    made: gives the array itself, of the arguments, when a launch needs it. It keeps them alive.
    """
    n = len(shape)
    try:
        data = _PACK[n](address, gradient, *shape, *strides, n)
    except error:
        raise fail("E206", "a structure has shapes and strides of 32 bits, got shape "
                   f"{tuple(shape)} and strides {tuple(strides)} (in bytes)",
                   help="leave return_ctype out: arrays have larger strides") from None  # fmt: skip
    out: ctypes.Structure = _described()(data)
    out.made = data, made, arguments
    return out


ARRAY = record_dtype(StructType("array_t", {"of": ArrayType(FLOAT32, 1)}))["of"]
# Of that, by the number of dimensions.
_PACK = [Struct(f"<QQ{2 * f'{n}i{16 - 4 * n}x'}i4x").pack for n in range(5)]


def ctype_of(value: Any) -> ctypes.Structure:
    """A struct or an array as a C structure; it refers to arrays by their addresses."""
    if isinstance(value, array):
        parts = np.array(descriptor(value), ARRAY)
    else:
        parts = np.array(value.numpy_value(), record_dtype(value.__ir_type__))
    made: ctypes.Structure = _class(parts.dtype).from_buffer_copy(parts.tobytes())
    return made


def pointer_to(a: array) -> Any:
    """A ctypes pointer to elements, which keeps them alive. Nothing guards its bounds."""
    if not a.size:
        return None
    if not a.device.is_cpu or not a.is_contiguous:
        raise fail("E206", "a C pointer is only to be had to contiguous arrays on the CPU",
                   help="take one to a copy: a.contiguous().to('cpu')")  # fmt: skip
    a.__ctype__()  # from now on somebody else may write it
    info = a._info
    of = _class(info.numpy)
    for n in reversed(info.inner):
        of = of * n
    found = ctypes.cast(a.ptr, ctypes.POINTER(of))
    found._keeps = a
    return found


@cache
def _class(dtype: np.dtype[Any]) -> Any:
    return np.ctypeslib.as_ctypes_type(_without_halves(dtype))


def _without_halves(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type with uint16 in place of float16, which C has not."""
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        return np.dtype((_without_halves(inner), shape))
    if dtype.fields is None:
        return np.dtype(np.uint16) if dtype == np.float16 else dtype
    parts = [dtype.fields[name] for name in dtype.names or ()]
    return np.dtype(
        {
            "names": list(dtype.names or ()),
            "formats": [_without_halves(p[0]) for p in parts],
            "offsets": [p[1] for p in parts],
            "itemsize": dtype.itemsize,
        }
    )


@cache
def _described() -> Any:
    """Makes a structure of bytes."""
    kind: Any = type("array_t", (_class(ARRAY), _Described), {"__slots__": ("made",)})
    return kind.from_buffer_copy


def value_of(given: Any, kind: UserType) -> Any:
    """An argument given as a C structure, as launches take it. Raises Mismatch."""
    if isinstance(given, ctypes._SimpleCData):
        return given.value
    if not isinstance(given, ctypes.Structure):
        return given
    if isinstance(kind, StructType):
        dtype = record_dtype(kind)
    elif isinstance(kind, (ArrayType, StructArrayType)):
        dtype = ARRAY
    else:
        raise Mismatch("E202", shown_value(given))
    data = bytes(given)
    if len(data) != dtype.itemsize:
        raise Mismatch("E202", f"a C structure of {len(data)} bytes",
                       f"a value of the type has {dtype.itemsize}")  # fmt: skip
    record = np.frombuffer(data, dtype)[0]
    n = int(record["ndim"]) if dtype is ARRAY else 0  # of no array at all, too
    if n and not record["data"] and record["shape"][:n].all():
        raise Mismatch("E202", "a C structure of elements at address 0",
                       "an array without elements has a 0 in its shape")  # fmt: skip
    if isinstance(kind, StructType):
        return from_record(kind, record)
    assert isinstance(kind, (ArrayType, StructArrayType))
    try:
        return array_at(kind, record)
    except LaunchError:  # an address from elsewhere
        shape, strides = (tuple(record[x].tolist()[:n]) for x in ("shape", "strides"))
        of = element_info(kind.element).dtype
        return array(ptr=int(record["data"]), dtype=of, shape=shape, strides=strides)
