"""Summarises Jacobians in a line each: rank, condition number, largest entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.jacobians.collection import Jacobians
from engine.autograd.jacobians.sparse import SparseJacobian
from engine.classes import dataclass
from engine.lang.numbers import epsilon

Array = NDArray[Any]

# Rank and condition come from singular values, of blocks up to this size.
BLOCK = 600
LARGEST = 5
_ROUNDS = 40


@dataclass(frozen=True)
class MatrixSummary:
    """What can be said of one Jacobian in a line.

    shape: scalars of the output and of the input. nonzeros: entries other than zero (not
    finite ones are). rank, condition (largest over smallest non-zero singular value): None
    where it is not finite or too large, `unknown` says which. largest: entries by magnitude,
    as (row, column, value); names: of their scalars, the output's first. nonfinite: how many
    entries are NaN or infinite.
    """

    input: str
    output: str
    shape: tuple[int, int]
    nonzeros: int
    rank: int | None
    condition: float | None
    largest: tuple[tuple[int, int, float], ...]
    nonfinite: int = 0
    unknown: str = ""
    names: tuple[tuple[str, str], ...] = ()


def summarise(jacobians: Jacobians) -> tuple[MatrixSummary, ...]:
    """A summary of each sparse Jacobian."""
    names = jacobians.metadata
    out = []
    for (i, o), matrix in jacobians.items():
        found = _summary(names.label(i, False), names.label(o, True), matrix)
        places = tuple(jacobians.entry((i, o), row, col) for row, col, _ in found.largest)
        out.append(replace(found, names=places))
    return tuple(out)


def _summary(a: str, b: str, m: SparseJacobian) -> MatrixSummary:
    values = m.values.astype(np.float64)
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        order = np.argsort(-np.where(np.isnan(values), np.inf, np.abs(values)), kind="stable")
    top = [k for k in order[:LARGEST].tolist() if values[k] != 0]
    largest = tuple((int(m.rows[k]), int(m.cols[k]), float(values[k])) for k in top)
    bad = int(np.count_nonzero(~finite))
    rank: int | None = None
    condition: float | None = None
    unknown = "it is not finite" if bad else ""
    if not unknown:
        precision = epsilon(m.values.dtype)
        found = _singular(m.shape, m.rows, m.cols, values)
        if found is None:
            unknown = f"it has a block larger than {BLOCK} x {BLOCK}"
        else:
            least = precision * max(m.shape, default=0) * found.max(initial=0.0)
            kept = found[found > least]
            rank = len(kept)
            condition = float(kept.max() / kept.min()) if rank else None
    return MatrixSummary(
        a, b, m.shape, int(np.count_nonzero(values)), rank, condition, largest, bad, unknown
    )


def _singular(shape: tuple[int, int], rows: Array, cols: Array, values: Array) -> Array | None:
    """All singular values that are not zero for structural reasons; None where that is too much.

    Rows and columns that no entry connects make blocks, whose singular values they are.
    """
    used = values != 0
    rows, cols, values = rows[used], cols[used], values[used]
    if not len(rows):
        return np.zeros(0)
    if max(shape) <= BLOCK:
        dense = np.zeros(shape)
        dense[rows, cols] = values
        return np.asarray(np.linalg.svd(dense, compute_uv=False))
    labels = _blocks(shape, rows, cols)
    if labels is None:
        return None
    of_entry = labels[rows]
    order = np.argsort(of_entry, kind="stable")
    rows, cols, values, of_entry = rows[order], cols[order], values[order], of_entry[order]
    count = int(of_entry[-1]) + 1
    row_at, heights = _within(of_entry, rows, count)
    col_at, widths = _within(of_entry, cols, count)
    if max(heights.max(), widths.max()) > BLOCK:
        return None
    out = []
    kinds = heights * (BLOCK + 1) + widths
    for kind in np.unique(kinds):
        mine = np.flatnonzero(kinds == kind)
        h, w = int(heights[mine[0]]), int(widths[mine[0]])
        number = np.full(count, -1)
        number[mine] = np.arange(len(mine))
        inside = number[of_entry] >= 0
        stack = np.zeros((len(mine), h, w))
        stack[number[of_entry[inside]], row_at[inside], col_at[inside]] = values[inside]
        if h == w == 1:
            out.append(np.abs(stack.reshape(-1)))
        else:
            out.append(np.linalg.svd(stack, compute_uv=False).reshape(-1))
    return np.concatenate(out)


def _blocks(shape: tuple[int, int], rows: Array, cols: Array) -> Array | None:
    """For each row with entries the number of its block; None where that takes too long."""
    label = np.arange(shape[0])
    across = np.full(shape[1], shape[0])
    for _ in range(_ROUNDS):
        np.minimum.at(across, cols, label[rows])
        after = label.copy()
        np.minimum.at(after, rows, across[cols])
        after = after[after]
        if np.array_equal(after, label):
            used = np.unique(label[rows])
            table = np.zeros(shape[0], np.int64)
            table[used] = np.arange(len(used))
            return np.asarray(table[label])
        label = after
    return None


def _within(blocks: Array, places: Array, count: int) -> tuple[Array, Array]:
    """Numbers of rows (or columns) within their blocks, and how many each block has."""
    size = int(places.max()) + 1
    keys, back = np.unique(blocks * size + places, return_inverse=True)
    owner = keys // size
    sizes = np.bincount(owner, minlength=count)
    first = np.cumsum(sizes) - sizes
    return np.arange(len(keys))[back] - first[blocks], sizes
