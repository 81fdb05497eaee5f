"""Kernels and tapes that the tests of overwritten arrays share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import engine as wp

F = wp.array(dtype=float)


@wp.kernel
def cube(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


@wp.kernel
def twice(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def times(x: F, w: F, y: F):
    i = wp.tid()
    y[i] = x[i] * w[i]


@wp.kernel
def gather(x: F, at: wp.array(dtype=int), y: F):
    i = wp.tid()
    y[i] = x[at[i]] * x[at[i]]


@wp.kernel
def long_loop(x: F, y: F, n: int):
    i = wp.tid()
    s = x[i]
    for _ in range(n):
        s = s + 0.001 * wp.sin(s) * x[i]
    y[i] = s


def floats(*values: float, grad: bool = True) -> Any:
    return wp.array(values, dtype=float, requires_grad=grad)


def seeded(y: Any) -> dict[Any, Any]:
    return {y: np.ones(y.shape)}


@contextmanager
def silent() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def overwritten(*, then: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """A cube of x, which `then` overwrites on the tape."""
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    tape = wp.Tape()
    with tape:
        wp.launch(cube, 3, [x], [y])
        then(x)
    return tape, x, y
