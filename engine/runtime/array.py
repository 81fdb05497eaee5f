"""The array: a strided view of elements in shared memory, with a gradient beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.lang import types as t
from engine.lang.strided import row_major
from engine.lang.structs import ElementType, StructType
from engine.lang.values import to_element_type, to_value_type
from engine.lang.vectors import vector_class
from engine.runtime import cuda_interface, events, links, reads, transfer, views
from engine.runtime import data as d
from engine.runtime.adopted import adopt, known_memory, wrap
from engine.runtime.annotation import MAX_DIMS, ArrayAnnotation, element_info
from engine.runtime.base import ArrayBase
from engine.runtime.device import HOST, Device, DeviceLike, get_device
from engine.runtime.launch_errors import fail
from engine.runtime.operators import Operators
from engine.runtime.placement import SAME


class array(ArrayBase, Operators):
    """1 to 4 dimensions of scalars, vectors, matrices or structs. Equality is identity.

    Args:
        data: a (nested) list, a NumPy array, anything with `__array_interface__` or
            `__dlpack__`, or another array. Vectors and matrices come from data with
            their components in the last axes; structs from lists of values or records.
        dtype: the element type; taken from the data where left out (float64 for
            Python floats, int64 for Python ints).
        shape: an int or a tuple; the data is reshaped to it.
        requires_grad: whether gradients flow to it. Float elements only.
        retain_grad: whether its gradient is kept by backward passes that consume it.
        copy: False shares the memory of data that has any; where it cannot be (another type or
            order of bytes, components that lie apart), it is copied with a warning. None shares
            it where it can be, and copies it else.
        ptr, strides: an address (and byte strides) of memory that the caller owns.
        ndim: checked against the data.
        grad: an array to use as gradient.

    Without data, shape and ptr, `array(dtype=...)` is an annotation for a parameter.

    Raises LaunchError E206 for data, shape or dtype that do not fit, E208 for an
    unknown device, E209 when memory runs out.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any = None, dtype: Any = None, shape: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if data is None and shape is None and kwargs.get("ptr") is None and dtype is not None:
            ndim = kwargs.get("ndim")
            return ArrayAnnotation(dtype, 1 if ndim is None else ndim)
        return object.__new__(cls)

    def __init__(
        self,
        data: Any = None,
        dtype: Any = None,
        shape: Any = None,
        strides: tuple[int, ...] | None = None,
        ptr: int | None = None,
        capacity: int | None = None,
        device: DeviceLike = None,
        pinned: bool = False,
        copy: bool | None = True,
        ndim: int | None = None,
        grad: array | None = None,
        requires_grad: bool = False,
        retain_grad: bool = False,
    ) -> None:
        del capacity  # of the memory that `ptr` names, which is none of ours
        place = get_device(device)
        kind = None if dtype is None or dtype is Any else to_element_type(dtype)
        dims = None if shape is None else d.shape_from(shape)
        if data is not None:
            self._from_data(data, kind, dims, copy, place, pinned)
        elif dims is None or kind is None:
            missing = "a dtype" if dims is not None else "data or a shape"
            raise fail("E206", f"an array needs {missing}")
        elif ptr is not None:
            steps = row_major(dims, kind.size) if strides is None else d.steps(strides, dims)
            ptr = d.address_from(ptr)
            lo, hi = d.check_place(ptr, dims, steps, kind)
            self._set(adopt(None, lo, hi - lo, device=place), ptr, dims, steps, kind)
        else:
            self._new(dims, kind, False, place, pinned)
        if ndim is not None and ndim != self.ndim:
            if self.size == 0 and self.ndim == 1 and dims is None:
                self._new(d.shape_from((0,) * ndim), self._ir.element, False, place)
                ndim = self.ndim
        if ndim is not None and ndim != self.ndim:
            raise fail("E206", f"expected {ndim} dimensions, got shape {self.shape}")
        if grad is not None:
            self.grad = grad
        elif requires_grad:
            self.requires_grad = True
        if retain_grad:
            self.retain_grad = True
        if events.everywhere:
            events.tell("made", self)

    def __class_getitem__(cls, dtype: Any) -> Any:
        return ArrayAnnotation(*dtype) if isinstance(dtype, tuple) else ArrayAnnotation(dtype)

    # ---- construction

    def _from_data(
        self, data: Any, kind: ElementType | None, dims: tuple[int, ...] | None, copy: bool | None,
        device: Device, pinned: bool,
    ) -> None:  # fmt: skip
        if not copy and dims is None and data.__class__ is np.ndarray and device is HOST:
            wanted = kind or d.SCALARS.get(data.dtype)
            info = None if wanted is None else element_info(wanted)
            fits = info is not None and info.numpy is data.dtype and not info.inner
            if info is not None and fits and 0 < data.ndim <= MAX_DIMS and data.flags.aligned:
                address = data.__array_interface__["data"][0]
                storage = wrap(data, address=address)
                self._set(storage, address, data.shape, data.strides, info.kind)
                return
        if isinstance(data, array):
            kind = kind or data._ir.element
            if data.device == device is not HOST and self._from_there(data, kind, dims, copy):
                return
            events.reading((data,))
            data = data.device.backend.to_host(data._parts)
        elif kind is None:
            kind = d.struct_in(data)
        found = d.to_numpy(data, kind)
        kind = kind or t.BY_NAME[found.dtype.name]
        parts, dims = d.as_elements(found, kind, dims)
        inner = parts.strides[len(dims) :]
        packed = inner == row_major(d.inner_shape(kind), parts.itemsize)
        if not copy and packed and device.backend.on_host and d.shows(parts, kind):
            if copy is False and not d.same_memory(parts, data):
                d.warn_of_copy(data, kind, device)
            address = parts.__array_interface__["data"][0]
            storage = wrap(parts, address=address)
            self._set(storage, address, dims, parts.strides[: len(dims)], kind)
            if self._info.linked:
                links.keep(self)
        else:
            self._new(dims, kind, False, device, pinned)
            if copy is False and parts.size and not isinstance(data, (list, tuple)):
                d.warn_of_copy(data, kind, device)
            if events.everywhere and isinstance(parts, np.ndarray) and known_memory(parts):
                source = type(self)(parts, dtype=self.dtype, shape=dims, copy=False)
                if events.everywhere:
                    events.tell("copied", self, source, False, False)
            self._put(parts)
            if events.graph() is not None:
                transfer.remake(self, np.array(parts))

    def _from_there(
        self, data: array, kind: ElementType, dims: tuple[int, ...] | None, copy: bool | None
    ) -> bool:
        """Takes an array of the same device, not the host, where that can be done as it is."""
        info = data._info
        if info.linked or kind != info.kind or dims not in (None, data.shape):
            return False
        if not copy:
            self._set(data.storage, data._ptr, data.shape, data.strides, kind)
            return True
        if events.graph() is not None:
            return False
        self._new(data.shape, kind, False, data.device)
        events.reading((data,))
        if events.everywhere:
            events.tell("copied", self, data, False, False)
        transfer.move(self, data)
        return True

    # ---- what it is

    @property
    def capacity(self) -> int:
        """Bytes from the first element to the end of the last."""
        return self.hi - self.lo

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"array(shape={self.shape}, dtype={self.dtype.__name__})"

    def __str__(self) -> str:
        self._lend()
        return str(self._parts)

    # ---- host access

    def numpy(self) -> d.NumpyArray:
        """The elements as NumPy has them; components last, structs as records.

        On the CPU it is a writable view without a copy.
        """
        if events.everywhere:
            self._lend()
        out = self._fresh_view()
        backend = self.storage.device.backend
        if not backend.on_host:
            return backend.to_host(out)
        # Records are seen through a view, and users' views of that hold on to what is below.
        seen: Any = out.base if self._info.opaque else out
        self.storage.expose(seen)
        return out

    def _lend(self, part: array | None = None) -> None:
        """To be called before user code reads it, or just a part of it."""
        events.tell("lent", self)
        events.tell("reading", (self if part is None else part,), True)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        info, storage = self._info, self.storage
        if (
            self._interface is not None and storage.external and storage._hold is None
            and not events.everywhere
        ):  # fmt: skip
            return self._interface  # nobody has to be told
        if (info.opaque and info.numpy.names is None) or not storage.device.is_cpu:
            # NumPy asks __array__ then, which has the word that the interface has not.
            raise AttributeError("there is no array interface of bfloat16, or of memory of a GPU: "
                                 "call numpy()")  # fmt: skip
        if events.everywhere:
            self._lend()
        storage.expose_for_ever()
        if info.opaque:
            return dict(self._parts.__array_interface__)
        found = self._interface = {
            "version": 3,
            "shape": self.shape + info.inner if info.inner else self.shape,
            "typestr": info.typestr,
            "data": (self._ptr, not storage.writable),
            "strides": None if self.is_contiguous else self.strides + info.steps,
        }
        return found

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return cuda_interface.exported(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> d.NumpyArray:
        """As NumPy asks for it: a view, or a copy where `copy` or another dtype wants one.

        Raises ValueError where another dtype would need a copy and `copy` is False.
        """
        return d.for_numpy(self.numpy(), dtype, copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """A DLPack capsule of the memory. Raises LaunchError (E206) for structs and devices."""
        return views.to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.storage.device
        return (1, 0) if device.is_cpu else (2, device.ordinal)  # as DLPack counts

    def list(self) -> list[Any]:
        """All elements in row-major order, as Python numbers or value objects."""
        self._lend()
        inner = self._info.inner
        if isinstance(self._ir.element, t.ScalarType):
            return list(self._parts.ravel().tolist())
        if isinstance(self._ir.element, StructType):
            return [links.from_record(self._ir.element, e) for e in self._parts.ravel()]
        make = vector_class(self._ir.element)._of
        return [make(e) for e in self._parts.reshape((self.size, *inner))]

    def __getitem__(self, index: Any) -> Any:
        """A view for slices and partial indices; the element's value for a full index.

        Arrays of indices (`a[i]`, `a[i, :, j]`) give an indexed array.
        """
        if not views.is_plain(index):
            parts = index if isinstance(index, tuple) else (index,)
            if any(isinstance(p, array) for p in parts):
                return views.indexed(self, parts)
        out = views.sliced(self, index)
        if not isinstance(out, np.ndarray):
            return out
        if events.everywhere:
            self._lend(views.kept(self, index))
        return self._element(out)

    def _element(self, value: d.NumpyArray) -> Any:
        if isinstance(self._ir.element, StructType):
            return links.from_record(self._ir.element, value)
        kind = self._ir.element
        return value.item() if isinstance(kind, t.ScalarType) else vector_class(kind)._of(value)

    def __setitem__(self, index: Any, value: Any) -> None:
        transfer.store(views.kept(self, index), value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def assign(self, src: Any) -> None:
        """Copies `src` (an array, NumPy array or list) here. Recorded, and differentiable."""
        transfer.assign(self, src)

    def fill_(self, value: Any) -> None:
        """Sets every element. On a tape, no gradient passes to what was there before."""
        transfer.fill(self, value, "fill_")

    def zero_(self) -> None:
        """Sets every element to zero. On a tape, no gradient passes to what was there before."""
        transfer.zero(self)

    def detach(self) -> array:
        """The same as `stop_gradient` of it: a copy that is a constant to what reads it."""
        return transfer.stop_gradient(self)

    def __ctype__(self) -> Any:
        """The array as C sees it: a structure with its address, shape and strides."""
        from engine.runtime.descriptors import ctype_of

        self._lend()
        self.storage.expose_for_ever()
        return ctype_of(self)

    def cptr(self) -> Any:
        """A C pointer to the first element, None of an empty array; see `array.__ctype__`.

        Raises LaunchError (E206) for an array that is not contiguous, or not on the CPU.
        """
        from engine.runtime.descriptors import pointer_to

        return pointer_to(self)

    # ---- who read and wrote it (`config.verify_autograd_array_access`)

    @property
    def _is_read(self) -> bool:
        return reads.is_read(self)

    def mark_init(self) -> None:
        """Forgets that launches have read it."""
        reads.unmark(self)

    def mark_read(self) -> None:
        """Notes that an operation given to `Tape.record_func` reads the array."""
        reads.mark_read(self)

    def mark_write(self, **place: Any) -> None:
        """Notes that such an operation writes it: warns (UserWarning) if a launch has read it.

        place: for the warning's text, `arg_name`, `kernel_name`, `filename` and `lineno`, or
        `operation`, `filename` and `lineno`.
        """
        if not reads.is_read(self):
            return
        who, at = "is being written to", ""
        if {"filename", "lineno"} <= place.keys():
            at = f" at {place['filename']}:{place['lineno']}"
        if {"arg_name", "kernel_name"} <= place.keys() and at:
            who = (
                f"passed to argument {place['arg_name']} in kernel {place['kernel_name']}{at} is "
                "being written to"
            )
        elif "operation" in place and at:
            who = f"is being written to by {place['operation']}{at}"
        reads.warn(self, who)

    # ---- views

    def reshape(self, shape: Any) -> array:
        """The same elements in another shape (-1 is worked out). Raises E206 if strides forbid."""
        return views.reshape(self, shape)

    def flatten(self) -> array:
        """The same elements in one dimension."""
        return views.reshape(self, -1)

    def transpose(self, axes: Any = None) -> array:
        """The same elements with axes reversed, or reordered as `axes` says."""
        return views.transpose(self, axes)

    def view(self, dtype: Any) -> array:
        """The same memory read as another type of the same size, or as its components.

        Vectors and matrices become scalars with further dimensions, and the other way round.
        Gradients are shared where both consist of the same floats. Raises LaunchError (E206).
        """
        return views.retyped(self, to_value_type(dtype))

    def contiguous(self) -> array:
        """This array if its elements are contiguous, else a contiguous copy."""
        return self if self.is_contiguous else transfer.clone(self)

    def to(self, device: DeviceLike, requires_grad: bool | None = None) -> array:
        """This array, or a copy on another device."""
        place = get_device(device)
        if place is self.storage.device or place == self.device:
            return self
        return transfer.clone(self, place, requires_grad)

    # ---- copies

    def __copy__(self) -> array:
        return views.apply_linked(self, SAME)

    def __deepcopy__(self, memo: dict[int, Any]) -> array:
        out = _rebuild(self._ir.element, self._host_copy(), self._flag, self.retain_grad,
                       self._saved(), self.device.alias)  # fmt: skip
        memo[id(self)] = out
        return out

    def __reduce__(self) -> Any:
        if self._info.linked:
            raise fail("E206", f"an array of {self.dtype.__name__} cannot be pickled: its elements "
                       "hold arrays")  # fmt: skip
        state = (self._ir.element, self._host_copy(), self._flag, self.retain_grad,
                 self._saved(), self.device.alias)  # fmt: skip
        return (_rebuild, state)

    def _saved(self) -> d.NumpyArray | None:
        grad = self.grad
        return None if grad is None else grad._host_copy()

    def _host_copy(self) -> d.NumpyArray:
        return np.array(self.device.backend.to_host(self._parts))


def _rebuild(
    kind: ElementType, parts: d.NumpyArray, flag: bool, retain: bool, grad: d.NumpyArray | None,
    device: str,
) -> array:  # fmt: skip
    place = get_device(device)
    shape = parts.shape[: parts.ndim - len(d.inner_shape(kind))]
    out = array._allocate(shape, kind, False, place)
    out._put(parts)
    if flag:
        out.requires_grad = True
        out.retain_grad = retain
        if grad is not None and out.grad is not None:
            place.backend.put(out.grad._parts, grad)
    return out


class _OfDim:
    """`array2d` and its like: `array` with the number of dimensions fixed."""

    def __init__(self, ndim: int) -> None:
        self.ndim = ndim
        self.__name__ = f"array{ndim}d"
        self.__doc__ = f"An array, or an annotation for one, of {ndim} dimension(s)."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["ndim"] = self.ndim
        return array(*args, **kwargs)

    def __getitem__(self, dtype: Any) -> ArrayAnnotation:
        return ArrayAnnotation(dtype, self.ndim)

    def __repr__(self) -> str:
        return self.__name__


array1d, array2d, array3d, array4d = (_OfDim(n) for n in range(1, 5))
