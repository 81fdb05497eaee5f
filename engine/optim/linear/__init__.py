"""Solvers of linear systems: conjugate gradients and their kin, for dense matrices and operators.

A x = b is solved for x on the host, products are those of the operator. On a tape the gradient
of x flows to b, and to a dense A: it is that of the system's solution, got by solving the
transposed system, as exact as the solver's tolerance; the first guess has none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from engine.lang.types import scalar_of
from engine.logger import log_warning
from engine.optim.linear import iterations
from engine.optim.linear.iterations import System
from engine.optim.linear.operators import (
    Dense,
    LinearOperator,
    aslinearoperator,
    preconditioner,
)
from engine.runtime import events
from engine.runtime.array import array
from engine.utils.common import (
    NumpyArray,
    UtilityTypeError,
    check_arrays,
    flows,
    is_number,
    put,
    refuse_in_graph,
    refused,
)

_TOLERANCES = {16: 1e-3, 32: 1e-6, 64: 1e-12}
_SYMMETRIC = ("cg", "cr")

Steps = Callable[[System], Iterator[NumpyArray]]


class LinearSolverState:
    """A solver with its arguments, to be called again: other ones may be given then.

    `CG`, `CR`, `BiCGSTAB` and `GMRES` are made as `cg` and the like are called.
    """

    name = ""

    def __init__(self, A: Any, b: array, x: array, *args: Any, **options: Any) -> None:
        self._given: dict[str, Any] = {"A": A, "b": b, "x": x}
        for name, value in zip(("tol", "atol", "maxiter", "M"), args, strict=False):
            self._given[name] = value
        self._given.update(options, run=True)

    def __call__(self, A: Any = None, b: Any = None, x: Any = None, **options: Any) -> Any:
        """Solves the system. What is left out is as it was when the solver was made."""
        given = {k: v for k, v in (("A", A), ("b", b), ("x", x)) if v is not None}
        return globals()[self.name](**{**self._given, **given, **options})


class CG(LinearSolverState):
    """See `cg`."""

    name = "cg"


class CR(LinearSolverState):
    """See `cr`."""

    name = "cr"


class BiCGSTAB(LinearSolverState):
    """See `bicgstab`."""

    name = "bicgstab"


class GMRES(LinearSolverState):
    """See `gmres`."""

    name = "gmres"


def cg(
    A: Any,
    b: array,
    x: array,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = 0,
    M: Any = None,
    callback: Callable[[int, float, float], Any] | None = None,
    check_every: int = 10,
    use_cuda_graph: bool = True,
    run: bool = True,
    *,
    restart: int | None = None,
) -> Any:
    """Solves A x = b for a symmetric, positive definite A, by conjugate gradients.

    Args:
        A: an array of two dimensions of floats, or a LinearOperator.
        b: floats, or vectors of them.
        x: the first guess; receives the solution.
        tol: the residual's length that is small enough, in lengths of b.
        atol: the same, absolute; the larger counts. 1e-6 for float32, 1e-12 for float64 where both
            are left out.
        maxiter: how many steps at most; the number of scalars of b for 0.
        M: the preconditioner, an operator close to the inverse of A.
        callback: called with the number of steps, the residual's length and what it has to be.
        check_every: how many steps are made between two looks at the residual; for 0, results
            come as arrays of one number, the squares of the last two.
        use_cuda_graph: accepted for GPU code.
        run: False gives a `CG` to be called.
        restart: after how many steps to begin again from the residual itself.

    Returns the number of steps, the length of the residual, and what it had to be.
    Raises UtilityError (a LaunchError and a RuntimeError) E202 for types, E206 for shapes, and for
    tolerances and numbers of steps that are negative, NaN or no numbers.
    """
    del use_cuda_graph
    if not run:
        return CG(A, b, x, tol, atol, maxiter, M, callback=callback, check_every=check_every,
                  restart=restart)  # fmt: skip
    again = _positive("restart", restart)
    stride = again or 1
    steps: Steps = lambda s: iterations.cg(s, again)  # noqa: E731
    return _solve("cg", A, b, x, tol, atol, maxiter, M, callback, check_every, steps, stride)


def cr(
    A: Any,
    b: array,
    x: array,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = 0,
    M: Any = None,
    callback: Callable[[int, float, float], Any] | None = None,
    check_every: int = 10,
    use_cuda_graph: bool = True,
    run: bool = True,
    *,
    restart: int | None = None,
) -> Any:
    """Solves A x = b for a symmetric A, by conjugate residuals. Takes and gives what `cg` does."""
    del use_cuda_graph
    if not run:
        return CR(A, b, x, tol, atol, maxiter, M, callback=callback, check_every=check_every,
                  restart=restart)  # fmt: skip
    again = _positive("restart", restart)
    stride = again or 1
    steps: Steps = lambda s: iterations.cr(s, again)  # noqa: E731
    return _solve("cr", A, b, x, tol, atol, maxiter, M, callback, check_every, steps, stride)


def bicgstab(
    A: Any,
    b: array,
    x: array,
    tol: float | None = None,
    atol: float | None = None,
    maxiter: int | None = 0,
    M: Any = None,
    callback: Callable[[int, float, float], Any] | None = None,
    check_every: int = 10,
    use_cuda_graph: bool = True,
    is_left_preconditioner: bool = False,
    run: bool = True,
) -> Any:
    """Solves A x = b for any A, by stabilised biconjugate gradients. As `cg` otherwise.

    is_left_preconditioner: whether M stands before A or behind it.
    """
    del use_cuda_graph
    if not run:
        return BiCGSTAB(A, b, x, tol, atol, maxiter, M, callback=callback, check_every=check_every,
                        is_left_preconditioner=is_left_preconditioner)  # fmt: skip
    steps: Steps = lambda s: iterations.bicgstab(s, is_left_preconditioner)  # noqa: E731
    return _solve("bicgstab", A, b, x, tol, atol, maxiter, M, callback, check_every, steps, 1)


def gmres(
    A: Any,
    b: array,
    x: array,
    tol: float | None = None,
    atol: float | None = None,
    restart: int = 31,
    maxiter: int | None = 0,
    M: Any = None,
    callback: Callable[[int, float, float], Any] | None = None,
    check_every: int = 31,
    use_cuda_graph: bool = True,
    is_left_preconditioner: bool = False,
    run: bool = True,
) -> Any:
    """Solves A x = b for any A, by minimal residuals. As `cg` otherwise.

    restart: after how many steps the Krylov space is begun anew; all are made at once.
    is_left_preconditioner: whether M stands before A or behind it.
    """
    del use_cuda_graph
    if not run:
        return GMRES(A, b, x, tol, atol, maxiter=maxiter, M=M, restart=restart, callback=callback,
                     check_every=check_every,
                     is_left_preconditioner=is_left_preconditioner)  # fmt: skip
    size = min(_positive("restart", restart) or 31, max(_size(b), 1))
    steps: Steps = lambda s: iterations.gmres(s, size, is_left_preconditioner)  # noqa: E731
    return _solve("gmres", A, b, x, tol, atol, maxiter, M, callback, check_every, steps, size)


def _options(
    name: str, tol: Any, atol: Any, maxiter: Any, check_every: Any, callback: Any
) -> tuple[int, int]:
    """Numbers of steps as integers. Raises UtilityError (E206) for options that mean nothing."""
    for what, given in (("tol", tol), ("atol", atol)):
        if given is None:
            continue
        if not is_number(given):
            raise refused(f"{name}: {what} must be a number, got {given!r}", kind=UtilityTypeError)
        if not given >= 0:
            raise refused(f"{name}: {what} must not be negative, or NaN: got {given!r}")
    if callback is not None and not callable(callback):
        raise refused(f"{name}: callback must be a function, got {callback!r}",
                      kind=UtilityTypeError)  # fmt: skip
    most = _count(name, "maxiter", 0 if maxiter is None else maxiter)
    return most, _count(name, "check_every", check_every)


def _count(name: str, what: str, given: Any) -> int:
    """A number of steps; of floats those that are whole are taken."""
    whole = is_number(given) and (hasattr(given, "__index__") or float(given).is_integer())
    if not whole:
        raise refused(f"{name}: {what} must be a whole number, got {given!r}",
                      kind=UtilityTypeError)  # fmt: skip
    if given < 0:
        raise refused(f"{name}: {what} must not be negative, got {given!r}")
    return int(given)


def _positive(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise refused(f"{name} is an integer, got {value!r}", kind=UtilityTypeError)
    if operator.index(value) < 1:
        raise refused(f"{name} is positive, got {value}")
    return operator.index(value)


def _size(a: Any) -> int:
    return int(a._parts.size) if isinstance(a, array) else 0


def _solve(
    name: str, A: Any, b: array, x: array, tol: float | None, atol: float | None,
    maxiter: int | None, M: Any, callback: Callable[[int, float, float], Any] | None,
    check_every: int, steps: Steps, stride: int,
) -> Any:  # fmt: skip
    """stride: how many steps are made between two values of `steps`."""
    check_arrays(name, b=b, x=x)
    if not b._info.floating or b._info.numpy.names is not None or b._ir.element != x._ir.element:
        raise refused(f"{name}: b and x are floats of one type, got {b.dtype.__name__} and "
                      f"{x.dtype.__name__}", code="E202")  # fmt: skip
    maxiter, check_every = _options(name, tol, atol, maxiter, check_every, callback)
    op = aslinearoperator(A)
    inverse = None if M is None else aslinearoperator(M)
    size = _size(b)
    if b.shape != x.shape or (isinstance(op, Dense) and op.shape != (size, size)):
        raise refused(f"{name}: a system of shape {op.shape} does not fit b of shape {b.shape} and "
                      f"x of shape {x.shape}")  # fmt: skip
    offsets = None if op.batch_offsets is None else op.batch_offsets._host().astype(np.int64)
    taped = x.requires_grad and events.tape() is not None
    matrix = op.matrix if isinstance(op, Dense) else None
    if taped and flows(b, *([] if matrix is None else [matrix])):
        _check_gradient(name, matrix)
    else:
        taped = False

    def solve() -> tuple[int, float, float]:
        for a in (b, x, *([] if matrix is None else [matrix])):
            a._lend()
        system = System(op, inverse, b, x, offsets)
        relative, absolute = _tolerances(b, tol, atol)
        need = np.maximum(absolute, relative * system.norms(system.b))
        found = _iterate(system, steps, need, maxiter or size, check_every, stride, callback)
        put(x, system.x.astype(x._info.numpy).reshape(x._parts.shape))
        if taped:
            _record(op, inverse, b, x, steps, need, max(maxiter, 4 * size))
        return found

    if check_every:
        refuse_in_graph(name, "pass check_every=0: results are arrays then")
        return solve()
    results = (array(np.zeros(1, np.int32)), *(array(np.zeros(1)) for _ in range(2)))

    def fill() -> None:
        count, *lengths = solve()
        for a, value in zip(results, (count, *(v * v for v in lengths)), strict=True):
            a.fill_(value)

    if not events.deferred(fill):
        fill()
    return results


def _tolerances(b: array, tol: float | None, atol: float | None) -> tuple[float, float]:
    if tol is None and atol is None:
        usual = _TOLERANCES[scalar_of(b._ir.element).bits]
        return usual, usual
    return min(tol or 0.0, 1e308), min(atol or 0.0, 1e308)


def _iterate(
    system: System, steps: Steps, need: NumpyArray, limit: int, check_every: int, stride: int,
    callback: Callable[[int, float, float], Any] | None,
) -> tuple[int, float, float]:  # fmt: skip
    """The number of steps, and residual and tolerance of the system that is worst off."""
    going, done = steps(system), 0
    with np.errstate(all="ignore"):
        now = next(going)
        while True:
            worst = int(np.argmax(now - need)) if now.size else 0
            told = (float(now[worst]), float(need[worst])) if now.size else (0.0, 0.0)
            if callback is not None:
                callback(done, *told)
            if done >= limit or bool(np.all(now <= need)) or not np.isfinite(now).all():
                return done, *told
            for _ in range(max(check_every // stride, 1)):
                now = next(going)
                done += stride
                if done >= limit:
                    break


# ---- on tapes


def _check_gradient(name: str, matrix: array | None) -> None:
    """Raises UtilityError (E110) where the transposed system is not known."""
    if matrix is not None:
        return
    if name not in _SYMMETRIC:
        raise refused(
            f"{name}: no gradient "
            "can flow through the "
            "solution, because the "
            "LinearOperator has no "
            "transpose", "pass a dense matrix, or b and x without gradients", "E110",
        )  # fmt: skip
    log_warning(f"{name}: gradients flow to b, and not to arrays that the LinearOperator's matvec "
                "reads")  # fmt: skip


def _record(
    op: LinearOperator, inverse: LinearOperator | None, b: array, x: array, steps: Steps,
    need: NumpyArray, limit: int,
) -> None:  # fmt: skip
    """Lets the tape solve the transposed system when it runs backward."""
    matrix = op.matrix if isinstance(op, Dense) else None

    def solve_transposed() -> None:
        into = x.grad
        if into is None:
            return
        given = into._host().astype(np.float64).reshape(-1)
        if matrix is not None:
            values = matrix._host().astype(np.float64)
            slope = np.linalg.solve(values.T, given)
        else:
            offsets = None if op.batch_offsets is None else op.batch_offsets._host()
            zero = array._allocate(x.shape, x._ir.element, True, x.device)
            system = System(op, inverse, into, zero, offsets)
            size = np.linalg.norm(given) / max(float(np.linalg.norm(b._host())), 1e-300)
            _iterate(system, steps, need * min(size, 1.0), limit, 10, 1, None)
            slope = system.x
        if b.requires_grad and b.grad is not None:
            _add(b.grad, slope)
        if matrix is not None and matrix.requires_grad and matrix.grad is not None:
            _add(matrix.grad, -np.outer(slope, x._host().astype(np.float64).reshape(-1)))

    used = [b, x] if matrix is None else [b, x, matrix]
    # Its own reads, after which the copy to x takes the gradient of x.
    cast(Any, events.tape()).record_func(solve_transposed, used)


def _add(grad: array, values: NumpyArray) -> None:
    grad.storage.before_write(grad.lo, grad.hi)
    parts = grad._host().astype(np.float64) + values.reshape(grad._parts.shape)
    grad._put(parts.astype(grad._info.numpy))


__all__ = [
    "CG", "CR", "GMRES", "BiCGSTAB", "LinearOperator", "LinearSolverState", "aslinearoperator",
    "bicgstab", "cg", "cr", "gmres", "preconditioner",
]  # fmt: skip
