"""Single scalars of an array by row-major number, for any strides."""

from __future__ import annotations

import numpy as np

from engine.runtime.array import array


def scalar_at(a: array, scalar: int) -> float:
    """The scalar of that number."""
    return float(a._parts[np.unravel_index(scalar, a._parts.shape)])


def set_scalar(a: array, scalar: int, value: float) -> None:
    """Sets the scalar of that number. Nobody is told: see `Storage.before_write`."""
    a._parts[np.unravel_index(scalar, a._parts.shape)] = value
