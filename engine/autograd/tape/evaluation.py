"""Evaluates a replayed tape along a line through its leaves: adjoint, tangent, differences.

Its value is a random weighted sum of what the tape's outputs hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import median
from engine.autograd.launch.directions import DRAWS, cancel, weakened
from engine.autograd.tape.memory import Memory
from engine.autograd.tape.replay import Replay
from engine.classes import dataclass

Array = NDArray[Any]
Direction = Sequence[Array]

# A part of a direction counts at least this much of the median, in `levelled_direction`.
LEVEL = 1e-4
# Part of the largest below which what elements count for may be what rounding left of a zero, with
# as many digits again as a comparison needs.
VISIBLE = 1e-9
# By how much forward mode raises what counts for little, at most.
RAISED = 1e8
# Runs that tell how much rounding adds, each with its direction a part longer or shorter.
SHAKEN = (1.1, 0.7, 1.3)
# A leaf counts that has at least this part of the largest one's, in `rounding`.
COUNTS = 1e-4


@dataclass(frozen=True)
class AdjointAlong:
    """The derivative along a direction by the backward pass.

    gradients: of the leaves. spread: the root of the sum of squares of the derivative's terms.
    """

    value: float
    gradients: Sequence[Array]
    spread: float


@dataclass(frozen=True)
class Levelled:
    """A direction in which all elements count alike, as far as that can be.

    v: such that differences along it still tell something. raised: for forward mode, which needs no
    small steps: what counts for little, or nothing, is displaced by more. faint: what is, as it is
    in v; None where nothing is.
    """

    v: Direction
    raised: Direction
    faint: Direction | None


class TapeEvaluation:
    """A replay with weights for its outputs, zero where these are not finite."""

    def __init__(self, replay: Replay, rng: np.random.Generator) -> None:
        self.replay = replay
        self.memories = replay.memories
        self._outputs = [self.memories.main.view(p) for p in replay.outputs]
        self._leaves = [
            (self.memories.main.view(x.part), replay.start.view(x.part), x.where)
            for x in replay.leaves
        ]
        replay.begin()
        replay.forward()
        live = [np.isfinite(x) for x in self._outputs]
        self.finite = any(x.any() for x in live)
        self._weights = [
            np.where(m, rng.standard_normal(m.shape), 0.0) for m in live if self.finite
        ]
        # Of the leaves, while memory still has those of all that is between.
        self._known: list[Array] | None = None

    @property
    def given(self) -> bool:
        """Whether all that comes from outside is finite, also what requires no gradient."""
        start = self.replay.start
        read = [start.view(p) for s in self.replay.operations for p in s.reads if p.float]
        known = [start[where] for _, start, where in self._leaves]
        return all(np.isfinite(x).all() for x in (*known, *read))

    # ---- directions

    def direction(self, rng: np.random.Generator) -> Direction:
        """Random displacements of all leaves, each of its own size."""
        return [
            np.where(where & np.isfinite(start), rng.standard_normal(start.shape) * size, 0.0)
            for (_, start, where), size in zip(self._leaves, self._sizes(), strict=True)
        ]

    def levelled_direction(self, rng: np.random.Generator, gradients: Sequence[Array]) -> Levelled:
        """The same, but such that all count alike, as far as rounding leaves visible.

        gradients: of the leaves, which say what each counts for. It is drawn again where what the
        leaves add cancels, which would hide an error that they have in common.
        """
        for _ in range(DRAWS):
            found = self._levelled(rng, gradients)
            if not (cancel(gradients, found.v) or cancel(gradients, found.raised)):
                break
        return found

    def _levelled(self, rng: np.random.Generator, gradients: Sequence[Array]) -> Levelled:
        v = self.direction(rng)
        strengths = [np.abs(g * size) for g, size in zip(gradients, self._sizes(), strict=True)]
        known = [np.isfinite(s) & (s > 0) for s in strengths]
        counts = np.concatenate([s[k] for s, k in zip(strengths, known, strict=True)])
        if not counts.size:
            return Levelled(v, v, None)
        # What begins at zero is a sum, as a rule, which has no size of its own.
        starts = [start != 0 for _, start, _ in self._leaves]
        held = np.concatenate([s[k & h] for s, k, h in zip(strengths, known, starts, strict=True)])
        most = float((held if held.size else counts).max())
        level = max(float(counts.min()), LEVEL * median(counts), VISIBLE * most)
        v = [weakened(d, s, level, rng) for d, s in zip(v, strengths, strict=True)]
        with np.errstate(all="ignore"):
            factors = [np.where((s < level) & (d != 0), np.fmin(level / s, RAISED), 1.0)
                       for d, s in zip(v, strengths, strict=True)]  # fmt: skip
        if not any(np.any(f > 1) for f in factors):
            return Levelled(v, v, None)
        raised = [d * f for d, f in zip(v, factors, strict=True)]
        faint = [np.where(f > 1, d, 0.0) for d, f in zip(v, factors, strict=True)]
        return Levelled(v, raised, faint)

    def _sizes(self) -> list[Array]:
        """How far to displace each element: by its own size, unless that is next to nothing."""
        out = []
        for _, start, where in self._leaves:
            x = np.where(where & np.isfinite(start), start, 0.0)
            with np.errstate(over="ignore"):
                typical = float(np.sqrt(np.mean(x[where] ** 2)))
            typical = typical if np.isfinite(typical) and typical > 0 else 1.0
            out.append(np.maximum(np.abs(x), 0.1 * typical))
        return out

    # ---- derivatives

    def adjoint_along(self, v: Direction) -> AdjointAlong:
        """The derivative by the lifted backward pass, run as the tape's own would be."""
        gradients = self.gradients()
        self._move(self.memories.tangents, v)
        with np.errstate(all="ignore"):
            terms = [np.where(d == 0, 0.0, g * d) for g, d in zip(gradients, v, strict=True)]
            spread = float(np.sqrt(sum(float((t * t).sum()) for t in terms)))
            value = self.memories.grads.dot(self.memories.tangents)
            if not np.isfinite(value):  # perhaps of elements that do not move
                value = sum(float(t.sum()) for t in terms)
        return AdjointAlong(value, gradients, spread)

    def gradients(self) -> Sequence[Array]:
        """Those of the leaves: no direction changes them."""
        if self._known is None:
            self.replay.record()
            self.seed()
            for s in reversed(self.replay.operations):
                s.backward()
            self._known = [self._gradient(k) for k in range(len(self._leaves))]
        return self._known

    @contextmanager
    def healed(self) -> Iterator[None]:
        """Has adjoints read what their launches did, whatever was overwritten since."""
        self._known = None
        try:
            with self.replay.healed():
                yield
        finally:
            self._known = None

    def rounding(self, gradients: Sequence[Array]) -> float | None:
        """How far the gradients of the leaves, at values in their own precision, are from these.

        As a part of them, of the leaf that is worst among those that count; each element by the
        size of what it belongs to. None where that is not finite.
        """
        self.replay.record_rounded()
        self.seed()
        for s in reversed(self.replay.operations):
            s.backward()
        apart, counts, held = [], [], []
        with np.errstate(all="ignore"):
            for k, (g, size) in enumerate(zip(gradients, self._sizes(), strict=True)):
                _, start, where = self._leaves[k]
                apart.append(float(np.linalg.norm((self._gradient(k) - g) * size)))
                counts.append(float(np.linalg.norm(g * size)))
                held.append(bool(np.any(start[where] != 0)))
        # What begins at zero is a sum, as a rule, which has no size of its own.
        most = max((c for c, h in zip(counts, held, strict=True) if h or not any(held)), default=0)
        found = [
            a / c for a, c in zip(apart, counts, strict=True) if c > 0 and c >= COUNTS * most
        ]  # fmt: skip
        return max(found) if most > 0 and found and np.all(np.isfinite(found)) else None

    def displaced(self, v: Direction, t: float) -> Array:
        """The value from leaves displaced by t times a direction, as an array of one number."""
        self.replay.begin()
        for (now, _, _), d in zip(self._leaves, v, strict=True):
            np.add(now, t * d, out=now, where=d != 0)  # other elements are no part of the leaf
        self.replay.forward()
        return np.asarray([self._weighted(self._outputs)])

    @contextmanager
    def moved(self, v: Direction, t: float) -> Iterator[None]:
        """Has the tape begin at leaves displaced by t times a direction for a while."""
        kept = [start.copy() for _, start, _ in self._leaves]
        try:
            for (_, start, _), d in zip(self._leaves, v, strict=True):
                np.add(start, t * d, out=start, where=d != 0)
            self._known = None
            yield
        finally:
            self._known = None
            for (_, start, _), was in zip(self._leaves, kept, strict=True):
                start[...] = was

    def noise(self, v: Direction, rng: np.random.Generator, enough: float) -> float:
        """How much rounding alone may change a derivative along a direction, as it seems.

        By how far it is off where each leaf is another one in its last digits, and where the
        direction is longer by some part. Of terms that cancel, nothing else tells the size. More
        than is enough need not be known. Raises EvaluationFailed.
        """
        known = self.adjoint_along(v).value, self.forward_along(v)
        most = 0.0
        for factor in SHAKEN:
            unit = np.finfo(np.float64).eps
            shaken = [np.where(where & np.isfinite(x), x * rng.choice((-2, -1, 1, 2), x.shape), 0.0)
                      for _, x, where in self._leaves]  # fmt: skip
            with self.moved(shaken, float(unit)):
                longer = [d * factor for d in v]
                found = self.adjoint_along(longer).value, self.forward_along(longer)
            apart = [abs(x / factor - y) for x, y in zip(found, known, strict=True)]
            most = max(most, *(x for x in apart if np.isfinite(x)), 0.0)
            if most >= enough:
                break
        return most

    def forward_along(self, v: Direction) -> float:
        """The derivative by forward mode. Raises EvaluationFailed."""
        self.begin(v)
        for s in self.replay.operations:
            s.tangent()
        return self._weighted([self.memories.tangents.view(p) for p in self.replay.outputs])

    # ---- pieces

    def seed(self) -> None:
        """Sets the gradients to the cotangents, and all others to zero."""
        self._known = None
        self.memories.grads.clear()
        for p, w in zip(self.replay.outputs, self._weights, strict=True):
            self.memories.grads.view(p)[...] = w

    def begin(self, v: Direction) -> None:
        """Puts the contents from before the tape and their tangents into memory."""
        self.replay.begin()
        self._move(self.memories.tangents, v)

    def _move(self, memory: Memory, v: Direction) -> None:
        memory.clear()
        for leaf, d in zip(self.replay.leaves, v, strict=True):
            view = memory.view(leaf.part)
            view[...] = np.where(leaf.where, d, view)

    def _gradient(self, k: int) -> Array:
        """The gradient of a leaf, as the sum over all gradients of its memory."""
        leaf = self.replay.leaves[k]
        return np.where(leaf.where, self.memories.grads.total(leaf.part), 0.0)

    def _weighted(self, values: Sequence[Array]) -> float:
        total = 0.0
        with np.errstate(all="ignore"):
            for w, x in zip(self._weights, values, strict=True):
                total += float(np.where(w == 0, 0.0, w * x).sum())
        return total
