"""Evaluates an operation at its values, in a precision that can be compared.

Float64 is the reference only where it does what the operation did: where it runs at all, gives the
recorded results, and is not rounded more coarsely inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.autograd.comparison.judgement import Comparison, Judgement
from engine.autograd.comparison.tolerance import AUTO_RTOL, Tolerance, largest, median
from engine.autograd.function.displaced import POWER
from engine.autograd.reference.differences import (
    FLOAT64,
    Slope,
    WorkingPrecision,
    extrapolated,
    fixed,
    nearer,
    slope,
    working_precision,
)
from engine.autograd.reference.noise import Line, fourth_differences
from engine.cached import cached_property
from engine.classes import dataclass
from engine.draws import default_rng
from engine.foreign.operation import Array, Cotangents, Operation, OperationFailed

ZERO = 1e-10  # of the outputs: what is below over a step of the inputs' size is no slope
REORDERED = 1e3  # units of rounding that sums in another order may make
SAME = 1e-3  # float64 and the operation's own precision may be so far apart
NEXT_TO_NOTHING = 1e-15  # of the typical size
FLOOR = 0.1  # of the typical size, by which small values are displaced
SINGLE = 2.0**-23
# Rounding inside of a float64 run above this part of the results is that of another precision.
ROUGH = 1e-10
SHAKEN = (4.0, 8.0, 16.0, 64.0, 256.0)  # units of rounding that inputs are moved by
ROUGHER = 64.0  # the same in units of rounding, of a run in single precision


class NotComparable(Exception):
    """Why there is nothing to compare: a verdict with its reason."""

    def __init__(self, verdict: Judgement) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


@dataclass(frozen=True)
class Evaluated:
    """An operation at some inputs. here: its outputs there, flat and one after the other."""

    op: Operation
    at: tuple[Array, ...]
    lifted: bool
    here: Array
    precision: WorkingPrecision
    tolerance: Tolerance

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where each output is in `here`."""
        return _spans(self.op)

    @cached_property
    def typical(self) -> tuple[float, ...]:
        """The size of each input: the root mean square, 1 where that is zero."""
        return tuple(_size(x) for x in self.at)

    @property
    def rtol(self) -> float:
        """What differences in this precision can tell."""
        if not self.precision.coarse:
            return AUTO_RTOL
        return float(max(AUTO_RTOL, 100.0 * self.precision.epsilon ** (1.0 - POWER)))

    @property
    def relative(self) -> float | None:
        """The relative error that is allowed; None where an absolute one is asked for, too."""
        return self.rtol if self.tolerance.auto else self.tolerance.relative

    def begun(self) -> dict[tuple[int, int], Comparison]:
        """A comparison for each input and output, of which nothing is known."""
        sides = range(len(self.op.inputs)), range(len(self.op.outputs))
        return {pair: Comparison(tolerance=self.relative) for pair in itertools.product(*sides)}

    def allowed(self, ref: Array, near: Array) -> Array:
        """The largest error allowed. near: the largest derivative near by."""
        if not self.tolerance.auto:
            return self.tolerance.of(ref, near)
        iterated = self.op.iterated * np.maximum(np.abs(ref), near)
        if self.precision.coarse:
            return np.maximum(self.rtol * np.abs(ref) + 0.1 * self.rtol * near, iterated)
        return np.maximum(self.tolerance.of(ref, near), iterated)

    def line(self, moves: Mapping[int, Array]) -> Line:
        """The outputs with inputs displaced by t times directions."""

        def values(t: float) -> Array:
            x: list[Array] = list(self.at)
            for k, v in moves.items():
                x[k] = x[k] + t * v
                if not self.lifted:
                    x[k] = self.op.inputs[k].rounded(x[k])
            return outputs(self.op, x, self.lifted)

        return values

    @cached_property
    def mirrored(self) -> tuple[bool, ...]:
        """Which inputs are symmetric matrices of which one triangle is read: they stay symmetric.

        What reads one triangle means both, and so does its gradient.
        """
        return tuple(reads_a_triangle(self, k) for k in range(len(self.at)))

    def mirrored_alike(self, k: int, v: Array) -> Array:
        """Random numbers of an input's shape, symmetric where the input has to stay so."""
        return (v + np.swapaxes(v, -1, -2)) / 2.0 if self.mirrored[k] else v

    def displaced(self, k: int, scalar: int) -> tuple[int, ...]:
        """The scalars of an input that are displaced with one: itself, and its mirror image."""
        if not self.mirrored[k]:
            return (scalar,)
        n = self.at[k].shape[-1]
        block, place = divmod(scalar, n * n)
        row, col = divmod(place, n)
        return (scalar,) if row == col else (scalar, block * n * n + col * n + row)

    def column(self, k: int, scalar: int) -> Line:
        """The outputs with one scalar of an input displaced by t, and its mirror image with it."""
        x = self.at[k]
        unit = np.zeros(x.size)
        unit[list(self.displaced(k, scalar))] = 1.0
        plain = self.line({k: unit.reshape(x.shape)})
        if self.lifted:
            return plain
        begin = float(x.reshape(-1)[scalar])

        def values(t: float) -> Array:
            moved = float(self.op.inputs[k].rounded(np.asarray(begin + t))) - begin
            if moved == t or moved == 0.0:
                return plain(t)
            return self.here + (plain(t) - self.here) * (t / moved)

        return values

    def scale(self, k: int, scalar: int) -> float:
        """How far a scalar may be displaced: its own size, unless it is next to nothing."""
        x, typical = abs(float(self.at[k].reshape(-1)[scalar])), self.typical[k]
        return x if np.isfinite(x) and x > NEXT_TO_NOTHING * typical else FLOOR * typical

    def by_scalar(self, k: int, scalar: int, line: Line) -> Slope:
        """The derivative by one scalar, along its line."""
        near, far = self.scale(k, scalar), FLOOR * self.typical[k]
        found = self.slope(line, near)
        if near < far and not self.tolerance.eps:
            wide = self.slope(line, far)  # a small value may be part of a large sum
            return nearer(wide, found)
        return found

    def nothing(self, values: Array, i: int) -> Array:
        """Derivatives of such values by an input that are no more than rounding of a zero."""
        rounding = ZERO if not self.precision.coarse else 8.0 * self.precision.epsilon
        return np.asarray(rounding * np.abs(values) / self.typical[i])

    def roughly(self, line: Line) -> Slope:
        """The derivative along a direction by one step, to find out what is behind a difference."""
        return extrapolated(line, self.tolerance.eps or self.precision.step, self.precision)

    def slope(self, line: Line, scale: float, near: float | None = None) -> Slope:
        """The derivative along a line. near: the largest derivative near by, where it is known."""
        eps = self.tolerance.eps
        if eps is not None:
            take = fixed if self.tolerance.literal else extrapolated
            return take(line, eps, self.precision)
        return slope(line, scale, self._matters(near), self.precision)

    def _matters(self, near: float | None) -> Callable[[Array], Array]:
        return lambda d: self.allowed(d, np.asarray(largest(d) if near is None else near))

    def gradients(self, output: int, w: Array) -> list[Array | None]:
        """The gradients of all inputs by a cotangent of one output."""
        return self.vjp(self.cotangents(output, w), self.lifted)

    def unsteady(self, output: int, w: Array) -> list[Array]:
        """How far the gradients by a cotangent move where all inputs move by their rounding.

        No reference can be asked for more than that. Both sides and the middle must be
        apart, else they are at a branch, or at a value of its own; and what moves without the
        inputs has no such excuse. In the shapes of the inputs.
        """
        rng = default_rng(0x5A4E)
        here = _zeros(self, self.gradients(output, w))
        again = _zeros(self, self.gradients(output, w))
        out = [np.zeros(x.shape) for x in self.at]
        for units in SHAKEN:
            moves = [rng.uniform(0.5, 1.0, x.shape) * rng.choice([-1, 1], x.shape) for x in self.at]
            sides = []
            for size in (units, -units):
                at = []
                for x, v, move in zip(self.at, self.op.inputs, moves, strict=True):
                    moved = x * (1.0 + size * self.precision.epsilon * move)
                    at.append(moved if self.lifted else v.rounded(moved))
                sides.append(_zeros(self, replace(self, at=tuple(at)).gradients(output, w)))
            with np.errstate(all="ignore"):
                for k, (g, right, left) in enumerate(zip(here, *sides, strict=True)):
                    apart = [np.abs(a - b) for a, b in ((right, g), (left, g), (right, left))]
                    out[k] = np.fmax(out[k], np.fmin.reduce(apart))
        return [np.where(g == h, n, 0.0) for g, h, n in zip(here, again, out, strict=True)]

    def cotangents(self, output: int, w: Array) -> list[Array | None]:
        """One cotangent as those of all outputs."""
        out: list[Array | None] = [None] * len(self.op.outputs)
        out[output] = w.reshape(self.op.outputs[output].value.shape)
        return out

    def vjp(self, cotangents: Cotangents, lifted: bool) -> list[Array | None]:
        """The gradients of all inputs."""
        found = self.op.vjp(self.at, cotangents, lifted)
        if len(found) != len(self.at):
            raise OperationFailed(f"its gradient has {len(found)} parts for {len(self.at)} inputs")
        for g, v in zip(found, self.op.inputs, strict=True):
            if g is not None and g.shape != v.value.shape:
                raise OperationFailed(
                    f"the gradient by `{v.name}` has shape {g.shape}, not {v.value.shape}"
                )
        return list(found)

    def elsewhere(self, k: int, scalars: Sequence[int], rng: np.random.Generator) -> Evaluated:
        """The same with other values of some scalars of an input, of the size of most of it."""
        x = self.at[k].reshape(-1).copy()
        usual = median(np.abs(x[np.isfinite(x)])) or self.typical[k]
        for scalar in scalars:
            sign = -1.0 if x[scalar] < 0 else 1.0
            x[list(self.displaced(k, scalar))] = sign * usual * rng.uniform(0.5, 1.5)
        at = list(self.at)
        moved = x.reshape(at[k].shape)
        at[k] = moved if self.lifted else self.op.inputs[k].rounded(moved)
        return replace(self, at=tuple(at), here=outputs(self.op, at, self.lifted))

    def beside(self, rng: np.random.Generator) -> Evaluated:
        """The same a little further, where there are no kinks."""
        far = 1e-3 if not self.precision.coarse else 4.0 * self.precision.step
        at = []
        for k, x in enumerate(self.at):
            size = np.maximum(np.abs(x), FLOOR * self.typical[k])
            moved = x + far * size * self.mirrored_alike(k, rng.standard_normal(x.shape))
            at.append(moved if self.lifted else self.op.inputs[k].rounded(moved))
        return replace(self, at=tuple(at), here=outputs(self.op, at, self.lifted))


def evaluated(op: Operation, tolerance: Tolerance) -> Evaluated:
    """The operation, ready to be compared. Raises NotComparable, OperationFailed."""
    x: tuple[Array, ...] = tuple(v.value for v in op.inputs)
    own, again = (outputs(op, x, False) for _ in range(2))
    recorded = _flat([v.value for v in op.outputs])
    eps = max(v.epsilon for v in (*op.inputs, *op.outputs))
    spread = _apart(op, own, again, eps)
    if spread:
        raise NotComparable(Judgement(
            "nondeterministic", f"run twice at the same inputs, its results differ by {spread:.1e} "
            "of the largest"))  # fmt: skip
    if _apart(op, own, recorded, eps):
        raise NotComparable(Judgement(
            "inconclusive", "a second run at the same inputs gives other results: "
                            "it reads something else that has changed"))  # fmt: skip
    floats64 = eps == FLOAT64.epsilon
    exact = own if floats64 else _lifted(op, x, own, eps)
    if exact is not None:
        part = _part_apart(op, exact, again if floats64 else outputs(op, x, True))
        if part:
            raise NotComparable(Judgement(
                "nondeterministic", f"run twice at the same inputs, an element of its results "
                f"differs by {part:.1e} of itself"))  # fmt: skip
        found = Evaluated(op, x, not floats64, exact, FLOAT64, tolerance)
        if not floats64 and not _gives_gradient(found):
            return Evaluated(op, x, False, own, working_precision(eps), tolerance)
        if not _rounds(found):
            return replace(found, lifted=True)
        if floats64:
            return replace(found, precision=working_precision(SINGLE), lifted=True)
        if eps > SINGLE and not _rounds(found, SINGLE):
            return replace(found, precision=working_precision(SINGLE), lifted=True)
    return Evaluated(op, x, False, own, working_precision(eps), tolerance)


def reads_a_triangle(e: Evaluated, k: int) -> bool:
    """Whether an input is a symmetric matrix, or several, of which one triangle does not matter."""
    x = e.at[k]
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] < 2 or not np.all(np.isfinite(x)):
        return False
    if not largest(x - np.swapaxes(x, -1, -2)) <= 64.0 * e.op.inputs[k].epsilon * largest(x):
        return False
    rng = default_rng(0x3A)
    move = 1e-3 * e.typical[k] * rng.uniform(0.5, 1.0, x.shape)
    matters = []
    for part in (np.triu(move, 1), np.tril(move, -1)):
        try:
            there = e.line({k: part})(1.0)
        except OperationFailed:
            return False
        matters.append(not np.array_equal(there, e.here, equal_nan=True))
    return matters.count(True) == 1


def _zeros(e: Evaluated, gradients: Sequence[Array | None]) -> list[Array]:
    """The gradients, zeros where there is none."""
    return [np.zeros(x.shape) if g is None else g for x, g in zip(e.at, gradients, strict=True)]


def _gives_gradient(e: Evaluated) -> bool:
    """Whether the handwritten gradient, too, can be had in float64."""
    try:
        e.gradients(0, np.zeros(e.op.outputs[0].value.shape))
    except OperationFailed:
        return False
    return True


def outputs(op: Operation, inputs: Sequence[Array], lifted: bool) -> Array:
    """The outputs, flat and one after the other."""
    found = op.primal(inputs, lifted)
    shapes = [np.shape(y) for y in found]
    if shapes != [v.value.shape for v in op.outputs]:
        raise OperationFailed("at other inputs it has results of other shapes")
    return _flat(found)


def _spans(op: Operation) -> tuple[slice, ...]:
    """Where each output is among all of them, flat."""
    ends = np.cumsum([v.value.size for v in op.outputs]).tolist()
    return tuple(slice(b, e) for b, e in zip([0, *ends[:-1]], ends, strict=True))


def _flat(values: Sequence[Array]) -> Array:
    return np.concatenate([np.zeros(0), *(np.asarray(y, np.float64).reshape(-1) for y in values)])


def _size(x: Array) -> float:
    finite = x[np.isfinite(x)]
    size = float(np.sqrt(np.mean(finite * finite))) if finite.size else 0.0
    return size if np.isfinite(size) and size > 0 else 1.0


def _apart(op: Operation, a: Array, b: Array, eps: float) -> float:
    """How far results are apart, by the largest, where that is more than sums in another order."""
    worst = 0.0
    for part in _spans(op):
        with np.errstate(all="ignore"):
            off = np.where(a[part] == b[part], 0.0, np.abs(a[part] - b[part]))
        off = np.where(np.isnan(a[part]) & np.isnan(b[part]), 0.0, off)
        most, size = float(np.max(off, initial=0.0)), largest(a[part])
        if not most <= REORDERED * eps * size:
            worst = max(worst, most / size if size and np.isfinite(most) else np.inf)
    return worst


def _part_apart(op: Operation, a: Array, b: Array) -> float:
    """How far results in float64 are apart, by elements, as a part of these; 0 for rounding."""
    worst = 0.0
    for part in _spans(op):
        with np.errstate(all="ignore"):
            off, size = np.abs(a[part] - b[part]), np.abs(a[part])
            bad = (off > SAME * size) & (off > REORDERED * FLOAT64.epsilon * largest(size))
            worst = max(worst, float(np.max(np.where(bad, off / size, 0.0), initial=0.0)))
    return worst


def _lifted(op: Operation, x: Sequence[Array], own: Array, eps: float) -> Array | None:
    """The outputs in float64; None where they are not those that the operation had."""
    try:
        exact = outputs(op, x, True)
    except OperationFailed:
        return None
    if np.array_equal(np.isfinite(own), np.isfinite(exact)):
        for part in _spans(op):
            ok = np.isfinite(own[part])
            off = np.abs(own[part] - exact[part])[ok]
            if np.any(off > max(SAME, 64.0 * eps) * largest(own[part])) and not _noisy(op, x, off):
                return None
        return exact
    return None


def _noisy(op: Operation, x: Sequence[Array], off: Array) -> bool:
    """Whether the operation's own rounding is as large as that."""
    rng = default_rng(0x0FF)
    moves = [rng.standard_normal(a.shape) * np.abs(a) for a in x]
    eps = max(v.epsilon for v in op.inputs)

    def line(t: float) -> Array:
        moved = [v.rounded(a + t * m) for v, a, m in zip(op.inputs, x, moves, strict=True)]
        return outputs(op, moved, False)

    noise = fourth_differences(line, 64.0 * 64.0 * eps)
    return bool(largest(off) <= 64.0 * largest(noise))


def _rounds(e: Evaluated, eps: float = FLOAT64.epsilon) -> bool:
    """Whether something inside is rounded more coarsely than that."""
    fine = eps <= FLOAT64.epsilon
    steps, rough = ((1e-4, 1e-9), ROUGH) if fine else ((1e-2, 1e-4), ROUGHER * eps)
    rng = default_rng(0xF64)
    moves = {
        k: rng.uniform(0.5, 1.0, x.shape) * np.where(np.isfinite(x), np.abs(x), 0.0)
        for k, x in enumerate(e.at)
    }
    # An input by itself, too: another that is not rounded would move the results in its place.
    alone = [{k: v} for k, v in moves.items() if v.size and len(moves) > 1]
    return any(_rounds_along(e, e.line(m), steps, rough, eps) for m in [moves, *alone])


def _rounds_along(
    e: Evaluated, line: Line, steps: tuple[float, float], rough: float, eps: float
) -> bool:
    with np.errstate(all="ignore"):
        far, near = (np.abs(line(t) - e.here) for t in steps)
        size = np.abs(e.here)
        moves_far = np.isfinite(far) & (far > 1e-6 * size)
        stands = 2 * np.sum(moves_far & (near == 0.0)) > np.sum(moves_far)
        noise = fourth_differences(line, 64e-10 if eps <= FLOAT64.epsilon else 64.0 * eps)
        noisy = np.isfinite(size) & (noise > rough * np.maximum(size, largest(far)))
        moving = np.isfinite(far) & (far > 0.0)
    # Rounding inside is in most of an output; one chaotic element is noisy by itself.
    most = (2 * np.sum(noisy[s]) > np.sum((moving | noisy)[s]) for s in e.spans)
    return bool(stands or any(most))
