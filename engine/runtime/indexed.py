"""Indexed arrays: the elements of an array at chosen places, without a copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from engine.lang.generics import is_open
from engine.lang.numbers import number_kind
from engine.lang.stand_ins import StandIn
from engine.lang.structs import IndexedArrayType
from engine.lang.types import INT32
from engine.lang.values import to_element_type, value_class
from engine.runtime import events
from engine.runtime.annotation import MAX_DIMS, describe, dimensions
from engine.runtime.array import array
from engine.runtime.data import element_value
from engine.runtime.device import Device, DeviceLike, get_device
from engine.runtime.launch_errors import fail
from engine.runtime.operators import Operators
from engine.runtime.transfer import check_writable, remake

_numbers = count(1)  # one for each indexed array: what records of structs know it by


class indexedarray(Operators):
    """An array seen through arrays of indices, one for each dimension.

    Args:
        data: the array that holds the elements. Gradients flow to it.
        indices: for each dimension an array (or a list) of int32, or None for a dimension
            that is left as it is. Fewer than there are dimensions leave the last ones.
        dtype: checked against the data; without data, this is an annotation.
        ndim: the same for the number of dimensions.

    Raises LaunchError E206 for indices that do not fit.
    """

    __slots__ = ("__weakref__", "_ir", "_tables", "data", "dtype", "indices", "ndim", "number",
                 "shape", "size")  # fmt: skip

    data: array
    indices: list[array | None]
    shape: tuple[int, ...]

    def __new__(
        cls, data: Any = None, indices: Any = None, dtype: Any = None, ndim: int | None = None
    ) -> Any:
        if data is None and dtype is not None:
            return IndexedArrayAnnotation(dtype, ndim or 1)
        return object.__new__(cls)

    def __class_getitem__(cls, dtype: Any) -> Any:
        given = dtype if isinstance(dtype, tuple) else (dtype,)
        return IndexedArrayAnnotation(*given)

    def __init__(
        self, data: Any = None, indices: Any = None, dtype: Any = None, ndim: int | None = None
    ) -> None:
        if not isinstance(data, array):
            raise fail("E206", f"an indexed array needs an array, got {data!r}")
        if dtype is not None and to_element_type(dtype) != data._ir.element:
            raise fail("E206", "the dtype of an indexed array is that of its data",
                       f"expected {describe(data._ir.element)}, got {dtype!r}")  # fmt: skip
        if ndim is not None and ndim != data.ndim:
            raise fail("E206", f"expected {ndim} dimensions, got shape {data.shape}")
        given = _listed(indices)
        if len(given) > data.ndim:
            raise fail("E206", f"{len(given)} arrays of indices for an array of {data.ndim} "
                       f"dimension{'s' if data.ndim > 1 else ''}")  # fmt: skip
        given += [None] * (data.ndim - len(given))
        self.data = data
        self.indices = [_checked(i, n, d) for d, (i, n) in
                        enumerate(zip(given, data.shape, strict=True))]  # fmt: skip
        self._tables: list[array] | None = None
        self.shape = tuple(n if i is None else i.size for i, n in
                           zip(self.indices, data.shape, strict=True))  # fmt: skip
        self.ndim = data.ndim
        self.size = math.prod(self.shape)
        self.dtype = data.dtype
        self._ir = IndexedArrayType(data._ir.element, data.ndim)
        self.number = next(_numbers)

    @property
    def tables(self) -> list[array]:
        """The indices for every dimension, written out."""
        if self._tables is None:
            self._tables = [
                array(np.arange(n, dtype=np.int32), dtype=int) if i is None else i
                for i, n in zip(self.indices, self.data.shape, strict=True)
            ]
        return self._tables

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self.data.device

    @property
    def is_contiguous(self) -> bool:
        """False: elements may lie anywhere."""
        return False

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to the underlying array."""
        return self.data.requires_grad

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"indexedarray(shape={self.shape}, dtype={self.dtype.__name__})"

    def __str__(self) -> str:
        return str(self._gathered())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._gathered() if dtype is None else self._gathered().astype(dtype)

    def _places(self) -> tuple[np.ndarray[Any, Any], ...]:
        return np.ix_(*(t._host() for t in self.tables))

    def _gathered(self) -> np.ndarray[Any, Any]:
        return np.array(self.data._host()[self._places()])

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy of the elements that are seen."""
        return self._gathered()

    def list(self) -> list[Any]:
        """All elements in row-major order, as Python numbers or value objects."""
        found: list[Any] = self.contiguous().list()
        return found

    def contiguous(self) -> array:
        """An ordinary array with a copy of the elements. Recorded on a tape, as a launch."""
        out = array._allocate(self.shape, self.data._ir.element, False, self.data.device)
        out.requires_grad = self.data.requires_grad
        remake(out)
        self._copy_to(out)
        return out

    def _copy_to(self, dest: array) -> None:
        """Copies what is seen to an array of the same shape and type."""
        if self._noted(dest):
            from engine.runtime.indexed_copies import gather

            gather(dest, self)
            return
        check_writable(dest)
        dest.storage.before_write(dest.lo, dest.hi)
        dest._put(self._gathered())

    def _noted(self, other: array) -> bool:
        """Whether a tape or a captured graph has to know of a copy."""
        flows = self.data.requires_grad or other.requires_grad
        return events.graph() is not None or (flows and events.tape() is not None)

    def to(self, device: DeviceLike) -> Any:
        """This array."""
        get_device(device)
        return self

    def fill_(self, value: Any) -> None:
        """Sets every element that is seen to one value."""
        whole = array._allocate(self.shape, self.data._ir.element, False, self.data.device)
        whole._put(element_value(value, self.data._ir.element))
        self._copy_from(whole)

    def zero_(self) -> None:
        """Sets every element that is seen to zero."""
        self.fill_(0)

    def assign(self, src: Any) -> None:
        """Copies an array, NumPy array or list of the same shape to the elements that are seen."""
        if not isinstance(src, array):
            src = array(src, dtype=self.dtype, copy=None)
        if src.shape != self.shape:
            raise fail("E207", "the values do not fit the indexed array",
                       f"expected shape {self.shape}, got {src.shape}")  # fmt: skip
        self._copy_from(src)

    def _copy_from(self, src: array) -> None:
        """Copies an array of the same shape and type to what is seen."""
        if self._noted(src):
            from engine.runtime.indexed_copies import scatter

            scatter(self, src)
            return
        check_writable(self.data)
        self.store(src._host())

    def store(self, values: np.ndarray[Any, Any]) -> None:
        """Puts values where the elements are. Nobody is told of it."""
        self.data.storage.before_write(self.data.lo, self.data.hi)
        found = self.data._host()
        found[self._places()] = values
        if not self.data.device.backend.on_host:
            self.data._put(found)


def _listed(indices: Any) -> list[Any]:
    if indices is None:
        return []
    if isinstance(indices, (array, np.ndarray)):
        return [indices]
    if not isinstance(indices, Sequence):
        raise fail("E206", f"indices are a list with an array (or None) for each dimension, "
                   f"got {indices!r}")  # fmt: skip
    if indices and isinstance(indices[0], int) and all(isinstance(i, int) for i in indices):
        return [indices]
    return list(indices)


def _checked(indices: Any, length: int, dim: int) -> array | None:
    """The indices along one dimension as an array. Raises LaunchError (E206)."""
    if indices is None:
        return None
    if not isinstance(indices, array):
        found = np.asarray(indices)
        if number_kind(found.dtype) not in "iu":
            raise fail("E206", f"indices must be integers, got {indices!r}")
        indices = array(found.astype(np.int32), dtype=int)
    kind = indices._info.kind
    if (kind is not INT32 and kind != INT32) or indices.ndim != 1:
        raise fail("E206", f"the indices of dimension {dim} do not fit",
                   f"expected array(dtype=int32, ndim=1), got {describe(indices._ir)}")  # fmt: skip
    values = indices._host()
    if values.size and (values.min() < 0 or values.max() >= length):
        raise fail("E206", f"an index of dimension {dim} is outside of the array",
                   f"expected 0 to {length - 1}, got {values.min()} to {values.max()}")  # fmt: skip
    checked: array = indices
    return checked


class IndexedArrayAnnotation:
    """The type of an indexed array parameter. It takes attributes."""

    __ir_role__ = "indexedarray"

    def __init__(self, dtype: Any, ndim: int = 1) -> None:
        ndim = dimensions(ndim)
        if not isinstance(ndim, int) or not 1 <= ndim <= MAX_DIMS:
            raise fail("E206", f"an array has 1 to {MAX_DIMS} dimensions, got ndim={ndim!r}")
        self.dtype: Any = dtype
        self.ndim = ndim
        self.__ir_type__: IndexedArrayType | None = None
        # Of any type the call decides; of one that is not here, its use says so.
        if not is_open(dtype) and not isinstance(dtype, StandIn):
            element = to_element_type(dtype)
            self.dtype = value_class(element)
            self.__ir_type__ = IndexedArrayType(element, ndim)

    def __repr__(self) -> str:
        name = getattr(self.dtype, "__name__", str(self.dtype))
        return f"indexedarray(dtype={name}, ndim={self.ndim})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, IndexedArrayAnnotation) and self.dtype is other.dtype
        return same and self.ndim == other.ndim  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.dtype, self.ndim))

    def __or__(self, other: object) -> Any:
        return self

    __ror__ = __or__


class _OfDim:
    """`indexedarray2d` and its like."""

    def __init__(self, ndim: int) -> None:
        self.ndim = ndim
        self.__name__ = f"indexedarray{ndim}d"
        self.__doc__ = f"An indexed array, or an annotation for one, of {ndim} dimension(s)."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["ndim"] = self.ndim
        return indexedarray(*args, **kwargs)

    def __getitem__(self, dtype: Any) -> IndexedArrayAnnotation:
        return IndexedArrayAnnotation(dtype, self.ndim)

    def __repr__(self) -> str:
        return self.__name__


indexedarray1d, indexedarray2d, indexedarray3d, indexedarray4d = (_OfDim(n) for n in range(1, 5))
