"""Views of an array: slices, other shapes, other types. Each shares memory, and gradients."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.lang.structs import ElementType, StructType
from engine.lang.types import BFLOAT16, ValueType, is_float, scalar_of, shape_of
from engine.runtime import capsules
from engine.runtime.adopted import known_as
from engine.runtime.annotation import MAX_DIMS, describe
from engine.runtime.data import shape_from
from engine.runtime.launch_errors import fail, index_error
from engine.runtime.placement import SAME, Placed, Reshaped, Sliced, Transposed

if TYPE_CHECKING:
    from engine.runtime.array import array

# An operation on a NumPy array of opaque elements that gives a view of it.
Operation = Callable[[Any], Any]


def _opaque(a: array) -> np.ndarray[Any, Any]:
    """The elements as NumPy values without components, so that axes match."""
    kind = np.dtype((np.void, a._ir.element.size))
    backend = a.storage.device.backend
    seen: np.ndarray[Any, Any] = backend.geometry(a.storage, a._ptr, a.shape, a.strides, kind)
    return seen


def apply(a: array, operation: Operation, kind: ElementType | None = None) -> array:
    """The view that `operation` makes of an array's elements, without a link to its gradient."""
    found = operation.place(a) if isinstance(operation, Placed) and a.size else None
    if found is not None:
        offset, shape, strides = found
        return type(a)._make(a.storage, a._ptr + offset, shape, strides, kind or a._ir.element)
    seen = operation(_opaque(a))
    address = seen.__array_interface__["data"][0] if seen.size else a._ptr
    return type(a)._make(a.storage, address, seen.shape, seen.strides, kind or a._ir.element)


def apply_linked(a: array, operation: Operation) -> array:
    """A view whose gradient is the same view of the parent's gradient."""
    out = apply(a, operation)
    out._origin = (a, operation)
    out._flag = a._flag
    out._retain = a._retain
    return out


def _index(a: array, index: Any) -> tuple[Any, ...]:
    if is_plain(index) and (index.__class__ is not tuple or len(index) <= a.ndim):
        return index if index.__class__ is tuple else (index,)
    parts = index if isinstance(index, tuple) else (index,)
    clean: list[Any] = []
    for p in parts:
        if isinstance(p, slice) or p is Ellipsis:
            clean.append(p)
            continue
        try:
            clean.append(int(operator.index(p)))  # True is 1: NumPy would copy
        except TypeError:
            raise fail("E206", f"arrays are indexed with integers and slices, got {p!r}") from None
    if sum(p is not Ellipsis for p in clean) > a.ndim:
        raise index_error(f"too many indices for an array of {a.ndim} dimensions: {index!r}")
    return tuple(clean)


_PLAIN = {int, slice}


def is_plain(index: Any) -> bool:
    """Whether an index has just numbers of Python and slices, as nearly all have."""
    if index.__class__ is not tuple:
        return index.__class__ is int or index.__class__ is slice
    return set(map(type, index)) <= _PLAIN


def _is_full(a: array, key: tuple[Any, ...]) -> bool:
    """Whether an index names one element."""
    return len(key) == a.ndim and slice not in map(type, key) and Ellipsis not in key


def sliced(a: array, index: Any) -> Any:
    """`a[index]`: a view, or a NumPy copy of one element where every axis is indexed."""
    key = _index(a, index)
    try:
        if _is_full(a, key):
            return np.array(a.device.backend.to_host(a._parts[key]))
        return apply_linked(a, Sliced(key))
    except IndexError:
        raise index_error(f"index {index!r} is outside an array of shape {a.shape}") from None


def indexed(a: array, parts: tuple[Any, ...]) -> Any:
    """`a[i, 1:, j]` with arrays of indices: an indexed array of the view that the rest gives."""
    from engine.runtime.array import array
    from engine.runtime.indexed import indexedarray

    if len(parts) == 1 and a.ndim:
        return indexedarray(a, [parts[0]])
    whole = slice(None)
    key = _index(a, tuple(whole if isinstance(p, array) else p for p in parts))
    if key.count(Ellipsis) > 1:
        raise index_error("an index has `...` only once")
    if Ellipsis in key:
        at = key.index(Ellipsis)
        rest = (whole,) * (a.ndim - len(key) + 1)
        key, parts = (key[:at] + rest + key[at + 1 :]), (parts[:at] + rest + parts[at + 1 :])
    part = a if all(p == whole for p in key) else kept(a, key)
    indices = [p if isinstance(p, array) else None
               for p, k in zip(parts, key, strict=True) if isinstance(k, slice)]  # fmt: skip
    return indexedarray(part, indices)


def kept(a: array, index: Any) -> array:
    """`a[index]` as a view in every case: a full index gives one element in one dimension."""
    key = _index(a, index)
    try:
        return apply_linked(a, Sliced((*key, None) if _is_full(a, key) else key))
    except IndexError:
        raise index_error(f"index {index!r} is outside an array of shape {a.shape}") from None


def reshape(a: array, shape: Any) -> array:
    """The same elements in another shape."""
    if _holds(shape, a.size):
        return apply_linked(a, Reshaped(shape, _reshaped))
    if shape.__class__ is int and shape == -1:
        return apply_linked(a, Reshaped((a.size,), _reshaped))
    dims = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    wild = [i for i, n in enumerate(dims) if n == -1]
    if len(wild) > 1:
        raise fail("E206", f"only one dimension can be left open with -1, got {shape}")
    total = math.prod(shape_from([1 if n == -1 else n for n in dims]))
    if wild:
        dims[wild[0]] = a.size // total if total else 0
        total *= dims[wild[0]]
    if total != a.size:
        raise fail(
            "E206", f"cannot reshape array of shape {a.shape} (size {a.size}) into shape "
            f"{tuple(dims)} (size {total})",
        )  # fmt: skip
    target = tuple(operator.index(n) for n in dims)
    return apply_linked(a, Reshaped(target, _reshaped))


def _holds(shape: Any, size: int) -> bool:
    """Whether a shape is written as it is kept, and has as many elements, more than none."""
    if shape.__class__ is not tuple or not 1 <= len(shape) <= MAX_DIMS:
        return False
    total = 1
    for n in shape:
        if n.__class__ is not int or n <= 0:
            return False
        total *= n
    return bool(total == size)


def _reshaped(v: Any, target: tuple[int, ...]) -> Any:
    """The same; raises LaunchError (E206)."""
    try:
        return reshaped(v, target)
    except ValueError:
        raise fail(
            "E206", f"an array with strides {v.strides} cannot be viewed as shape {target}",
            help="make it contiguous first: a.contiguous()",
        ) from None  # fmt: skip


def reshaped(v: Any, target: tuple[int, ...]) -> Any:
    """A view in another shape. Raises ValueError where strides forbid it: nothing is read."""
    if _RESHAPES:
        return v.reshape(target, copy=False)
    out = v.view()
    try:
        out.shape = target
    except AttributeError:
        raise ValueError from None
    return out


# NumPy 2.1 can be told to make no copy.
_RESHAPES = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def transpose(a: array, axes: Any) -> array:
    """The same elements with axes reordered."""
    order = None if axes is None else tuple(operator.index(i) for i in axes)
    if order is not None and sorted(order) != list(range(a.ndim)):
        raise fail("E206", f"axes {axes} are not a permutation of {a.ndim} dimensions")
    return apply_linked(a, Transposed(order))


def retyped(a: array, kind: ValueType) -> array:
    """The same memory as elements of another type of the same size."""
    if isinstance(a._ir.element, StructType):
        raise fail("E206", f"an array of {a.dtype.__name__} cannot be viewed as another type",
                   help="take its records with numpy()")  # fmt: skip
    operation = _regrouped(a, kind)
    out = apply(a, operation, kind)
    if scalar_of(kind) == scalar_of(a._ir) and is_float(kind):
        out._origin = (a, operation)
        out._flag = a._flag
    return out


def _regrouped(a: array, kind: ValueType) -> Operation:
    """What makes elements of another type of an array's. Raises LaunchError (E206)."""
    of, size = a._ir.element, a._ir.element.size
    if kind.size == size:
        return SAME
    inner, outer = shape_of(of), shape_of(kind)
    if inner and not outer and size == kind.size * math.prod(inner):
        scalar = np.dtype((np.void, kind.size))
        parts = np.dtype({"names": ["c"], "formats": [(scalar, inner)]})
        return lambda v: v.view(parts)["c"]
    n = len(outer)
    if not inner and outer and a.shape[-n:] == outer and kind.size == size * math.prod(outer):
        packed = tuple(size * math.prod(outer[k + 1 :]) for k in range(n))
        if a.strides[-n:] == packed and (a.ndim > n):
            return lambda v: _grouped(v, n, kind.size)
    raise fail(
        "E206", f"{a.dtype.__name__} elements of shape {a.shape} cannot be viewed as "
        f"{describe(kind)}",
        f"expected elements of {kind.size} bytes, or the components of one side by side in the "
        f"last dimensions, got {size} bytes",
    )  # fmt: skip


class _Lent:
    """What NumPy makes an array of. owner: what must live as long."""

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def _grouped(v: Any, n: int, size: int) -> Any:
    """Opaque elements whose last `n` dimensions are one element of `size` bytes."""
    interface = dict(v.__array_interface__)
    interface["shape"], interface["typestr"] = v.shape[:-n], f"|V{size}"
    interface["strides"] = v.strides[:-n]
    interface.pop("descr", None)
    return np.asarray(_Lent(v, interface))


class ExportError(LaunchError, BufferError):
    """An array that cannot be given away as it was asked for."""


def _not_given(message: str, help: str = "") -> ExportError:
    return ExportError(Diagnostic("E206", message, call_span(), help))


def to_dlpack(a: array, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A DLPack capsule of an array on the host, made by NumPy, which keeps the memory alive.

    Raises ExportError (E206), a LaunchError and a BufferError, for structs, memory that is
    read-only or goes backwards, and devices.
    """
    device = a.device
    if device.is_cpu and stream is not None and not (type(stream) is int and stream == -1):
        raise TypeError(f"DLPack stream must be None or -1 for CPU device, got {stream!r}")
    element = a._ir.element
    if isinstance(element, StructType):
        raise _not_given(f"there are no DLPack tensors of {a.dtype.__name__}",
                         "give away the fields of structs")  # fmt: skip
    asked = {}
    if not (max_version is None and dl_device is None and copy is None):
        asked = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    says_so = max_version is not None and tuple(max_version) >= (1, 0)
    if not (a.storage.writable or says_so or copy):
        raise _not_given("read-only memory cannot be given away by DLPack before version 1.0, "
                         "which cannot mark it",
                         "ask for max_version=(1, 0) or copy=True, or give away a copy: "
                         "clone(a)")  # fmt: skip
    if (
        not copy
        and a.size
        and any(n > 1 and s < 0 for n, s in zip(a.shape, a.strides, strict=True))
    ):
        # PyTorch ends the process at such a capsule, Paddle reads anything.
        raise _not_given("an array that goes backwards cannot be given away by DLPack: most "
                         "libraries cannot take it",
                         "ask for copy=True, or give away a copy: clone(a); NumPy takes a.numpy()"
                         )  # fmt: skip
    a._lend()
    if device.is_cuda:
        asked["stream"] = stream
    view = _exported(a) if device.is_cuda else a._fresh_view()
    halves = scalar_of(element) == BFLOAT16
    if halves and device.is_cpu:
        view = view.view(np.uint16)
    try:
        capsule = view.__dlpack__(**asked)
    except (BufferError, ValueError) as e:
        raise _not_given(f"the array cannot be given away by DLPack: {e}") from None
    if not copy:
        a.storage.expose_for_ever()
        known_as(a.storage, a.lo, a.hi - a.lo)
    if halves:
        capsules.rename(capsule, capsules.name_of(capsule), capsules.BFLOAT)
    return capsule


def _exported(a: array) -> Any:
    """An array as the library has it that computes on its device."""
    info = a._info
    shape, strides = a.shape + info.inner, a.strides + info.steps
    dtype = info.numpy if info.numpy.kind != "V" else np.dtype(f"u{info.numpy.itemsize}")
    return a.device.backend.export(a.storage, a._ptr, shape, strides, dtype)
