"""Positions of array views by shape and strides, as in NumPy.

Rows, slices and other shapes are taken again and again. To make arrays of NumPy and to ask where
these lie would take longer than all else about a view.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from engine.lang.strided import row_major

if TYPE_CHECKING:
    from engine.runtime.base import ArrayBase

# Bytes from the first element to that of the view, and its shape and strides.
Place = tuple[int, tuple[int, ...], tuple[int, ...]]

_FAR = 1 << 31  # steps that NumPy may cut short


class Placed(ABC):
    """An operation on a NumPy array that gives a view of it, and knows where that lies."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, v: Any) -> Any:
        """The view of a NumPy array."""

    @abstractmethod
    def place(self, a: ArrayBase) -> Place | None:
        """Where the view of an array lies that has elements; None where NumPy is to be asked."""


class Sliced(Placed):
    """`a[key]`, for integers, slices, `...` and None in a tuple."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __call__(self, v: Any) -> Any:
        return v[self.key]

    def place(self, a: ArrayBase) -> Place | None:
        shape, strides = a.shape, a.strides
        offset = axis = 0
        dims: tuple[int, ...] = ()
        steps: tuple[int, ...] = ()
        for p in self.key:
            if p.__class__ is int:
                n = shape[axis]
                if not -n <= p < n:
                    return None
                offset += (p if p >= 0 else p + n) * strides[axis]
            elif p.__class__ is slice:
                try:
                    begin, end, step = p.indices(shape[axis])
                except (TypeError, ValueError):
                    return None
                count = end - begin if step == 1 else len(range(begin, end, step))
                if count <= 0 or not -_FAR < step < _FAR:
                    return None
                offset += begin * strides[axis]
                dims += (count,)
                steps += (step * strides[axis],)
            elif p is None:
                dims += (1,)
                steps += (0,)
                continue
            else:
                return None
            axis += 1
        return offset, dims + shape[axis:], steps + strides[axis:]


class Reshaped(Placed):
    """The elements in another shape, of as many. otherwise: what is done with NumPy's."""

    __slots__ = ("otherwise", "target")

    def __init__(self, target: tuple[int, ...], otherwise: Any) -> None:
        self.target = target
        self.otherwise = otherwise

    def __call__(self, v: Any) -> Any:
        return self.otherwise(v, self.target)

    def place(self, a: ArrayBase) -> Place | None:
        target = self.target
        if not a.is_contiguous:
            return None
        size = a._info.size
        return 0, target, (size,) if len(target) == 1 else row_major(target, size)


class Transposed(Placed):
    """The axes in another order, in reverse where there is none."""

    __slots__ = ("order",)

    def __init__(self, order: tuple[int, ...] | None) -> None:
        self.order = order

    def __call__(self, v: Any) -> Any:
        return v.transpose(self.order)

    def place(self, a: ArrayBase) -> Place:
        if self.order is None:
            return 0, a.shape[::-1], a.strides[::-1]
        return (0, tuple([a.shape[k] for k in self.order]),
                tuple([a.strides[k] for k in self.order]))  # fmt: skip


class Same(Placed):
    """All of it as it is."""

    __slots__ = ()

    def __call__(self, v: Any) -> Any:
        return v

    def place(self, a: ArrayBase) -> Place:
        return 0, a.shape, a.strides


SAME = Same()
