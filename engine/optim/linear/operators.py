"""Linear operators: dense matrices, functions, and preconditioners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.lang.scalars import SCALAR_CLASSES
from engine.lang.types import INT32, ScalarType, is_float, scalar_of
from engine.lang.values import to_value_type
from engine.runtime.array import array
from engine.runtime.device import DeviceLike, get_device
from engine.utils.common import NumpyArray, UtilityTypeError, refused


class LinearOperator:
    """What solvers multiply by: `matvec(x, y, z, alpha, beta)` sets z = alpha * A x + beta * y.

    Args:
        shape: rows and columns, in scalars.
        dtype: the type of the elements of vectors that it takes.
        device: where they are.
        matvec: the product. x, y and z are arrays; y may be z.
        batch_offsets: int32, where independent systems begin (and the last one ends), in scalars.
        max_batch_length: accepted for GPU code; it means nothing on the CPU.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        device: DeviceLike,
        matvec: Callable[..., Any],
        batch_offsets: array | None = None,
        max_batch_length: int | None = None,
    ) -> None:
        kind = to_value_type(dtype)
        if not is_float(kind):
            raise refused("a linear operator is of floats", code="E202", kind=UtilityTypeError)
        if not callable(matvec):
            raise refused(f"matvec is a function, got {matvec!r}", kind=UtilityTypeError)
        if batch_offsets is not None and (
            not isinstance(batch_offsets, array) or batch_offsets._ir.element != INT32
        ):
            raise refused("batch_offsets is an array of int32", code="E202", kind=UtilityTypeError)
        self.shape = shape
        self.dtype = dtype
        self.device = get_device(device)
        self.matvec = matvec
        self.batch_offsets = batch_offsets
        self.max_batch_length = max_batch_length

    @property
    def scalar_type(self) -> type:
        """The class of its scalars."""
        return SCALAR_CLASSES[scalar_of(to_value_type(self.dtype))]

    @property
    def batch_count(self) -> int:
        """How many independent systems it is."""
        return 1 if self.batch_offsets is None else max(self.batch_offsets.size - 1, 0)


class Dense(LinearOperator):
    """A matrix that is an array of two dimensions of scalars, `matrix`."""

    def __init__(self, matrix: array) -> None:
        self.matrix = matrix
        super().__init__(matrix.shape, matrix.dtype, matrix.device, self._product)  # type: ignore[arg-type]

    def _product(self, x: array, y: array, z: array, alpha: float, beta: float) -> None:
        flat = self.matrix._host() @ _scalars(x)
        _put(z, alpha * flat + (beta * _scalars(y) if beta else 0.0))


def _scalars(a: array) -> NumpyArray:
    return a._host().reshape(-1)


def _put(a: array, values: NumpyArray) -> None:
    a.storage.before_write(a.lo, a.hi)
    a._put(values.reshape(a._parts.shape))


def aslinearoperator(
    A: Any, batch_offsets: array | None = None, max_batch_length: int | None = None
) -> LinearOperator:
    """An operator as it is, or a dense matrix as one: an array of two dimensions of floats.

    Raises UtilityError (a LaunchError and a RuntimeError) E202 for anything else.
    """
    if isinstance(A, LinearOperator):
        return A
    if isinstance(A, array) and A.ndim == 2 and isinstance(A._ir.element, ScalarType):
        made = Dense(A)
        made.batch_offsets = batch_offsets
        return made
    what = f"shape {A.shape} of {A.dtype.__name__}" if isinstance(A, array) else type(A).__name__
    raise refused(f"a linear operator is an array of two dimensions of floats, or a "
                  f"LinearOperator, got {what}", "give a LinearOperator your own matvec",
                  "E202", UtilityTypeError)  # fmt: skip


def preconditioner(A: Any, ptype: str = "diag") -> LinearOperator | None:
    """What makes solvers take fewer steps: divides by the diagonal of a dense matrix.

    Args:
        A: the matrix.
        ptype: "diag", "diag_abs" (by magnitudes), or "id" for none. Zeros divide by one.

    Raises UtilityError (a LaunchError and a RuntimeError) E202 for operators whose diagonal is
    not known, E206 for other kinds.
    """
    if ptype == "id":
        return None
    if ptype not in ("diag", "diag_abs"):
        raise refused(f"there is no preconditioner {ptype!r}", 'take "diag", "diag_abs" or "id"')
    op = aslinearoperator(A)
    if not isinstance(op, Dense):
        raise refused("a LinearOperator has no diagonal",
                      "pass a LinearOperator as preconditioner", "E202")  # fmt: skip
    diagonal = np.array(np.diagonal(op.matrix._host()))
    if ptype == "diag_abs":
        diagonal = np.abs(diagonal)
    factor = np.divide(1.0, diagonal, out=np.ones_like(diagonal), where=diagonal != 0.0)

    def product(x: array, y: array, z: array, alpha: float, beta: float) -> None:
        _put(z, alpha * factor * _scalars(x) + (beta * _scalars(y) if beta else 0.0))

    return LinearOperator(op.shape, op.dtype, op.device, product)
