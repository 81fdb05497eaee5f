"""Jacobians of checked launches and their errors, reduced to the size of a page.

Evaluated in the child process, while the tape's records are there; told as numbers.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import engine
from adtool.counts import more
from engine.classes import dataclass

if TYPE_CHECKING:
    from engine import CapturedTape
    from engine.autograd import LaunchResult, TapeResult

CELLS = 48  # of a picture, in each direction
_LAUNCHES = 12
_ALIKE = 3  # failing launches of one kernel
_PAIRS = 4  # of one launch
_ENTRIES = 1 << 22  # elements of both sides: larger matrices are not evaluated for a page
_SECONDS = 20.0  # for all of them together
_BAD = ("fail", "nan")


@dataclass(frozen=True, slots=True)
class MatrixPicture:
    """The Jacobian of one pair, and how far it is off; both cut into `rows` x `cols` cells.

    shape: scalars of the output and of the input. values, errors: row by row; of the entries of
    a cell that of the largest magnitude, NaN where one is NaN. errors: |adjoint - reference|,
    empty where there is no reference. nonzeros: entries that are not zero. verdict: of the check.
    """

    input: str
    output: str
    verdict: str
    shape: tuple[int, int]
    nonzeros: int
    rows: int
    cols: int
    values: tuple[float, ...]
    errors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchPictures:
    """The pictures of one launch. why: what is not among them, and why; empty where all is."""

    tape: int
    launch: int
    kernel: str
    pairs: tuple[MatrixPicture, ...]
    why: str = ""


class MatrixGallery:
    """Collects the pictures of a run: of failing launches first, else one for each kernel."""

    def __init__(self, limit: int) -> None:
        self._limit = min(limit, _LAUNCHES)
        self._wrong: list[LaunchPictures] = []
        self._right: dict[str, LaunchPictures] = {}
        self._kernels: Counter[str] = Counter()
        self._end = time.monotonic() + _SECONDS

    def add(self, tape: CapturedTape, result: TapeResult, number: int) -> None:
        """Looks at a tape that has just been checked, and still has its records."""
        records = [r for r in tape.records if r.kernel is not None]
        for launch in result.launches:
            wrong = any(p.verdict in _BAD for p in launch.pairs)
            if not self._wants(launch.kernel, wrong) or not launch.pairs:
                continue
            found = _pictures(records[launch.index], launch, number, self._end)
            if wrong:
                self._kernels[launch.kernel] += 1
                self._wrong.append(found)
            else:
                self._right[launch.kernel] = found

    def _wants(self, kernel: str, wrong: bool) -> bool:
        if time.monotonic() > self._end:
            return False
        if wrong:
            return len(self._wrong) < self._limit and self._kernels[kernel] < _ALIKE
        return kernel not in self._right and len(self._right) < self._limit

    def pictures(self) -> tuple[LaunchPictures, ...]:
        """The failing ones first, no more than were asked for."""
        wrong = {p.kernel for p in self._wrong}
        right = [p for kernel, p in self._right.items() if kernel not in wrong]
        return tuple((*self._wrong, *right)[: self._limit])


def _pictures(record: Any, launch: LaunchResult, tape: int, end: float) -> LaunchPictures:
    order = sorted(launch.pairs, key=lambda p: p.verdict not in _BAD)
    pairs, why = [], []
    for p in order[:_PAIRS]:
        if time.monotonic() > end:
            why.append("the time limit for pictures was reached")
            break
        size = _size(record, p.input) * _size(record, p.output)
        if size > _ENTRIES:
            why.append(f"{p.input} to {p.output} has {size:,} entries, too many for a page")
            continue
        try:
            pairs.append(_picture(record, p.input, p.output, p.verdict))
        except engine.EngineError as error:
            why.append(f"{p.input} to {p.output}: {error.diagnostics[0].message}")
        except MemoryError:
            why.append(f"{p.input} to {p.output}: too little memory")
    if len(order) > _PAIRS:
        why.append(more(len(order) - _PAIRS, "pair"))
    return LaunchPictures(tape, launch.index, launch.kernel, tuple(pairs), "; ".join(why))


def _size(record: Any, name: str) -> int:
    """How many elements an argument has; the largest stands for what has another name."""
    sizes = {
        p.name: int(a.size)
        for p in record.plan.array_params
        if (a := record.values[p.index]) is not None
    }
    return sizes.get(name, max(sizes.values(), default=1))


def _picture(record: Any, source: str, result: str, verdict: str) -> MatrixPicture:
    import numpy as np

    from engine.autograd import error_jacobians, recorded_jacobians

    given = (record, [source], [result])
    found = recorded_jacobians(*given)
    (key, matrix), = found.items()  # fmt: skip
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    rows, cols = min(shape[0], CELLS), min(shape[1], CELLS)
    values = _cells(matrix, rows, cols)
    errors: tuple[float, ...] = ()
    try:
        reference = recorded_jacobians(*given, differences=True)
        errors = _cells(error_jacobians(found, reference, False)[key], rows, cols)
    except engine.EngineError:
        pass
    nonzeros = int(np.count_nonzero(matrix.values))
    return MatrixPicture(source, result, verdict, shape, nonzeros, rows, cols, values, errors)


def _cells(matrix: Any, rows: int, cols: int) -> tuple[float, ...]:
    """The largest magnitude of each cell, with its sign. matrix: sparse."""
    import numpy as np

    out = np.zeros(rows * cols)
    if not rows or not cols or not matrix.nnz:
        return tuple(out.tolist())
    at = (matrix.rows * rows // matrix.shape[0]) * cols + matrix.cols * cols // matrix.shape[1]
    values = np.asarray(matrix.values, np.float64)
    # NaN last, so that it stays; then by magnitude.
    order = np.argsort(np.where(np.isnan(values), math.inf, np.abs(values)), kind="stable")
    order = np.concatenate([order[~np.isnan(values[order])], order[np.isnan(values[order])]])
    out[at[order]] = values[order]
    return tuple(float(f"{v:.4g}") for v in out)
