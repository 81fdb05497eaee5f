"""Matrices as images of bounded size, for plots of Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.jacobians.sparse import SparseJacobian
from engine.classes import dataclass

Array = NDArray[Any]

# Larger sides are binned: a pixel shows the entry of largest magnitude that it stands for.
MOST = 300


@dataclass(frozen=True)
class Panel:
    """One matrix of a plot.

    shape: of the matrix. row_width, col_width: scalars of one element. image: its values or
    those of its bins; NaN where nothing was evaluated. row_label, col_label: the output's and
    the input's names.
    """

    row: int
    col: int
    row_label: str
    col_label: str
    shape: tuple[int, int]
    row_width: int
    col_width: int
    image: Array

    @property
    def binned(self) -> bool:
        """Whether a pixel stands for several entries."""
        return self.image.shape != self.shape


def image_of(matrix: Any) -> tuple[tuple[int, int], Array]:
    """The shape of a matrix, and an image of it of at most MOST pixels a side.

    matrix: an array of the engine or of NumPy (rows first, all other axes are columns),
    or a SparseJacobian.
    """
    if isinstance(matrix, SparseJacobian):
        return matrix.shape, _of_sparse(matrix)
    dense = np.asarray(matrix.numpy() if hasattr(matrix, "numpy") else matrix, dtype=np.float64)
    rows = dense.shape[0] if dense.ndim else 0
    dense = dense.reshape(rows, -1) if dense.size else np.zeros((rows, 0))
    return (dense.shape[0], dense.shape[1]), _of_dense(dense)


def _starts(count: int) -> Array:
    bins = min(count, MOST)
    return (np.arange(bins) * count) // max(bins, 1)


def _of_dense(m: Array) -> Array:
    if max(m.shape, default=0) <= MOST or not m.size:
        return m
    high, low = (
        f.reduceat(f.reduceat(m, _starts(m.shape[0]), axis=0), _starts(m.shape[1]), axis=1)
        for f in (np.fmax, np.fmin)
    )
    return _stronger(high, low)


def _stronger(high: Array, low: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(low) > np.abs(high), low, high)


def _of_sparse(s: SparseJacobian) -> Array:
    if not all(s.shape):
        return np.zeros(s.shape)
    if max(s.shape) <= MOST:
        return s.toarray().astype(np.float64)
    starts = [_starts(count) for count in s.shape]
    shape = (len(starts[0]), len(starts[1]))
    at = np.zeros(len(s.values), np.int64)
    for places, first, count in zip((s.rows, s.cols), starts, shape, strict=True):
        at = at * count + np.searchsorted(first, places, "right") - 1
    values = s.values.astype(np.float64)
    known = ~np.isnan(values)
    high, low = np.zeros(shape).reshape(-1), np.zeros(shape).reshape(-1)
    np.maximum.at(high, at[known], values[known])
    np.minimum.at(low, at[known], values[known])
    image = _stronger(high, low)
    image[at[~known][image[at[~known]] == 0]] = np.nan
    return np.asarray(image.reshape(shape))
