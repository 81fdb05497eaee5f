"""The memory, geometry and gradient of an array, which `array` builds on."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from engine import config, hooks
from engine.accelerator import accelerator
from engine.classes import Protocol
from engine.compile.cpu import CPU, FEW
from engine.lang import strided
from engine.lang.strided import ADDRESSES, byte_range, row_major
from engine.lang.structs import ElementType
from engine.logger import log_warning
from engine.runtime import data as d
from engine.runtime import events, views
from engine.runtime.annotation import ElementInfo, element_info
from engine.runtime.device import HOST, Device
from engine.runtime.guards import in_one_place
from engine.runtime.launch_errors import fail
from engine.runtime.storage import Storage, allocate

if TYPE_CHECKING:
    from engine.runtime.array import array

_MODELS = 256  # shapes of one type of elements

# An array as kernels read it, by its dimensions: address, shape, byte strides.
HEADER = {n: struct.Struct(f"<Q{2 * n}q").pack for n in range(1, 5)}


@lru_cache(maxsize=4096)
def _geometry(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, int, bool, int, int]:
    """Dimensions, elements, whether these are contiguous, and the bytes that they take up, from

    the address of the first on. Raises LaunchError (E206) for an extent or a stride that is too
    large.
    """
    d.check_extents(shape)
    if any(not -ADDRESSES <= s < ADDRESSES for s in strides):
        raise fail("E206", f"strides {strides} of an array do not fit into 64 bits",
                     help="make the shape smaller")  # fmt: skip
    size = math.prod(shape)
    if size == 0 or strides == row_major(shape, itemsize):
        return len(shape), size, True, 0, size * itemsize
    return len(shape), size, False, *byte_range(0, shape, strides, itemsize)


@lru_cache(maxsize=4096)
def _side_by_side(shape: tuple[int, ...], itemsize: int) -> tuple[tuple[int, ...] | None, int]:
    """Strides and bytes of a contiguous array; no strides for more than memory could hold.

    Raises LaunchError (E206) for an extent that is too large.
    """
    d.check_extents(shape)
    nbytes = math.prod(shape) * itemsize
    return (None if nbytes >= 1 << 62 else row_major(shape, itemsize)), nbytes


class ArrayBase:
    """Elements at an address, a shape and byte strides; and a gradient of the same shape.

    storage: the memory. _ptr: address of element 0. lo, hi: the range of addresses that
    the elements take up. _packed: the array as kernels read it.
    """

    __slots__ = (
        "__weakref__",
        "_flag",
        "_grad",
        "_grad_view",
        "_info",
        "_interface",
        "_ir",
        "_origin",
        "_outline",
        "_own_view",
        "_packed",
        "_ptr",
        "_retain",
        "_shared",
        "_whole",
        "dtype",
        "hi",
        "is_contiguous",
        "lo",
        "ndim",
        "shape",
        "size",
        "storage",
        "strides",
    )  # fmt: skip

    retains: ClassVar[bool] = False  # whether an array was ever made to: else nobody need look

    dtype: type
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    ndim: int
    size: int
    _ptr: int
    lo: int
    hi: int
    is_contiguous: bool
    _retain: bool
    storage: Storage
    _flag: bool
    _grad: array | None
    _grad_view: tuple[array, array] | None
    _packed: bytes
    _own_view: d.NumpyArray | None
    # What tapes keep of it after it is gone: see `engine.tape.outline`.
    _outline: Any
    _info: ElementInfo
    # `__array_interface__`, once it was asked for.
    _interface: dict[str, Any] | None
    _ir: Any  # an ArrayType or StructArrayType
    # What gives it the gradient of another library's array, asked each time (`engine.interop`).
    _shared: Any
    # The array of structs that this is one field of.
    _whole: array | None
    # The view that a view's gradient is taken with: (parent, operation on void-typed NumPy).
    _origin: tuple[array, Callable[[Any], Any]] | None

    @property
    def ptr(self) -> int:
        """The address of the first element. Whoever asks may write there, and nobody would know."""
        self.storage.tell_address()
        return self._ptr

    # ---- construction

    def _new(
        self, dims: tuple[int, ...], kind: ElementType, zero: bool, device: Device,
        pinned: bool = False,
    ) -> None:  # fmt: skip
        info = element_info(kind)
        strides, nbytes = _side_by_side(dims, info.size)
        if strides is None:  # told with the words for this type
            d.check_size(dims, kind)
        assert strides is not None
        storage = allocate(nbytes, zero, device, pinned)
        self._set(storage, storage.lo, dims, strides, kind)

    def _set(
        self,
        storage: Storage,
        ptr: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        kind: ElementType,
    ) -> None:
        info = self._info = element_info(kind)
        self.storage, self._ptr, self.shape, self.strides = storage, ptr, shape, strides
        n, self.size, self.is_contiguous, lo, hi = _geometry(shape, strides, info.size)
        self.ndim, self.lo, self.hi = n, ptr + lo, ptr + hi
        self._ir = info.arrays[n]
        self.dtype = info.dtype
        self._packed = HEADER[n](ptr, *shape, *strides)
        self._own_view = self._outline = self._interface = None
        self._retain = self._flag = False
        self._grad = self._grad_view = None
        self._origin = None
        self._whole = self._shared = None

    @property
    def _parts(self) -> d.NumpyArray:
        """A NumPy view for the package's own use, component axes last."""
        if self._own_view is None:
            self._own_view = self._fresh_view()
        return self._own_view

    def _host(self) -> d.NumpyArray:
        """The elements as NumPy has them: a view on the host, a copy from another device."""
        return self.device.backend.to_host(self._parts)

    def _put(self, values: Any) -> None:
        """Writes NumPy values, which are broadcast. Nobody is told: see `Storage.before_write`."""
        self.device.backend.put(self._parts, values)
        if self._info.linked:
            from engine.runtime.links import keep

            keep(self)

    def _put_first(self, element: d.NumpyArray) -> None:
        """Writes one value to all elements of a new array, of which nobody has a view yet."""
        nbytes = self.hi - self.lo
        if (
            0 < nbytes <= FEW
            and self.is_contiguous
            and self.device is HOST
            and not self._info.opaque
        ):
            CPU.write(self.lo, element.tobytes() * (nbytes // element.nbytes))
        else:
            self._put(element)

    def _fresh_view(self) -> d.NumpyArray:
        """A new NumPy array over the elements, component axes last."""
        info, storage = self._info, self.storage
        out: d.NumpyArray = storage.device.backend.view(
            storage, self._ptr, self.shape + info.inner if info.inner else self.shape,
            None if self.is_contiguous else self.strides + info.steps, info.typestr,
            storage.writable,
        )  # fmt: skip
        return out.view(info.numpy) if info.opaque else out

    @classmethod
    def _make(
        cls,
        storage: Storage,
        ptr: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        kind: ElementType,
    ) -> array:
        out: Any = object.__new__(cls)
        out._set(storage, ptr, shape, strides, kind)
        return out  # type: ignore[no-any-return]

    @classmethod
    def _allocate(
        cls, dims: tuple[int, ...], kind: ElementType, zero: bool, device: Device,
        pinned: bool = False,
    ) -> array:  # fmt: skip
        out: Any = object.__new__(cls)
        out._new(dims, kind, zero, device, pinned)
        if accelerator.needs_models and device is HOST:
            out._note()
        return out  # type: ignore[no-any-return]

    def _note(self) -> None:
        """Remembers the geometry of an array that was just made, for others like it."""
        models = self._info.models
        if self.shape in models:
            return
        if len(models) >= _MODELS:
            models.clear()
        model: Any = object.__new__(type(self))
        for name in ArrayBase.__slots__[1:]:
            setattr(model, name, getattr(self, name))
        model.storage, model._ptr, model.lo, model.hi = None, 0, 0, self.hi - self.lo
        model._packed = HEADER[self.ndim](0, *self.shape, *self.strides)
        models[self.shape] = model

    def _field(self, info: ElementInfo, offset: int) -> array:
        """One field of the elements, `offset` bytes into each, without a link to its gradient."""
        out: Any = object.__new__(type(self))
        out.storage, out._ptr, out.shape, out.strides = (
            self.storage, self._ptr + offset, self.shape, self.strides,
        )  # fmt: skip
        out.ndim, out.size, out._info, out.dtype = self.ndim, self.size, info, info.dtype
        out._ir = info.arrays[self.ndim]
        out.is_contiguous = self.size == 0
        after = self._info.size - offset - info.size  # in the last element
        out.lo, out.hi = (self.lo + offset, self.hi - after) if self.size else (out._ptr, out._ptr)
        out._packed = HEADER[self.ndim](out._ptr, *self.shape, *self.strides)
        out._own_view = out._outline = out._grad = out._grad_view = out._origin = None
        out._interface = None
        out._shared = None
        out._retain = out._flag = False
        out._whole = self
        return out  # type: ignore[no-any-return]

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self.storage.device

    @property
    def pinned(self) -> bool:
        """Whether this is page-locked memory of the host, which only GPUs have a use for."""
        return bool(getattr(self.storage.owner, "pinned", False))

    def extent(self) -> tuple[int, int]:
        """The range of addresses that the elements take up; the end is exclusive."""
        return self.lo, self.hi

    # ---- gradients

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this array; setting False drops the gradient.

        Setting it True means nothing where elements are no floats, and warns (UserWarning).
        """
        if self._flag and self._origin is not None:
            return self._origin[0].requires_grad
        return self._flag

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not self._info.floating:
            if config.integers == "strict":
                _warn_of_integers(self.dtype)
            return
        if value and self._origin is not None and not self._origin[0].requires_grad:
            self._origin = None
        self._flag = bool(value)
        if value:
            hooks.prepare_gradients()
        else:
            self._grad = self._grad_view = self._shared = None
            self._retain = False

    @property
    def retain_grad(self) -> bool:
        """Whether the gradient is kept by backward passes that consume it.

        Setting it raises LaunchError (E206) for an array that requires no gradient.
        """
        return self._retain

    @retain_grad.setter
    def retain_grad(self, value: bool) -> None:
        if value and not self._flag:
            raise fail("E206", "there is no gradient that could be retained",
                       help="set requires_grad first")  # fmt: skip
        if value:
            ArrayBase.retains = True
        self._retain = bool(value)

    @property
    def grad(self) -> array | None:
        """The gradient: an array of the same shape and dtype, None without requires_grad.

        Made (as zeros) when first asked for. A slice's gradient is a view of its
        parent's.
        """
        if not self._flag:
            if events.everywhere:
                events.asked(self)  # type: ignore[arg-type]
            return None
        if self._grad is None:
            if self._shared is not None:
                return self._shared.of(self)  # type: ignore[no-any-return]
            if self._origin is not None:
                return self._view_of_grad(*self._origin)
            self._grad = type(self)._allocate(
                self.shape, self._ir.element, True, self.device, self.pinned
            )
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is None:
            self.requires_grad = False
            return
        if not isinstance(value, ArrayBase):
            make: Any = type(self)
            value = make(value, dtype=self.dtype, copy=None)
        if value.shape != self.shape or value._ir.element != self._ir.element:
            raise fail(
                "E206", "the gradient does not fit the array",
                f"expected shape {self.shape} of {self.dtype.__name__}, "
                f"got {value.shape} of {value.dtype.__name__}",
            )  # fmt: skip
        if not value.storage.writable:
            raise fail("E206", "a gradient cannot be in read-only memory: backward passes write it",
                       help="pass a copy: clone(grad)")  # fmt: skip
        if in_one_place(value):  # as that of a sum in PyTorch: it can be read, not added to
            given = value
            value = type(self)._allocate(self.shape, self._ir.element, False, self.device)
            value._put(given._host())
        if not self._info.floating:
            if config.integers == "lenient":
                return
            raise fail("E206", f"elements of type {self.dtype.__name__} have no gradient",
                       help="gradients are of floats")  # fmt: skip
        self.requires_grad = True
        self._origin = None
        if self._shared is not None:
            self._shared.put(self, value)
        else:
            self._grad = value

    @property
    def existing_grad(self) -> array | None:
        """The gradient if it has been made already."""
        if self._shared is not None and self._grad is None:
            return self._shared.of(self, make=False)  # type: ignore[no-any-return]
        if self._origin is not None and self._grad is None and self._flag:
            return None if self._origin[0].existing_grad is None else self.grad
        return self._grad

    def _view_of_grad(self, parent: array, operation: Callable[[Any], Any]) -> array | None:
        whole = parent.grad
        if whole is None:
            return None
        if self._grad_view is None or self._grad_view[0] is not whole:
            self._grad_view = (whole, views.apply(whole, operation, self._ir.element))
        return self._grad_view[1]


def _warn_of_integers(dtype: type) -> None:
    log_warning(
        f"requires_grad has no effect here: elements of type {dtype.__name__} have no gradient"
    )


class Placed(Protocol):
    """What has elements at addresses: an array, or the outline of one."""

    @property
    def ptr(self) -> int: ...
    @property
    def lo(self) -> int: ...
    @property
    def hi(self) -> int: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def _info(self) -> ElementInfo: ...


def may_meet(a: Placed, b: Placed) -> bool:
    """Whether an element of one may share memory with one of the other; False is certain."""
    if a.lo >= b.hi or b.lo >= a.hi:
        return False  # as nearly all do
    return strided.may_meet(elements_of(a), elements_of(b))


def elements_of(a: Placed) -> strided.Elements:
    """Where elements lie."""
    at = a._ptr if isinstance(a, ArrayBase) else a.ptr  # of which nobody else is told
    return strided.Elements(at, a.lo, a.hi, a.strides, a._info.size)
