"""Jacobians of Python functions that launch kernels: by a tape, or by running them again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.blocks import Dense
from engine.autograd.guard import Keeper, PrivateTape, keeping
from engine.autograd.oracle import Slope
from engine.autograd.subject import Pair, Roles, parameter_names
from engine.autograd.variables import Variable, variable
from engine.lang.structs import Argument
from engine.runtime.arguments import Arguments
from engine.runtime.array import array
from engine.runtime.errors import fail
from engine.runtime.indexed import indexedarray
from engine.runtime.structs import Struct

Array = NDArray[Any]


@dataclass
class FunctionSubject:
    """A function with its arguments. declared: arrays to take where it returns none.

    inputs: name, type and variable of each argument. named: names of outputs.
    """

    function: Callable[..., Any]
    key: str
    given: Sequence[Any]
    declared: Sequence[Any]
    inputs: dict[int, tuple[str, Any, Variable | None]]
    named: dict[int, str] = field(default_factory=dict)

    def run(self) -> tuple[PrivateTape, list[Any]]:
        """Calls the function on a tape of its own. Gives that, and the arrays that came out."""
        tape = PrivateTape()
        with tape:
            out = self.function(*self.given)
        return tape, self._results(out)

    def _results(self, out: Any) -> list[Any]:
        found = self.declared if out is None else out
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        if not any(isinstance(a, (array, Struct, indexedarray)) for a in found):
            raise fail(
                "E202", f"function {self.key!r} returns no array",
                "it returned " + ("None" if out is None else type(out).__name__),
                help="return the arrays to differentiate, or name them in outputs=",
            )  # fmt: skip
        return found

    def roles(self, results: Sequence[Any]) -> Roles:
        """Inputs and outputs by index. results: what a run gave."""
        outputs: dict[int, tuple[str, Any, Variable | None]] = {}
        for k, a in enumerate(results):
            name = self.named.get(k, f"output_{k}")
            outputs[k] = (name, _dtype(a), _variable(k, name, a))
        return Roles(self.key, self.inputs, outputs)


def function_subject(
    function: Any, inputs: Any, outputs: Any, labels: Sequence[str] = ()
) -> FunctionSubject:
    """A call of a function. Raises LaunchError (E201, E202) for what cannot be called."""
    if not callable(function):
        raise fail("E202", f"expected a kernel or a function, got {function!r}")
    if isinstance(inputs, (array, Struct)) or not hasattr(inputs or (), "__iter__"):
        raise fail("E201", "inputs is a list of arguments", f"got {inputs!r}",
                   help="write inputs=[x]")  # fmt: skip
    given = list(inputs or ())
    declared = [outputs] if isinstance(outputs, (array, Struct)) else list(outputs or ())
    key = getattr(function, "__name__", type(function).__name__)
    if not labels:
        _check_call(function, key, given)
        labels = parameter_names(function, len(given))
    named = {
        k: (label, _dtype(a), _variable(k, label, a))
        for k, (label, a) in enumerate(zip(labels, given, strict=True))
    }
    return FunctionSubject(function, key, given, declared, named)


def _check_call(function: Any, key: str, given: Sequence[Any]) -> None:
    """Raises LaunchError (E201) for arguments that the function does not take."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not tell
        return
    try:
        signature.bind(*given)
    except TypeError as error:
        raise fail("E201", f"function {key!r} cannot be called with these inputs", str(error),
                   help=f"it is {key}{signature}: inputs= has one for each parameter",
        ) from None  # fmt: skip


def _dtype(value: Any) -> Any:
    """The type of an array's elements, or of a struct; None for what is neither."""
    if _kind(value) is None:
        return None
    return getattr(value, "dtype", type(value))


def leaves_of(value: Any) -> list[Any]:
    """The arrays and values that an argument stands for."""
    kind = _kind(value)
    if kind is None:
        return []
    return list(Arguments([Argument("", kind)]).split(0, value))


def _kind(value: Any) -> Any:
    if isinstance(value, (array, indexedarray)):
        return value._ir
    return type(value).__ir_type__ if isinstance(value, Struct) else None


def _variable(index: int, label: str, value: Any) -> Variable | None:
    kind = _kind(value)
    if kind is None:
        return None
    leaves = [v if isinstance(v, array) else None for v in leaves_of(value)]
    return variable(index, label, kind, leaves)


def arrays_of(values: Sequence[Any]) -> list[array]:
    """All arrays among arguments, once each."""
    found = [v for a in values for v in leaves_of(a) if isinstance(v, array)]
    whole = [v._whole or v for v in found]
    return list({id(a): a for a in whole}.values())


@contextmanager
def unharmed(subject: FunctionSubject) -> Iterator[Keeper]:
    """Runs of the function leave every array and gradient as it was, also after an exception."""
    with keeping(arrays_of([*subject.given, *subject.declared])) as keeper:
        yield keeper


def adjoint_rows(
    tape: PrivateTape, results: Sequence[Any], subject: FunctionSubject, pairs: Sequence[Pair],
    dense: Dense, limit: int,
) -> None:  # fmt: skip
    """Fills matrices row by row by backward passes of the tape; to be called `unharmed`."""
    inputs = [leaves_of(a) for a in subject.given]
    loose = arrays_of([*subject.given, *results])
    for b in {id(p.output): p.output for p in pairs}.values():
        targets = [p for p in pairs if p.output is b]
        outs = leaves_of(results[b.index])
        for part in b.parts:
            out = outs[part.leaf]
            for f, row in enumerate(part.index().tolist()):
                if 0 < limit <= row:
                    continue
                clear(tape, loose)
                seed(out, f, 1.0)
                tape.backward(grads={})
                for p in targets:
                    matrix = dense.entries[p.key]
                    for piece in p.input.parts:
                        grad = inputs[p.input.index][piece.leaf].grad
                        matrix[row, piece.places()] = grad._parts.reshape(-1)


def clear(tape: PrivateTape, loose: Sequence[array]) -> None:
    """Sets all gradients to zero: those of the tape, and of arrays that may not be on it."""
    tape.zero()
    for a in loose:
        grad = a.grad
        if grad is not None:
            grad.zero_()


def seed(a: array, scalar: int, value: float) -> None:
    """Sets one scalar of an array's gradient."""
    grad = a.grad
    assert grad is not None
    grad.storage.before_write(grad.lo, grad.hi)
    put(grad._parts, scalar, value)


def put(parts: Array, scalar: int, value: float) -> None:
    """Sets the scalar of that number, in row-major order, also where strides forbid a flat view."""
    parts[np.unravel_index(scalar, parts.shape)] = value


# ---- differences


class OwnLines:
    """The function as one of a single displaced scalar, in the arrays' own precision.

    Every run starts from the same memory and is undone afterwards.
    """

    def __init__(
        self, subject: FunctionSubject, keeper: Keeper, outputs: Sequence[Variable],
        results: Sequence[Any],
    ) -> None:  # fmt: skip
        """results: what a run gave, of which `outputs` are variables."""
        self.subject = subject
        self.keeper = keeper
        self.outputs = outputs
        leaves = [leaves_of(results[v.index])[p.leaf] for v in outputs for p in v.parts]
        # The relative rounding of the outputs.
        self.precision = max(float(np.finfo(a._parts.dtype).eps) for a in leaves)

    def at(self, a: array, scalar: int, t: float) -> tuple[float, Array]:
        """By how much the scalar really moved, and the outputs, one after the other."""
        parts = a._parts
        place = np.unravel_index(scalar, parts.shape)
        with np.errstate(all="ignore"):
            before = parts[place]
            moved = parts.dtype.type(float(before) + t)
            a.storage.before_write(a.lo, a.hi)
            parts[place] = moved
            try:
                return float(moved) - float(before), self.values()
            finally:
                self.keeper.restore()

    def along(self, moves: Sequence[tuple[array, Array]], t: float) -> Array:
        """Outputs with arrays displaced by t times directions."""
        try:
            for a, v in moves:
                a.storage.before_write(a.lo, a.hi)
                a._parts[...] = (a._parts + t * v).astype(a._parts.dtype)
            return self.values()
        finally:
            self.keeper.restore()

    def values(self) -> Array:
        """The outputs of a run as float64, one variable after the other."""
        results = self.subject.run()[1]
        out = [np.zeros(0)]
        for v in self.outputs:
            flat = np.empty(v.size)
            leaves = leaves_of(results[v.index]) if v.index < len(results) else []
            for part in v.parts:
                found = leaves[part.leaf]._parts if part.leaf < len(leaves) else None
                if found is None or found.size != part.size:
                    raise self._changed(v)
                flat[part.places()] = found.reshape(-1)
            out.append(flat)
        return np.concatenate(out)

    def _changed(self, v: Variable) -> Exception:
        return fail(
            "E202", f"function {self.subject.key!r} returns something else from run to run",
            f"{v.label} had {v.size} numbers at first",
            help="it is run again and again, and must return arrays of the same shapes",
        )  # fmt: skip


# The step that balances rounding and the fourth-order error of extrapolated differences, as a
# power of the precision; and what to multiply it by, for the search.
POWER = 0.2
FACTORS = (1.0, 4.0, 0.25, 1.0 / 16.0)
FINER = tuple(0.25**k for k in (3, 4, 5, 6, 7))
TINY = 1e-45  # what underflows in float32 says nothing


def own_slope(lines: OwnLines, a: array, scalar: int, typical: float, eps: float | None) -> Slope:
    """The derivative of all outputs by one scalar, with a bound of its error.

    eps: the step of a plain central difference; None searches one (see `oracle`).
    """
    if eps is not None:
        ahead, behind = (lines.at(a, scalar, s)[1] for s in (eps, -eps))
        with np.errstate(all="ignore"):
            value = (ahead - behind) / (2.0 * eps)
        return Slope(value, np.zeros_like(value))
    precision = max(float(np.finfo(a._parts.dtype).eps), lines.precision)
    x = abs(float(a._parts[np.unravel_index(scalar, a._parts.shape)]))
    largest = max(x, 0.1 * typical)
    sizes = [largest * f for f in (*FACTORS, *FINER)]
    if 0 < x < largest:  # the function may change over its own size
        sizes += [x * f for f in (FACTORS[0], *FINER) if x * f < sizes[-1]]
    best: Array | None = None
    error: Array | None = None
    smallest, moves = np.inf, np.zeros(1, bool)
    for size in sizes:
        h = size * precision**POWER
        value, bound, moved = _extrapolated(lines, a, scalar, h, precision)
        moves = moves | moved
        if best is None or error is None:
            best, error = value, bound
        else:
            apart = np.abs(value - best)
            contradicted = apart > error + bound
            # Over a smaller step, a function that is steep or has a kink near by shows it.
            closer = (h < smallest) & (bound <= 0.25 * apart)
            better = np.where(contradicted, closer, bound < error)
            best, error = np.where(better, value, best), np.where(better, bound, error)
        smallest = min(smallest, h)
        if h != sizes[0] and np.all(~moves | (error <= 100 * precision * np.abs(best))):
            break
    assert best is not None and error is not None
    return Slope(best, error)


def _extrapolated(
    lines: OwnLines, a: array, scalar: int, h: float, precision: float
) -> tuple[Array, Array, Array]:
    """Richardson's extrapolation of central differences with steps h and h/2.

    Gives also a bound of its error, and which outputs moved at all.
    """
    far, near = ([lines.at(a, scalar, s * k) for s in (1.0, -1.0)] for k in (h, h / 2.0))
    with np.errstate(all="ignore"):
        wide, narrow = ((x[0][1] - x[1][1]) / (x[0][0] - x[1][0]) for x in (far, near))
        size = np.maximum(np.abs(near[0][1]), np.abs(near[1][1]))
        rounding = (8.0 * precision * size + 4.0 * TINY) / h
        value = (4.0 * narrow - wide) / 3.0
        bound = np.abs(narrow - wide) + rounding
        moved = (far[0][1] != far[1][1]) | (near[0][1] != near[1][1])
        return value, np.where(np.isfinite(value), bound, np.inf), moved


def differences(
    lines: OwnLines, pairs: Sequence[Pair], dense: Dense, eps: float | None, limit: int
) -> None:
    """Fills matrices column by column; to be called `unharmed`."""
    for v in {id(p.input): p.input for p in pairs}.values():
        targets = [p for p in pairs if p.input is v]
        leaves = leaves_of(lines.subject.given[v.index])
        for part in v.parts:
            a = leaves[part.leaf]
            typical = typical_size(a)
            for f, col in enumerate(part.index().tolist()):
                if 0 < limit <= col:
                    continue
                slope = own_slope(lines, a, f, typical, eps).value
                for p in targets:
                    dense.entries[p.key][:, col] = slope[span(lines.outputs, p.output)]


def typical_size(a: array) -> float:
    """The root mean square of an array's finite values, 1 where that is zero."""
    x = a._parts.astype(np.float64)
    x = x[np.isfinite(x)]
    size = float(np.sqrt(np.mean(x * x))) if x.size else 0.0
    return size if np.isfinite(size) and size > 0 else 1.0


def span(outputs: Sequence[Variable], v: Variable) -> slice:
    """Where a variable's scalars are among those of all outputs."""
    begin = 0
    for other in outputs:
        if other is v:
            break
        begin += other.size
    return slice(begin, begin + v.size)


__all__ = [
    "FunctionSubject", "OwnLines", "adjoint_rows", "differences", "function_subject", "own_slope",
    "unharmed",
]  # fmt: skip
