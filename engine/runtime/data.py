"""Converts Python and NumPy data for an array: types, shapes, element layout."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from engine import config
from engine.lang.numbers import exact, misfit, number_kind, numbers
from engine.lang.strided import byte_range, misplaced
from engine.lang.structs import ElementType, StructType, record_dtype
from engine.lang.types import BFLOAT16, BY_NAME, FLOAT32, FLOAT64, ScalarType, scalar_of, shape_of
from engine.logger import log_warning
from engine.runtime import cuda_interface
from engine.runtime.annotation import MAX_DIMS, ElementInfo, describe, element_info
from engine.runtime.device import Device
from engine.runtime.foreign import plain
from engine.runtime.launch_errors import fail, size_text
from engine.runtime.outside import MASKED, is_masked
from engine.runtime.outside import misfit as misfit_of_memory

NumpyArray = np.ndarray[Any, Any]

MAX_EXTENT = (1 << 31) - 1
# The types of numbers by NumPy's, but for bfloat16.
SCALARS = {t.numpy: t for t in BY_NAME.values() if t != BFLOAT16}


def shape_from(shape: Any) -> tuple[int, ...]:
    """A shape from an int or a sequence of 1 to 4 ints. Raises LaunchError (E206)."""
    try:
        if isinstance(shape, (list, tuple, np.ndarray)):
            dims = tuple(operator.index(n) for n in shape)
        else:
            dims = (operator.index(shape),)
    except TypeError:
        raise fail("E206", f"a shape is an integer or a tuple of integers, got {shape!r}") from None
    if not 1 <= len(dims) <= MAX_DIMS:
        raise fail("E206", f"an array has 1 to {MAX_DIMS} dimensions, got shape {dims}")
    if any(n < 0 for n in dims):
        raise fail("E206", f"Array shapes must be non-negative, got {dims}")
    return dims


def check_extents(shape: tuple[int, ...]) -> None:
    """Raises LaunchError (E206) for a dimension that kernels, which count in int32, cannot have."""
    if max(shape, default=0) > MAX_EXTENT:
        raise fail("E206", f"a dimension of an array has at most {MAX_EXTENT} elements, "
                   f"got shape {shape}",
                   help="use more dimensions: reshape the data to rows")  # fmt: skip


def check_size(shape: tuple[int, ...], element: ElementType) -> int:
    """Bytes of a contiguous array. Raises LaunchError (E209) where no memory could hold it."""
    nbytes = math.prod(shape) * element.size
    if nbytes >= 1 << 62:
        raise fail("E209", f"out of memory: shape {shape} of {describe(element)} needs "
                   f"{size_text(nbytes)}")  # fmt: skip
    return nbytes


def address_from(ptr: Any) -> int:
    """An address from an integer. Raises LaunchError (E206), also for truth values."""
    try:
        return _index(ptr)
    except TypeError:
        raise fail("E206", f"an address is an integer, got {ptr!r} of type {type(ptr).__name__}",
                   help=_ADDRESS) from None  # fmt: skip


def check_place(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], kind: ElementType
) -> tuple[int, int]:
    """The lowest address of elements, and the one past the highest.

    Raises LaunchError (E206) where no memory has such elements.
    """
    check_extents(shape)
    align = kind.align if isinstance(kind, StructType) else scalar_of(kind).size
    why = misplaced(address, shape, strides, kind.size, align)
    if why:
        raise fail(
            "E206", f"an array of shape {shape} cannot be at this address: {why}", help=_ADDRESS
        )
    return byte_range(address, shape, strides, kind.size)


_ADDRESS = (
    "pass the address of memory that holds all the elements, and strides in bytes, as "
    "`x.ctypes.data` and `x.strides` are of a NumPy array"
)


_TELL = "pass an object that describes existing memory"


def check_memory(found: NumpyArray) -> NumpyArray:
    """NumPy's view of what another object says of its memory.

    Raises LaunchError (E206) where no memory has such elements; NumPy would read it all the same.
    """
    if found.size:
        address = found.__array_interface__["data"][0]
        why = misplaced(address, found.shape, found.strides, found.itemsize)
        if why:
            raise fail("E206", f"memory of shape {found.shape} cannot be an array: {why}",
                       help=_TELL)  # fmt: skip
    return found


def _index(n: Any) -> int:
    if isinstance(n, (bool, np.bool_)):
        raise TypeError
    return operator.index(n)


def steps(strides: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in bytes, one for each dimension. Raises LaunchError (E206)."""
    try:
        found = tuple(_index(n) for n in strides)
    except TypeError:
        found = ()
    if len(found) != len(shape):
        raise fail("E206", f"strides are {len(shape)} integers, one a dimension, got {strides!r}",
                   help=_ADDRESS)  # fmt: skip
    return found


def to_numpy(data: Any, kind: ElementType | None) -> NumpyArray:
    """Data as a NumPy array of the kind's scalar, copying only where it must.

    Raises LaunchError (E206) for what is not a rectangular block of numbers.
    """
    if is_masked(data):
        raise fail("E206", f"{MASKED[0]} cannot be made into an array", help=MASKED[1])
    if isinstance(kind, StructType):
        return _to_records(data, kind)
    data = plain(data)
    if not isinstance(data, (np.ndarray, list, tuple)) and hasattr(data, cuda_interface.NAME):
        why = cuda_interface.refusal(data)
        raise fail(why.code, f"{why.got} cannot be made into an array", help=why.help)
    if _tells_memory(data):
        data = _seen(data)
    try:
        found = np.asarray(data) if kind is None else exact(data, scalar_of(kind).numpy)
        if kind is not None and scalar_of(kind) == BFLOAT16 and found.dtype == np.uint16:
            found = found.view(BFLOAT16.numpy)  # bits, as NumPy without the type has them
    except (ValueError, TypeError, RuntimeError, BufferError, OverflowError) as e:
        raise fail("E206", "data cannot be made into an array", str(e).split("\n")[0]) from None
    if number_kind(found.dtype) not in "biuf":
        raise fail(
            "E206", f"data of type {found.dtype} cannot be made into an array",
            help="pass numbers, or rows of numbers of equal length",
        )  # fmt: skip
    if found.ndim == 0:
        if not isinstance(data, np.ndarray):
            raise fail(
                "E206", f"data must be a sequence or an array, got the scalar {data!r}",
                help="wrap it in a list, or use full(shape, value)",
            )  # fmt: skip
        found = found.reshape(1)
    if kind is None:
        if found.dtype.name not in BY_NAME:
            raise fail(
                "E206", f"there are no arrays of {found.dtype}",
                help="name the element type, for instance dtype=float",
            )  # fmt: skip
        return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))
    return narrowed(found, scalar_of(kind), "E206", "data cannot be made into an array")


def narrowed(found: NumpyArray, scalar: ScalarType, code: str, problem: str) -> NumpyArray:
    """Numbers as another type. Raises LaunchError (`code`) where an integer type has no place."""
    if found.dtype == scalar.numpy:
        return found
    why = misfit(found, scalar.numpy)
    if why and not (config.integers == "lenient" and code == "E206"):
        raise fail(code, f"{problem}: {why} of {describe(scalar)}",
                   help="to let numbers wrap, convert them with NumPy first: "
                   f"data.astype(numpy.{scalar.name})")  # fmt: skip
    return _cast(found, scalar.numpy)


def _cast(found: NumpyArray, dtype: np.dtype[Any]) -> NumpyArray:
    with np.errstate(all="ignore"):
        return found.astype(dtype)


def shows(parts: NumpyArray, kind: ElementType) -> bool:
    """Whether an array can show the memory of a NumPy array as it is, but for the components."""
    wanted = record_dtype(kind) if isinstance(kind, StructType) else scalar_of(kind).numpy
    return misfit_of_memory(parts, wanted) is None


def same_memory(parts: NumpyArray, data: Any) -> bool:
    """Whether NumPy's view of data is still what data is; True for what is no NumPy array."""
    return not isinstance(data, np.ndarray) or not parts.size or np.may_share_memory(parts, data)


def warn_of_copy(data: Any, kind: ElementType, device: Device) -> None:
    """Says that memory was not shared that was to be."""
    why = (f"that of elements of {describe(kind)}, stored one after another"
           if device.backend.on_host else f"on {device}")  # fmt: skip
    log_warning("array(..., copy=False) made a copy: "
                f"the memory of a {type(data).__name__} is not {why}")  # fmt: skip


def for_numpy(seen: NumpyArray, dtype: Any, copy: bool | None) -> NumpyArray:
    """A view as NumPy asks for it. Raises ValueError where a copy is needed that is not wanted."""
    if dtype is not None and seen.dtype != dtype:
        if copy is False:
            raise ValueError(f"an array of {seen.dtype} as {np.dtype(dtype)} needs a copy")
        return seen.astype(dtype)
    return seen.copy() if copy else seen


def struct_in(data: Any) -> StructType | None:
    """The type of the structs in a list, where no dtype says it."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    found = getattr(type(data), "__ir_type__", None)
    return found if isinstance(found, StructType) else None


def _to_records(data: Any, kind: StructType) -> NumpyArray:
    """Structs in (nested) lists, or NumPy records with the same fields, as records."""
    dtype = record_dtype(kind)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        if data.dtype.names == dtype.names:
            return data if data.dtype == dtype else data.astype(dtype)
        raise fail("E206", f"records of {data.dtype.names} are not elements of {kind.name}",
                   f"expected fields {dtype.names}")  # fmt: skip

    def plain(item: Any) -> Any:
        if isinstance(item, (list, tuple)):
            return [plain(x) for x in item]
        if getattr(type(item), "__ir_type__", None) is not kind:
            raise fail("E206", f"data cannot be made into an array of {kind.name}", f"got {item!r}",
                       help=f"pass a list of {kind.name} values, or a NumPy array of dtype "
                       f"{kind.name}.numpy_dtype()")  # fmt: skip
        return item.numpy_value()

    found = plain(data)
    try:
        return np.atleast_1d(np.array(found, dtype))
    except ValueError:
        raise fail("E206", "data cannot be made into an array", "rows of unequal length") from None


_TELLS = ("__array_interface__", "__array_struct__", "__dlpack__")


def _tells_memory(data: Any) -> bool:
    """Whether an object that is not NumPy's tells where its memory is."""
    own = isinstance(data, (np.ndarray, np.generic, list, tuple, type))
    return not own and any(hasattr(data, name) for name in _TELLS)


def _seen(data: Any) -> NumpyArray:
    """The memory that an object tells of. Raises LaunchError (E206)."""
    try:
        found = np.from_dlpack(data) if _only_dlpack(data) else np.asarray(data)
    except (ValueError, TypeError, RuntimeError, BufferError, OverflowError) as e:
        why = str(e).split("\n")[0]
        raise fail("E206", "data cannot be made into an array", why, help=_TELL) from None
    return check_memory(found)


def _only_dlpack(data: Any) -> bool:
    return hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__")


def check_dimensions(shape: tuple[int, ...]) -> None:
    """Raises LaunchError (E206) for more than an array can have."""
    if len(shape) > MAX_DIMS:
        raise fail("E206", f"an array has 1 to {MAX_DIMS} dimensions, got shape {shape}")


def element_shape(found: NumpyArray, kind: ElementType) -> tuple[int, ...]:
    """The array's shape when the last axes of `found` are the components of one element."""
    inner = inner_shape(kind)
    own: tuple[int, ...] = found.shape
    if not inner:
        return own
    n = len(inner)
    if found.shape[-n:] == inner and found.ndim >= n:
        return own[:-n] or (1,)
    count, last = math.prod(inner), found.shape[-1]
    size = 1
    for k in range(found.ndim - 1, -1, -1):  # components in any number of axes
        size *= own[k]
        if size == count:
            return own[:k] or (1,)
    if last % count == 0:
        return (*own[:-1], last // count)
    raise fail(
        "E206",
        f"data of shape {found.shape} does not hold elements of {describe(kind)}",
        f"expected the last dimension{'s' if n > 1 else ''} to be {inner if n > 1 else inner[0]}, "
        "or several times that",
    )


def as_elements(
    found: NumpyArray, kind: ElementType, shape: tuple[int, ...] | None
) -> tuple[NumpyArray, tuple[int, ...]]:
    """`found` reshaped to `shape` (or its own) plus component axes; a view where it can be."""
    own = element_shape(found, kind)
    if shape is None:
        shape = own
    elif math.prod(shape) != math.prod(own):
        raise fail(
            "E206", f"data does not fit shape {shape}",
            f"expected {math.prod(shape)} elements of {describe(kind)}, got {math.prod(own)}",
        )  # fmt: skip
    check_dimensions(shape)
    return found.reshape(shape + inner_shape(kind)), shape


def inner_shape(kind: ElementType) -> tuple[int, ...]:
    """The component axes of an element in NumPy arrays; a struct has none."""
    return () if isinstance(kind, StructType) else shape_of(kind)


_FAR = 3e38  # below it, nothing rounds to infinity
_SINGLE, _DOUBLE = FLOAT32.numpy, FLOAT64.numpy
_WHOLE = 1 << 53  # up to it, integers are floats


def element_value(value: Any, kind: ElementType) -> NumpyArray:
    """One element (or one number for all its components) as NumPy. Raises LaunchError (E202)."""
    if isinstance(kind, StructType):
        return _record(value, kind)
    info = element_info(kind)
    if _is_plain(value, kind):
        return np.asarray(value, info.numpy)  # as nearly all are
    inner = info.inner
    if inner and value.__class__ is info.dtype:
        found: NumpyArray = value._data  # type: ignore[attr-defined]
        return found
    if inner and _are_plain(value, info):
        return np.asarray(value, info.numpy).reshape(inner)
    found = numbers(value)
    scalar: ScalarType = scalar_of(kind)
    fits = number_kind(found.dtype) in "biuf" and (
        found.shape in ((), inner) or (inner and found.shape == (math.prod(inner),))
    )
    whole = scalar.kind in "iu"
    if fits and whole and number_kind(found.dtype) == "f":
        fits = False
    if whole or not fits:
        what = f"cannot fill elements of {describe(kind)} with {value!r}"
        if not fits:
            raise fail("E202", what)
        out = narrowed(found, scalar, "E202", what)
    else:
        out = _cast(found, info.numpy)
    return out.reshape(inner) if out.ndim else out


def _is_plain(value: Any, kind: ElementType) -> bool:
    """Whether it is a number of Python that a type of numbers has, with nothing to be told."""
    cls = value.__class__
    if kind is FLOAT32 or kind is FLOAT64:
        if cls is float:
            return bool(-_FAR < value < _FAR)
        return cls is int and -_WHOLE <= value <= _WHOLE
    if cls is not int or kind.__class__ is not ScalarType:
        return False
    return kind.kind == "i" and -(1 << (kind.bits - 1)) <= value < 1 << (kind.bits - 1)


def _are_plain(values: Any, info: ElementInfo) -> bool:
    """The same of all components of a vector or matrix, floats in a row."""
    if values.__class__ is not tuple and values.__class__ is not list:
        return False
    return (
        (info.numpy is _SINGLE or info.numpy is _DOUBLE)
        and len(values) * info.numpy.itemsize == info.size and set(map(type, values)) == {float}
        and max(map(abs, values)) < _FAR
    )  # fmt: skip


def _record(value: Any, kind: StructType) -> NumpyArray:
    dtype = record_dtype(kind)
    if getattr(type(value), "__ir_type__", None) is kind:
        return np.array(value.numpy_value(), dtype)
    if isinstance(value, (np.void, np.ndarray)) and value.shape == () and value.dtype == dtype:
        return np.array(value)
    if type(value) in (int, float) and value == 0:
        return np.zeros((), dtype)
    raise fail("E202", f"cannot fill elements of {kind.name} with {value!r}",
               help=f"pass a {kind.name}, or 0")  # fmt: skip
