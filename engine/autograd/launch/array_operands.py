"""Compares a custom gradient with differences by the elements of its array operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.ir import interp
from engine.ir import nodes as n
from engine.lang.types import ArrayType, is_float

Array = NDArray[Any]
Slopes = Callable[[Array, tuple[int, ...]], float]

LARGEST = 1 << 16  # elements of an array that is looked at
ELEMENTS = 16  # of an array that are compared
SHOWN = 3


def operands_with_elements(fn: n.Function) -> list[int]:
    """The parameters that are arrays of floats."""
    return [
        i for i, p in enumerate(fn.params)
        if isinstance(p.type, ArrayType) and is_float(p.type.element)
    ]  # fmt: skip


def is_pure(fn: n.Function) -> bool:
    """Whether a function only reads, and all by itself, so that its reads can be seen."""
    return not any(isinstance(s, (n.Store, n.Atomic, n.Call)) for s in n.walk(fn.body))


def compared(
    fn: n.Function, args: Sequence[Any], which: int, adjoint: Array, slope: Slopes, clear: float
) -> list[tuple[str, Array, Array]]:
    """The elements of an array operand by which a derivative is clearly wrong, worst first.

    adjoint: what it gave for them. slope: differences by one element. clear: relative to the
    largest slope.
    """
    x = np.asarray(args[which])
    if x.size > LARGEST:
        return []
    at = [tuple(int(k) for k in i) for i in np.argwhere(adjoint != 0.0)]
    at = list(dict.fromkeys([*_read(fn, args, fn.params[which], x), *at]))
    if len(at) > ELEMENTS:
        return []
    right = {i: slope(x, i) for i in at}
    scale = max((abs(v) for v in right.values()), default=0.0)
    wrong = [i for i in at if abs(adjoint[i] - right[i]) > clear * scale]
    wrong.sort(key=lambda i: -abs(float(adjoint[i]) - right[i]))
    name = fn.params[which].name
    return [
        (f"{name}[{', '.join(map(str, i))}]", np.asarray(adjoint[i]), np.asarray(right[i]))
        for i in wrong[:SHOWN]
    ]


def _read(fn: n.Function, args: Sequence[Any], p: n.Var, x: Array) -> list[tuple[int, ...]]:
    """The numbers of an array that a function reads."""
    found: list[tuple[int, ...]] = []

    def trace(s: Any, index: Any, result: Any, thread: Any) -> None:
        if isinstance(s, n.Load) and s.array == p:
            at = tuple(int(i) for i in index)
            found.extend((*at, *more) for more in np.ndindex(x.shape[len(at) :]))

    interp.evaluate(fn, list(args), trace)
    return found
