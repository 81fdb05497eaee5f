"""Functions that make arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine import config
from engine.accelerator import accelerator
from engine.lang.factories import matrix, vector
from engine.lang.numbers import number_kind
from engine.lang.strided import misplaced
from engine.lang.structs import ElementType
from engine.lang.types import (
    BOOL,
    FLOAT32,
    INT32,
    MatrixType,
    ScalarType,
    VectorType,
)
from engine.lang.values import dtype_from_numpy, to_element_type, to_value_type
from engine.logger import log_warning
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.data import (
    address_from,
    check_place,
    check_size,
    element_value,
    shape_from,
    steps,
)
from engine.runtime.device import Device, DeviceLike, get_device
from engine.runtime.foreign import shared
from engine.runtime.indexed import indexedarray
from engine.runtime.launch_errors import fail
from engine.runtime.storage import allocate
from engine.runtime.transfer import remake


def zeros(
    shape: Any = None,
    dtype: Any = float,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    **kwargs: Any,
) -> array:
    """An array of zeros. `shape` is an int or a tuple of 1 to 4.

    pinned: on the CPU, in memory that GPUs read by themselves, where there are any; `copy` to one
    of them does not wait then, and what was copied must not change before `synchronize_device`.
    strides: bytes from one element to the next, for each dimension, where they are not to lie
    side by side; so for the functions below.
    """
    if device is None and not (retain_grad or kwargs or pinned):
        made: array | None = accelerator.try_zeros(shape, dtype, requires_grad)
        if made is not None:
            return made
    return _make(shape, dtype, device, requires_grad, pinned, retain_grad, kwargs, zero=True)


zeros.__builtin_name__ = "zeros"  # type: ignore[attr-defined]  # a local array in kernels


def empty(
    shape: Any = None,
    dtype: Any = float,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    **kwargs: Any,
) -> array:
    """An array whose contents are undefined."""
    return _make(shape, dtype, device, requires_grad, pinned, retain_grad, kwargs, zero=False)


def ones(
    shape: Any = None,
    dtype: Any = float,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    **kwargs: Any,
) -> array:
    """An array of ones (in every component). Raises LaunchError (E202) for structs."""
    made = None
    if device is None and not (retain_grad or kwargs or pinned):
        made = _small(shape, dtype, requires_grad)
    out = made or _make(
        shape, dtype, device, requires_grad, pinned, retain_grad, kwargs, zero=False
    )
    element = element_value(1, out._ir.element)  # of a struct, addresses of arrays would be 1
    out._put_first(element)
    remake(out, element)
    return out


def _small(shape: Any, dtype: Any, requires_grad: bool) -> array | None:
    """A small array like one that was made before, to be filled; None where there is none."""
    few = shape.__class__ is int and shape <= _FEW
    if not few and shape.__class__ is tuple and set(map(type, shape)) == {int}:
        few = math.prod(shape) <= _FEW
    return accelerator.try_zeros(shape, dtype, requires_grad) if few else None


_FEW = 1000  # elements, which are filled as fast as one


def full(
    shape: Any = None,
    value: Any = 0,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pinned: bool = False,
    retain_grad: bool = False,
    **kwargs: Any,
) -> array:
    """An array filled with `value`, whose type is the dtype where none is given."""
    made = None
    if device is None and not (retain_grad or kwargs or pinned):
        made = _small(shape, type(value) if dtype is None else dtype, requires_grad)
    if made is None:
        kind = _type_of(value) if dtype is None else to_element_type(dtype)
        made = _make(shape, kind, device, requires_grad, pinned, retain_grad, kwargs, zero=False)
    out = made
    element = element_value(value, out._ir.element)
    out._put_first(element)
    remake(out, element)
    return out


def zeros_like(
    src: Any,
    device: DeviceLike = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Zeros of the same shape and dtype; requires_grad as in `src` where left out."""
    return _like(src, device, requires_grad, pinned, retain_grad, zero=True)


def empty_like(
    src: Any,
    device: DeviceLike = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Undefined contents of the same shape and dtype; requires_grad as in `src`."""
    return _like(src, device, requires_grad, pinned, retain_grad, zero=False)


def ones_like(
    src: Any,
    device: DeviceLike = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Ones of the same shape and dtype; requires_grad as in `src` where left out."""
    return full_like(src, 1, device, requires_grad, pinned, retain_grad)


def full_like(
    src: Any,
    value: Any,
    device: DeviceLike = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """`value` in the shape and dtype of `src`; requires_grad as in `src` where left out."""
    out = _like(src, device, requires_grad, pinned, retain_grad, zero=False)
    element = element_value(value, out._ir.element)
    out._put_first(element)
    remake(out, element)
    return out


def from_numpy(
    arr: Any,
    dtype: Any = None,
    shape: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    retain_grad: bool = False,
) -> array:
    """A copy of a NumPy array; without `dtype`, trailing axes stay dimensions.

    Where `config.inner_axes` is "elements", rows of two axes are vectors, as in Warp, and what
    follows the first of three are matrices.
    """
    if dtype is None and config.inner_axes == "elements":
        dtype = _inner_type(arr, shape)
    out: array = array(
        arr, dtype, shape, device=device, requires_grad=requires_grad, retain_grad=retain_grad
    )
    return out


def _inner_type(arr: Any, shape: Any) -> Any:
    """The vector or matrix of the axes after the first; None where they are dimensions."""
    axes: tuple[int, ...] = getattr(arr, "shape", ())
    if len(axes) not in (2, 3) or 0 in axes[1:] or arr.dtype.names is not None:
        return None
    if shape is not None and shape_from(shape) != tuple(axes[:1]):
        return None  # Warp refuses it: there is nothing else that it could mean
    scalar = dtype_from_numpy(arr.dtype)
    return vector(axes[1], scalar) if len(axes) == 2 else matrix(tuple(axes[1:]), scalar)


def from_ptr(
    ptr: int, length: int, dtype: Any = None, shape: Any = None, device: DeviceLike = None
) -> array:
    """An array over memory that the caller owns, as old programs for Warp make it.

    Args:
        ptr: the address of a pointer to the memory; 0 for no memory. `array(ptr=...)` takes the
            address itself.
        length: the number of elements, where `shape` is left out.
        dtype: the type of the elements, float32 where left out.
        shape: an int or a tuple.
        device: where the memory is.

    Warns that this is deprecated, as Warp does.
    """
    import ctypes

    log_warning(
        "from_ptr is deprecated: use array(ptr=..., shape=..., dtype=...)", DeprecationWarning
    )
    dims = shape_from(length if shape is None else shape)  # refused before memory is read
    kind = float if dtype is None else dtype
    to_element_type(kind)
    ptr = address_from(ptr)
    if ptr and (why := misplaced(ptr, (8,), (1,), 1)):
        raise fail("E206", f"an array cannot be at this address: {why}",
                   help="array(ptr=...) takes the address itself")  # fmt: skip
    at = ctypes.c_size_t.from_address(ptr).value if ptr else 0
    out: array = array(ptr=at, dtype=kind, shape=dims, device=device)
    return out


def _make(
    shape: Any,
    dtype: Any,
    device: DeviceLike,
    requires_grad: bool,
    pinned: bool,
    retain_grad: bool,
    kwargs: dict[str, Any],
    zero: bool,
) -> array:
    place = get_device(device)
    strides = ndim = None
    if kwargs:
        shape = kwargs.pop("n", shape) if shape is None else shape
        strides = kwargs.pop("strides", None)
        ndim = kwargs.pop("ndim", None)
        if kwargs:
            raise TypeError(f"unexpected keyword argument {next(iter(kwargs))!r}")
    if shape is None:
        raise fail("E206", "an array needs a shape: an integer or a tuple of 1 to 4 integers")
    kind = to_element_type(dtype)
    dims = (shape,) if shape.__class__ is int and shape >= 0 else shape_from(shape)
    if ndim is not None and ndim != len(dims):
        raise fail("E206", f"expected {ndim} dimensions, got shape {dims}")
    if strides is None:
        out = array._allocate(dims, kind, zero, place, pinned)
    else:
        check_size(dims, kind)
        out = _spaced(dims, strides, kind, zero, place, pinned)
    if requires_grad:
        out.requires_grad = True
    if retain_grad:
        out.retain_grad = True
    if events.graph() is not None:
        remake(out, np.zeros((), out._info.numpy) if zero else None)
    if events.everywhere:
        events.tell("made", out)
    return out


def _spaced(
    dims: tuple[int, ...], strides: Any, kind: ElementType, zero: bool, place: Device,
    pinned: bool,
) -> array:  # fmt: skip
    """An array whose elements lie `strides` bytes apart. Raises LaunchError (E206)."""
    found = steps(strides, dims)
    if any(s < 0 for s in found):
        raise fail("E206", f"strides of a new array cannot be negative, got {strides}")
    page = 1 << 12  # wherever they will begin
    lo, hi = check_place(page, dims, found, kind)
    storage = allocate(hi - lo, zero, place, pinned)
    return array._make(storage, storage.lo, dims, found, kind)


def _like(
    src: Any, device: DeviceLike, requires_grad: bool | None, pinned: bool | None,
    retain_grad: bool, zero: bool,
) -> array:  # fmt: skip
    if isinstance(src, indexedarray):
        shape, of = src.shape, src.data
    else:
        src = shared(src)
        of = src if isinstance(src, array) else array(src, copy=None)
        shape = of.shape
    place = of.device if device is None else get_device(device)
    out = array._allocate(
        shape, of._ir.element, zero, place, of.pinned if pinned is None else pinned
    )
    wanted = of.requires_grad if requires_grad is None else requires_grad
    if wanted and (requires_grad or out._info.floating):
        out.requires_grad = True
    out.retain_grad = retain_grad
    remake(out, np.zeros((), out._info.numpy) if zero else None)
    if events.everywhere:
        events.tell("made", out)
    return out


def _type_of(value: Any) -> ElementType:
    """The element type that `full` takes from a value."""
    kind = getattr(type(value), "__ir_type__", None)
    if kind is not None:
        return kind  # type: ignore[no-any-return]
    if type(value) in (bool, int, float):
        return {bool: BOOL, int: INT32, float: FLOAT32}[type(value)]
    try:
        found = np.asarray(value)
    except ValueError:
        found = np.asarray(None)
    if number_kind(found.dtype) not in "biuf" or found.ndim > 2:
        raise fail("E206", f"full cannot find the element type of {value!r}",
                   help="name it: dtype=float")  # fmt: skip
    scalar = to_value_type(found.dtype)
    assert isinstance(scalar, ScalarType)
    if found.ndim == 0:
        return scalar
    if found.ndim == 1:
        return VectorType(scalar, found.shape[0])
    return MatrixType(scalar, *found.shape)
