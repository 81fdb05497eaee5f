"""Facts about an array that outlive it: its place in memory, not its content."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from engine.classes import NamedTuple
from engine.runtime.annotation import ElementInfo
from engine.runtime.array import array


class Key(NamedTuple):
    """Equal for arrays of the same elements, as long as they live. root: see `root_of`."""

    root: int
    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    nbytes: int


class Outline:
    """Stands for an array among the arguments of a captured launch. Keeps no memory alive.

    Addresses tell which arguments of one launch share memory; another launch may have
    had other arrays there.
    """

    _whole = None

    __slots__ = ("__weakref__", "_array", "_flag", "_geometry", "_info", "_key", "_packed",
                 "hi", "lo", "ptr", "root", "shape", "size", "strides")  # fmt: skip

    def __init__(self, a: array) -> None:
        self.ptr: int = a._ptr
        self.lo: int = a.lo
        self.hi: int = a.hi
        self.shape: tuple[int, ...] = a.shape
        self.strides: tuple[int, ...] = a.strides
        self.size: int = a.size
        self._info: ElementInfo = a._info
        self._packed = a._packed
        self._flag = a.requires_grad
        self.root = root_of(a)
        # A field of structs lives no longer than its record: the array of structs may.
        whole = a._whole
        self._array = weakref.ref(a if whole is None else whole)
        self._key = None if whole is None else key_of(whole)
        self._geometry: np.ndarray[Any, Any] | None = None

    @property
    def key(self) -> Key:
        """The key of the array; of the array of structs for a field of one."""
        if self._key is None:
            info, place = self._info, (self.ptr, self.shape, self.strides)
            self._key = Key(self.root, *place, info.dtype.__name__, self.size * info.size)
        return self._key

    @property
    def requires_grad(self) -> bool:
        """Whether the array required a gradient at record, or at a later look while it lived."""
        if not self._flag:
            a = self._array()
            self._flag = a is not None and a.requires_grad and self._info.floating
        return self._flag

    @property
    def dtype(self) -> type:
        """The element type."""
        return self._info.dtype

    def extent(self) -> tuple[int, int]:
        """The range of addresses that the elements took up; the end is exclusive."""
        return self.lo, self.hi

    @property
    def _parts(self) -> np.ndarray[Any, Any]:
        """The geometry as NumPy has it, components last. Its elements must not be read."""
        if self._geometry is None:
            out = np.asarray(_Addresses(self))
            self._geometry = out if self._info.numpy.kind != "V" else out.view(self._info.numpy)
        return self._geometry

    def blank(self) -> np.ndarray[Any, Any]:
        """Zeros in the array's shape, components last."""
        return np.zeros(self.shape + self._info.inner, self._info.numpy)


class _Addresses:
    """Addresses for NumPy to compute with."""

    __slots__ = ("__array_interface__",)

    def __init__(self, o: Outline) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": o.shape + o._info.inner,
            "strides": o.strides + o._info.steps,
            "typestr": np.dtype(o._info.numpy).str,
            "data": (o.ptr, True),
        }


def root_of(a: array | Outline) -> int:
    """A number for the memory of an array's gradient: views share that of what they view.

    It means something as long as the array lives; those on a tape do.
    """
    return a.root if isinstance(a, Outline) else id(root_array(a))


def root_array(a: array) -> array:
    """The array that a view is a view of, and in whose gradient its own lies."""
    while a._origin is not None:
        a = a._origin[0]
    return a


def key_of(a: array | Outline) -> Key:
    """The key of an array; of the array of structs for a field of one."""
    if isinstance(a, Outline):
        return a.key
    a = a._whole or a
    info = a._info
    return Key(root_of(a), a.ptr, a.shape, a.strides, info.dtype.__name__, a.size * info.size)


def outline(a: array) -> Outline:
    """The outline of an array as it is now; one for all launches that the array takes part in."""
    found: Outline | None = a._outline
    if found is None or found._flag != a.requires_grad:
        found = a._outline = Outline(a)
    return found
