"""Evaluates the float64 launch at displaced inputs, along a direction or by one element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import Judgement
from engine.autograd.comparison.tolerance import Tolerance, median
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations
from engine.autograd.reference import differences
from engine.autograd.reference.differences import Slope
from engine.autograd.reference.noise import Line
from engine.cached import cached_property

Array = NDArray[Any]

# Inputs below it are small beside numbers of a usual size.
TINY = 1e-2
TOGETHER = 1 << 16  # derivatives that are worked out at once


class DisplacedLaunch:
    """Evaluates the outputs of a launch, flat and concatenated, at displaced inputs.

    Elements that are NaN or infinite before the launch have no derivative, nor have outputs
    that become so through them: the first are never displaced, the second stand as zeros.
    `live` marks the other elements, by array; `nonfinite` names an argument that is not wholly
    live. What a launch makes of finite values is its own, and stays live.
    """

    def __init__(
        self, launch: Evaluations, inputs: Sequence[str], outputs: Sequence[str],
        tolerance: Tolerance,
    ) -> None:  # fmt: skip
        self.evaluations = launch
        self.exact = launch.exact
        self.outputs = outputs
        self.tolerance = tolerance
        self.precision = differences.working_precision(launch.epsilon)
        self.live: dict[str, Array] = {}
        self._column: tuple[str, int, Array] | None = None
        before = self.exact.initial
        fed = [a for a in launch.readable if not np.all(np.isfinite(before[a]))]
        after = self.exact.forward()
        rows = []
        for b in outputs:
            finite, was = np.isfinite(after[b]), np.isfinite(before[b])
            rows.append((finite | (was if not fed else False)).ravel())
        self.live_rows = np.concatenate(rows)
        self.spans: dict[str, slice] = {}
        begin = 0
        for b in outputs:
            self.spans[b] = slice(begin, begin + launch.size(b))
            begin = self.spans[b].stop
        for a in inputs:
            self.live[a] = np.isfinite(self.exact.initial[a])
        broken = [a for a in inputs if not self.live[a].all()]
        broken += [b for b in outputs if not self.live_rows[self.spans[b]].all()]
        self.nonfinite = broken[0] if broken else ""
        self._all_rows = bool(self.live_rows.all())
        self.asked_path = False
        self._inputs = tuple(inputs)

    @property
    def unjudged(self) -> Judgement:
        """The verdict on what NaN among the arguments makes meaningless."""
        return Judgement("inconclusive", f"argument {self.nonfinite!r} holds NaN or Inf at launch")

    def leave_out_reached(self) -> None:
        """Has inputs stand as not live whose gradient is no number because NaN or Inf reach it.

        They hide a wrong gradient of all others else. Where the gradient is no number with usual
        numbers in their place either, that is the launch's own, and stays live.
        """
        if not self.nonfinite:
            return
        exact = self.exact
        reached = self._without_gradient()
        usual = {}
        for name in self.evaluations.readable:
            x = exact.initial[name]
            finite = np.isfinite(x)
            usual[name] = np.where(finite, x, median(x[finite]) if finite.any() else 1.0)
        with exact.at(usual):
            own = self._without_gradient()
        for a in self.live:
            self.live[a] = self.live[a] & (own[a] | ~reached[a])

    def _without_gradient(self) -> dict[str, Array]:
        """Which elements of inputs have a gradient by live outputs that is not finite."""
        out = {a: np.zeros(live.shape, bool) for a, live in self.live.items()}
        for b, part in self.spans.items():
            live = self.live_rows[part].reshape(self.exact.initial[b].shape)
            found = self.exact.vjp({b: np.where(live, 1.0, 0.0)})
            for a in out:
                out[a] |= ~np.isfinite(found[a])
        return out

    @cached_property
    def on_path(self) -> DisplacedLaunch | None:
        """The launch with what its floats decided, so that it has no kinks; None without one.

        Not where steps were asked for: they are meant for the launch itself.
        """
        self.asked_path = True
        found = self.evaluations.path() if self.tolerance.eps is None else None
        made = found and DisplacedLaunch(found, self._inputs, self.outputs, self.tolerance)
        return made if made and np.array_equal(made.live_rows, self.live_rows) else None

    # ---- evaluations

    def along(self, a: str, v: Array) -> Line:
        """Outputs with input `a` displaced by t times v."""
        start = self.exact.initial[a]

        def evaluate(t: float) -> Array:
            np.copyto(self.exact.memory[a], np.where(v == 0, start, start + t * v))
            out = self._outputs(a)
            np.copyto(self.exact.memory[a], start)
            return out

        return evaluate

    def along_all(self, moves: Mapping[str, Array]) -> Line:
        """Outputs with several inputs displaced at once, by t times a direction each."""
        exact = self.exact

        def evaluate(t: float) -> Array:
            for a, v in moves.items():
                start = exact.initial[a]
                np.copyto(exact.memory[a], np.where(v == 0, start, start + t * v))
            out = self._outputs(*moves)
            for a in moves:
                np.copyto(exact.memory[a], exact.initial[a])
            return out

        return evaluate

    def weighted(self, moves: Mapping[str, Array], weights: Mapping[str, Array]) -> Line:
        """A weighted sum of each output, with inputs displaced by t times a direction each."""
        exact = self.exact
        steps = [(exact.memory[a], exact.initial[a], np.where(v == 0, 0.0, v))
                 for a, v in moves.items()]  # fmt: skip
        others = [name for name in exact.changed if name not in moves]
        # What is not finite is never moved, and its outputs count for nothing.
        partly = not (all(self.live[a].all() for a in moves) and self.live_rows.all())

        def evaluate(t: float) -> Array:
            with np.errstate(all="ignore"):
                for x, start, step in steps:
                    np.multiply(step, t, out=x)
                    np.add(x, start, out=x)
                    if partly:
                        np.copyto(x, start, where=step == 0)
                for name in others:
                    np.copyto(exact.memory[name], exact.initial[name])
                exact.forward_again()
                sums = [_inner(w, exact.memory[b], partly) for b, w in weights.items()]
            for x, start, _ in steps:
                np.copyto(x, start)
            return np.asarray(sums)

        return evaluate

    def element(self, a: str, col: int) -> Line:
        """Outputs with one element of `a` displaced by t."""
        flat, x = self.exact.memory[a].reshape(-1), self.value(a, col)
        changed, start = a in self.exact.changed, self.exact.initial[a]

        def evaluate(t: float) -> Array:
            if t == 0.0:
                return self._here
            if changed:  # whatever ran last has left its results there
                np.copyto(self.exact.memory[a], start)
            flat[col] = x + t
            out = self._outputs(a)
            flat[col] = x
            return out

        return evaluate

    @cached_property
    def _here(self) -> Array:
        """The outputs where nothing is displaced. Not to be changed."""
        return self._outputs()

    def _outputs(self, *displaced: str) -> Array:
        exact = self.exact
        for name in exact.changed:
            if name not in displaced:
                np.copyto(exact.memory[name], exact.initial[name])
        exact.forward_again()
        out = np.concatenate([exact.memory[b].ravel() for b in self.outputs])
        if not self._all_rows:
            out[~self.live_rows] = 0.0
        return out.astype(np.float64, copy=False)

    # ---- forward mode

    def forward_along(self, a: str, v: Array) -> Array:
        """The derivative of all outputs along a direction by forward mode; NaN without one."""
        try:
            moved = self.exact.jvp({a: v})
        except EvaluationFailed:
            return np.full(len(self.live_rows), np.nan)
        out = np.concatenate([moved[b].ravel() for b in self.outputs])
        with np.errstate(invalid="ignore"):
            return np.where(self.live_rows, out, 0.0)

    def forward_column(self, a: str, col: int, row: int) -> float:
        """One entry of the Jacobian by forward mode. The last column is kept."""
        if self._column is None or self._column[:2] != (a, col):
            self._column = (a, col, self.forward_along(a, self.unit(a, col)))
        return float(self._column[2][row])

    def unit(self, a: str, col: int) -> Array:
        """The direction of one element of an input."""
        unit = np.zeros(self.exact.initial[a].shape)
        unit.flat[col] = 1.0
        return unit

    # ---- scales

    def value(self, a: str, col: int) -> float:
        """An element's value at launch."""
        return float(self.exact.initial[a].reshape(-1)[col])

    def typical(self, a: str) -> float:
        """The size of an input's values: their root mean square, 1 if they are all zero."""
        x = self.exact.initial[a][self.live[a]]
        with np.errstate(over="ignore"):
            size = float(np.sqrt(np.mean(x * x))) if x.size else 0.0
        return size if np.isfinite(size) and size > 0 else 1.0

    def tiny(self, a: str) -> bool:
        """Whether an input's values are small beside 1."""
        return self.typical(a) < TINY

    def scale(self, a: str, col: int) -> float:
        """How far to displace an element: by its own size, unless that is next to nothing."""
        # Steps far below the others' size would drown in coarse rounding.
        least = 1.0 if self.precision.coarse else 1e-3
        return max(abs(self.value(a, col)), least * self.typical(a))

    def scales(self, a: str) -> Array:
        """The same for all elements of an input, flat; 0 for those that are not finite."""
        x = self.exact.initial[a]
        least = (1.0 if self.precision.coarse else 1e-3) * self.typical(a)
        size = np.maximum(np.abs(np.where(self.live[a], x, 0.0)), least)
        return np.where(self.live[a], size, 0.0).reshape(-1)

    def own_scales(self, a: str) -> Array:
        """The same, but elements that are small beside the others have their own size."""
        x = np.abs(self.exact.initial[a]).reshape(-1)
        scales = self.scales(a)
        small = (x > 0) & (x < scales) & (not self.precision.coarse)
        return np.where(small, x, scales)

    def direction(self, a: str, rng: np.random.Generator) -> Array:
        """Random displacements of all live elements, each of its own size.

        With the user's absolute step they are all of size 1.
        """
        x = self.exact.initial[a]
        size = np.maximum(np.abs(np.where(self.live[a], x, 0.0)), 0.1 * self.typical(a))
        if self.tolerance.eps is not None:
            size = np.ones_like(size)
        return np.where(self.live[a], rng.standard_normal(x.shape) * size, 0.0)

    # ---- slopes

    def slope_along(self, a: str, v: Array) -> Slope:
        """The derivative of all outputs along a direction."""
        return self.slope_of(self.along(a, v))

    def slope_of(self, line: Line) -> Slope:
        """The derivative of something along a direction."""
        eps = self.tolerance.eps
        if eps is None:
            return differences.slope(line, 1.0, self._matters, self.precision)
        if not self.tolerance.literal:
            return differences.extrapolated(line, eps, self.precision)
        # The formula is for entries; a sum of them needs to know how far off it is.
        value, half = (differences.fixed(line, h, self.precision).value for h in (eps, eps / 2))
        return Slope(value, np.abs(value - half) * (4.0 / 3.0))

    def slope_along_all(self, moves: Mapping[str, Array]) -> Slope:
        """The derivative of all outputs along a direction in several inputs."""
        return differences.slope(self.along_all(moves), 1.0, self._matters, self.precision)

    def column(self, a: str, col: int) -> Slope:
        """The derivative of all outputs by one element."""
        return self.columns(a, [col])[0]

    def columns(self, a: str, cols: Sequence[int]) -> list[Slope]:
        """The derivatives of all outputs by some elements, each by itself."""
        eps, lines = self.tolerance.eps, [self.element(a, col) for col in cols]
        if eps is not None:
            of = differences.fixed if self.tolerance.literal else differences.extrapolated
            return [of(line, eps, self.precision) for line in lines]
        scales = self.scales(a)[np.asarray(cols, np.intp)].tolist()
        found = self._slopes(lines, scales)
        if not self.precision.coarse:
            sizes = [abs(self.value(a, col)) for col in cols]
            small = [i for i, x in enumerate(sizes) if 0 < x < scales[i]]
            near = self._slopes([lines[i] for i in small], [sizes[i] for i in small])
            for i, s in zip(small, near, strict=True):
                found[i] = differences.nearer(found[i], s)
        return found

    def _slopes(self, lines: Sequence[Line], scales: Sequence[float]) -> list[Slope]:
        """As many at once as are no trouble for the memory."""
        each = max(1, TOGETHER // max(1, len(self.live_rows)))
        parts = (slice(n, n + each) for n in range(0, len(lines), each))
        found = (
            differences.slopes(lines[p], scales[p], self._matters, self.precision) for p in parts
        )
        return [s for part in found for s in part]

    def _matters(self, d: Array) -> Array:
        """The errors that matter. d: derivatives along a line, or along several in rows."""
        sizes = np.where(np.isfinite(d), np.abs(d), 0.0)
        return self.tolerance.of(d, sizes.max(axis=-1, initial=0.0, keepdims=True))

    def one_sided(
        self, a: str, col: int, part: float = 1.0, measured: bool = False
    ) -> tuple[Array, Array, Array]:
        """Slopes to the right and to the left and their noise; NaN where no step is sharp.

        part: of the usual step. measured: see `differences.one_sided`. Beside a value other than
        zero, the step is far smaller than the value, so that a kink near by is not taken for one
        at this point.
        """
        x, typical = abs(self.value(a, col)), self.typical(a)
        right, left, noise = (np.full(len(self.live_rows), np.nan) for _ in range(3))
        for scale in dict.fromkeys((x or typical, max(x, 1e-3 * typical), max(x, typical))):
            line = self.element(a, col)
            r, le, rough = differences.one_sided(line, part * scale, self.precision, measured)
            sharp = np.isnan(right) & (rough <= 1e-3 * np.maximum(np.abs(r), np.abs(le)))
            right, left = np.where(sharp, r, right), np.where(sharp, le, left)
            noise = np.where(sharp, rough, noise)
            if not np.isnan(right).any():
                break
        return right, left, noise


def _inner(w: Array, x: Array, partly: bool) -> float:
    """The inner product; with `partly`, elements of weight zero may be anything.

    Not by BLAS, whose threads cost more than they give beside other processes.
    """
    if partly:
        return float(np.where(w == 0, 0.0, w * x).sum())
    return float(np.einsum("i,i->", w.reshape(-1), x.reshape(-1)))


def norm(x: Array) -> float:
    """The root of the sum of squares."""
    flat = x.reshape(-1)
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.einsum("i,i->", flat, flat)))
