"""The difference of two Jacobians, entry by entry, for plots."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.jacobians.collection import Jacobians
from engine.autograd.jacobians.sparse import SparseJacobian

Array = NDArray[Any]

# References this small beside the largest of their matrix are rounding, no slopes.
FLOOR = 1e-8


def error_jacobians(ad: Jacobians, reference: Jacobians, relative: bool) -> Jacobians:
    """|ad - reference|, or that over |reference|, for every pair of both; dense or sparse."""
    pairs = {key: (ad[key], reference[key]) for key in ad if key in reference}
    return Jacobians({key: _error(a, b, relative) for key, (a, b) in pairs.items()}, ad.metadata)


def _error(a: Any, b: Any, relative: bool) -> Any:
    if isinstance(a, SparseJacobian) and isinstance(b, SparseJacobian):
        width = max(a.shape[1], 1)
        keys, place = np.unique(
            np.concatenate([a.rows * width + a.cols, b.rows * width + b.cols]), return_inverse=True
        )
        x, y = np.zeros(len(keys)), np.zeros(len(keys))
        x[place[: a.nnz]] = a.values
        y[place[a.nnz :]] = b.values
        return SparseJacobian(a.shape, keys // width, keys % width, _apart(x, y, relative))
    dense = [_dense(m) for m in (a, b)]
    return _apart(dense[0], dense[1], relative)


def _dense(m: Any) -> Array:
    x = np.asarray(m.numpy(), np.float64)
    return x.reshape(x.shape[0], int(np.prod(x.shape[1:], dtype=np.int64)))


def _apart(ad: Array, reference: Array, relative: bool) -> Array:
    with np.errstate(all="ignore"):
        error = np.where(ad == reference, 0.0, np.abs(ad - reference))
        if not relative:
            return error
        size = np.abs(reference)
        top = float(size[np.isfinite(size)].max(initial=0.0))
        least = FLOOR * top if top else 1.0
        return np.asarray(error / np.maximum(size, least))
