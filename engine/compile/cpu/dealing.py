"""Gradients of minima and maxima: each part of an adjoint gets its own share.

A recorded part knows what replaced what in its own copy. Which part replaced a scalar last is told
when the copies become one: that is the winner's, and the gradient is dealt out to it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass
from engine.compile.cpu.copies import Copies, Lent, add, view
from engine.compile.threads import Placed, Threads
from engine.lang.strided import may_meet
from engine.lang.types import scalar_of, shape_of

Parts = NDArray[np.uint8]


@dataclass(frozen=True)
class Winners:
    """Who replaced the scalars of an array last.

    names: parameters that are the array. parts: numbers of parts; the first one's also where
    nothing was replaced.
    """

    names: tuple[str, ...]
    parts: Parts


@dataclass(frozen=True)
class Dealt:
    """A gradient, or several in one memory. owner: whose each scalar of `target` is."""

    lent: Lent
    rows: Sequence[NDArray[Any]]
    target: NDArray[Any]
    owner: Parts

    def deal(self) -> None:
        """Gives each part its own; the array keeps that of the first."""
        self.lent.deal(self.target, self.owner)
        self.target[self.owner != 0] = 0

    def put_back(self) -> None:
        """Returns what nobody took."""
        add(self.target, self.lent, self.rows)


def gradients(winners: Sequence[Winners], threads: Threads) -> frozenset[str]:
    """Names of the arrays of an adjoint that hold the gradients of what was won."""
    known = threads.gradients
    return frozenset(known[k] for w in winners for k in w.names if k in known)


def deal(winners: Sequence[Winners], threads: Threads, args: bytes, count: int) -> list[Dealt]:
    """Deals out the gradients of a launch of an adjoint."""
    arrays = threads.arrays(args)
    todo = [
        (a, w.parts) for w in winners for a in arrays
        if a.name in gradients([w], threads) and not a.empty
    ]  # fmt: skip
    out = []
    while todo:
        together, left = [todo.pop()], todo
        while any(_meet(x[0], y[0]) for x in left for y in together):
            met = [any(_meet(x[0], y[0]) for y in together) for x in left]
            together += [x for x, meets in zip(left, met, strict=True) if meets]
            left = [x for x, meets in zip(left, met, strict=True) if not meets]
        todo = left
        out.append(_one(together, count) if _is_one(together) else _several(together, count))
    for d in out:
        d.deal()
    return out


def _meet(a: Placed, b: Placed) -> bool:
    """Whether two arrays share scalars, and not only parts of some."""
    if a.same_as(b):
        return True
    whole = _whole_scalars(a, a.address) and _whole_scalars(b, a.address)
    return whole and scalar_of(a.type) == scalar_of(b.type) and may_meet(a.elements, b.elements)


def _whole_scalars(a: Placed, address: int) -> bool:
    """Whether the scalars of an array lie a whole number of scalars from an address."""
    size = scalar_of(a.type).numpy.itemsize
    return (a.address - address) % size == 0 and all(s % size == 0 for s in a.strides)


def _is_one(arrays: Sequence[tuple[Placed, Parts]]) -> bool:
    first = arrays[0][0]
    apart = not (first.overlaps_itself and _whole_scalars(first, first.address))
    return apart and all(a.same_as(first) for a, _ in arrays)


def _one(arrays: Sequence[tuple[Placed, Parts]], count: int) -> Dealt:
    """Who replaced last takes first, whatever the array was that was replaced."""
    owner = np.maximum.reduce([parts for _, parts in arrays])
    copies = Copies(arrays[0][0], [a.at for a, _ in arrays], count - 1)
    return Dealt(copies, copies.parts, view(arrays[0][0]), owner)


def _several(arrays: Sequence[tuple[Placed, Parts]], count: int) -> Dealt:
    """Of arrays that overlap each other, or themselves: by their memory."""
    size = scalar_of(arrays[0][0].type).numpy.itemsize
    low, high = min(a.ends[0] for a, _ in arrays), max(a.ends[1] for a, _ in arrays)
    whole = Placed("", arrays[0][0].type, 0, low, ((high - low) // size,), (size,))
    target = view(whole, scalars=True)
    owner = np.zeros(len(target), np.uint8)
    for a, parts in arrays:
        np.maximum.at(owner, _scalars(a, low, size), parts)
    places = [(a.at, a.address - low, a.shape, a.strides) for a, _ in arrays]
    lent = Lent(count - 1, len(target), target.dtype, places)
    return Dealt(lent, lent.rows, target, owner)


def _scalars(a: Placed, low: int, size: int) -> NDArray[np.int64]:
    """Where the scalars of an array lie, counted from an address."""
    inner = shape_of(a.type.element)
    at = np.full((*a.shape, *inner), a.address - low, np.int64)
    strides = (*a.strides, *np.empty(inner, f"V{size}").strides)
    for axis, (n, stride) in enumerate(zip(at.shape, strides, strict=True)):
        at += np.expand_dims(
            np.arange(n) * stride, [d for d in range(at.ndim) if d != axis]
        )  # fmt: skip
    return at // size
