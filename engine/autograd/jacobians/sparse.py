"""`SparseJacobian`: the entries of a Jacobian that may be nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass
from engine.runtime.launch_errors import fail

Ints = NDArray[np.int64]
Array = NDArray[Any]


@dataclass(frozen=True)
class SparseJacobian:
    """Entries by row and column, sorted by row, then by column, each place once.

    shape: scalars of the output and of the input. Entries that are not here are zero; those
    that were not asked for (`max_outputs_per_var`) are NaN. colours: how many derivatives
    along a direction it took, 0 where it was evaluated densely.
    """

    shape: tuple[int, int]
    rows: Ints
    cols: Ints
    values: Array
    colours: int = 0

    @property
    def nnz(self) -> int:
        """Entries that are kept."""
        return len(self.values)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.values.dtype

    @property
    def indptr(self) -> Ints:
        """Where each row begins among the entries, and the end: compressed sparse rows."""
        return np.searchsorted(self.rows, np.arange(self.shape[0] + 1)).astype(np.int64)

    def toarray(self) -> Array:
        """All entries. Raises MemoryError where they do not fit."""
        out = np.zeros(self.shape, self.values.dtype)
        out[self.rows, self.cols] = self.values
        return out

    numpy = toarray

    def tocsr(self) -> Any:
        """A scipy.sparse.csr_array. Raises LaunchError (E206) where SciPy is not installed."""
        try:
            from scipy import sparse
        except ImportError:
            help = "pip install scipy, or use rows, cols and values"
            raise fail("E206", "a sparse matrix of SciPy needs scipy", help=help) from None
        return sparse.csr_array((self.values, self.cols, self.indptr), shape=self.shape)

    def __matmul__(self, v: Any) -> Array:
        """J v for a vector."""
        v = self._vector(v, self.shape[1])
        return np.bincount(self.rows, self.values * v[self.cols], self.shape[0])

    def __rmatmul__(self, w: Any) -> Array:
        """w J for a vector."""
        w = self._vector(w, self.shape[0])
        return np.bincount(self.cols, self.values * w[self.rows], self.shape[1])

    def _vector(self, v: Any, count: int) -> Array:
        found: Array = np.asarray(v, np.float64)
        if found.shape != (count,):
            raise fail("E207", "a vector does not fit the Jacobian",
                       f"expected {count} numbers, got shape {found.shape}")  # fmt: skip
        return found
