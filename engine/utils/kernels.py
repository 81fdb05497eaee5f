"""Kernels of `engine.utils` for tapes; without gradients, NumPy does the work."""

from __future__ import annotations

from typing import Any

import engine as wp


@wp.kernel
def sum_of(x: wp.array(dtype=Any, ndim=3), count: int, out: wp.array(dtype=Any, ndim=2)) -> None:  # type: ignore[valid-type]
    """out[i, j]: the sum of x[i, k, j] over the first `count` k."""
    i, j = wp.tid()
    total = out.dtype(0.0)
    for k in range(count):
        total += x[i, k, j]
    out[i, j] = total


@wp.kernel
def inner_of_scalars(
    a: wp.array(dtype=Any, ndim=3),  # type: ignore[valid-type]
    b: wp.array(dtype=Any, ndim=3),  # type: ignore[valid-type]
    count: int,
    out: wp.array(dtype=Any, ndim=2),  # type: ignore[valid-type]
) -> None:
    """out[i, j]: the sum of a[i, k, j] * b[i, k, j] over the first `count` k."""
    i, j = wp.tid()
    total = out.dtype(0.0)
    for k in range(count):
        total += a[i, k, j] * b[i, k, j]
    out[i, j] = total


@wp.kernel
def scan_of(x: wp.array(dtype=Any), y: wp.array(dtype=Any), inclusive: int) -> None:  # type: ignore[valid-type]
    """y[i]: the sum of x up to i, without x[i] itself where inclusive is 0. One thread."""
    total = x.dtype(0.0)
    for i in range(x.shape[0]):
        before = total
        total += x[i]
        if inclusive != 0:
            y[i] = total
        else:
            y[i] = before


@wp.kernel
def gather(x: wp.array(dtype=Any), places: wp.array(dtype=int), y: wp.array(dtype=Any)) -> None:  # type: ignore[valid-type]
    """y[i] = x[places[i]]."""
    i = wp.tid()
    y[i] = x[places[i]]
