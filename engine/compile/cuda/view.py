"""Arrays of a GPU as data: where their elements lie, and which backend moves them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.compile.cuda import Cuda


class _Addresses:
    """Addresses of a device, for NumPy to compute with."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def geometry(
    address: int, shape: Sequence[int], strides: Sequence[int] | None, dtype: Any, writable: bool
) -> NDArray[Any]:
    """Where elements lie, as an array of NumPy. Its elements must not be read or written."""
    kind = np.dtype(dtype)
    found = np.asarray(
        _Addresses({
            "version": 3, "shape": tuple(shape), "typestr": kind.str,
            "data": (address, not writable), "strides": None if strides is None else tuple(strides),
        })
    )  # fmt: skip
    # Types that NumPy has not itself are bytes to that interface.
    return found if found.dtype == kind else found.view(kind)


class View:
    """Memory of a GPU as an array.

    Slices, fields and other shapes are views of the same memory. What computes with it gets a copy
    on the host; what writes into it writes the device's memory. lies: its geometry.
    """

    __slots__ = ("__weakref__", "_address", "backend", "lies", "owner")
    __array_priority__ = 1000.0

    def __init__(self, backend: Cuda, owner: object, lies: NDArray[Any]) -> None:
        self.backend = backend
        self.owner = owner
        self.lies = lies
        self._address: int | None = None

    # ---- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lies.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.lies.strides

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.lies.dtype

    @property
    def ndim(self) -> int:
        return self.lies.ndim

    @property
    def size(self) -> int:
        return self.lies.size

    @property
    def itemsize(self) -> int:
        return self.lies.itemsize

    @property
    def nbytes(self) -> int:
        return self.lies.nbytes

    @property
    def address(self) -> int:
        """Of the first element."""
        if self._address is None:  # NumPy takes a while to tell
            self._address = self.lies.__array_interface__["data"][0]
        return self._address

    @property
    def packed(self) -> bool:
        """Whether elements lie side by side in the order of rows."""
        return self.lies.flags.c_contiguous

    # ---- views of it

    def _as(self, lies: NDArray[Any]) -> View:
        return View(self.backend, self.owner, lies)

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(p, (list, np.ndarray, bool, np.bool_, View)) for p in parts):
            return self.host()[tuple(p.host() if isinstance(p, View) else p for p in parts)]
        if isinstance(key, str):
            return self._as(self.lies[key])
        if not any(p is Ellipsis for p in parts):
            whole = len(parts) == self.ndim and not any(isinstance(p, slice) for p in parts)
            inner = (*parts, Ellipsis)  # a view in any case: nothing is read
            found = self._as(self.lies[inner])
            return found.host()[()] if whole and None not in parts else found
        return self._as(self.lies[parts])

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(p, (list, np.ndarray, bool, np.bool_, View)) for p in parts):
            values = self.host()
            values[tuple(p.host() if isinstance(p, View) else p for p in parts)] = _host(value)
            self.backend.put(self, values)
            return
        if not isinstance(key, str) and not any(p is Ellipsis for p in parts):
            parts = (*parts, Ellipsis)
        lies = self.lies[key] if isinstance(key, str) else self.lies[parts]
        self.backend.put(self._as(lies), value)

    def view(self, dtype: Any) -> View:
        """The same memory as elements of another type."""
        return self._as(self.lies.view(dtype))

    def reshape(self, *shape: Any) -> Any:
        """The same elements in another shape; a copy on the host where strides forbid that."""
        target = shape[0] if len(shape) == 1 else shape
        if self.packed or self.ndim == 0:
            return self._as(self.lies.reshape(target))
        return self.host().reshape(target)

    def ravel(self) -> Any:
        """All elements in one dimension."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> View:
        """The same elements with axes reordered."""
        return self._as(self.lies.transpose(*axes))

    @property
    def T(self) -> View:
        return self.transpose()

    # ---- values

    def host(self) -> NDArray[Any]:
        """A copy on the host."""
        return self.backend.to_host(self)

    def copy(self) -> View:
        """A copy on the device, with elements side by side."""
        owner, address = self.backend.allocate(0, max(self.nbytes, 1), False)
        made = View(self.backend, owner, geometry(address, self.shape, None, self.dtype, True))
        self.backend.put(made, self)
        return made

    def tolist(self) -> Any:
        """The elements as Python has them."""
        return self.host().tolist()

    def item(self) -> Any:
        """The one element as Python has it."""
        return self.host().item()

    def astype(self, dtype: Any) -> NDArray[Any]:
        """The elements as another type, on the host."""
        return self.host().astype(dtype)

    def __len__(self) -> int:
        return len(self.lies)

    def __iter__(self) -> Any:
        return iter(self.host())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy
        found = self.host()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        """Computes on the host; what is given as `out` gets the result."""
        outputs = named.pop("out", ())
        if outputs:
            named["out"] = tuple(_host(x) for x in outputs)
        found = getattr(ufunc, method)(*map(_host, inputs), **named)
        for to, values in zip(outputs, named.get("out", ()), strict=True):
            if isinstance(to, View):
                self.backend.put(to, values)
        return outputs[0] if len(outputs) == 1 else found

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        del types
        return func(*_hosts(args), **{k: _hosts(v) for k, v in kwargs.items()})

    def __iadd__(self, other: Any) -> View:
        self.backend.put(self, self.host() + _host(other))
        return self

    def __repr__(self) -> str:
        return repr(self.host())

    def __str__(self) -> str:
        return str(self.host())


def _host(x: Any) -> Any:
    return x.host() if isinstance(x, View) else x


def _hosts(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)(map(_hosts, x))
    return _host(x)


def span(lies: NDArray[Any]) -> tuple[int, int]:
    """The first byte of some elements, and the one after the last."""
    at: int = lies.__array_interface__["data"][0]
    if not lies.size:
        return at, at
    steps = [(n - 1) * s for n, s in zip(lies.shape, lies.strides, strict=True)]
    low = sum(s for s in steps if s < 0)
    return at + low, at + sum(s for s in steps if s > 0) + lies.itemsize


def words(itemsize: int, *addresses: int) -> int:
    """The largest number of bytes, up to 16, that an element divides into, and addresses too."""
    return math.gcd(16, itemsize, *addresses)
