"""Whether a tape's backward pass, as a whole, gives the derivative of what the tape did.

Along a random direction in the leaf arrays, three numbers must agree: what the lifted
backward pass says, central differences of the lifted replay, and, where these two differ,
forward mode, which needs no step. Forward mode composes the launches' own derivatives, so
that it is blind to a wrong derivative of one launch and sharp for a wrong composition. That
is what is looked for here; single launches are checked by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd import oracle
from engine.autograd.lines import largest
from engine.autograd.problem import LaunchFailed
from engine.autograd.results import Cause, LaunchResult, Verdict, WholeResult
from engine.autograd.tally import TRUST
from engine.autograd.tolerance import Tolerance
from engine.autograd.whole.cause import cause_of, culprit
from engine.autograd.whole.memory import Memory
from engine.autograd.whole.replay import Replay, Unsuitable, given_by

Array = NDArray[Any]

DIRECTIONS = 2
# A part of a direction counts at least this much of the median, in the second one.
LEVEL = 1e-4

WRONG_LAUNCH = "a derivative of one of its launches is wrong"
AT_ODDS = "forward mode and differences disagree, and the latter agree with the adjoint"


def check_whole(
    tape: Any, tolerance: Tolerance, launches: Sequence[LaunchResult], seed: int
) -> WholeResult:
    """The check of a tape from its leaves to its ends. launches: what their checks found."""
    try:
        replay = Replay(given_by(tape))
    except Unsuitable as why:
        return WholeResult("skipped", reason=str(why))
    except LaunchFailed as failed:
        return WholeResult("skipped", reason=f"its replay could not run: {failed}")
    except MemoryError:
        return WholeResult("skipped", reason="its check does not fit into memory")
    try:
        rng = np.random.default_rng([seed, 0x7A9E])
        return _Whole(replay, tolerance, launches, rng).result()
    except LaunchFailed as failed:
        return WholeResult("skipped", reason=f"its replay could not run: {failed}")
    except MemoryError:
        return WholeResult("skipped", reason="its check does not fit into memory")
    finally:
        replay.close()


class _Whole:
    def __init__(
        self, replay: Replay, tolerance: Tolerance, launches: Sequence[LaunchResult],
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.replay = replay
        self.world = replay.world
        self.tolerance = tolerance
        self.wrong_launches = any(p.verdict == "fail" for x in launches for p in x.pairs)
        self.bad_launches = any(p.verdict == "nan" for x in launches for p in x.pairs)
        self.rng = rng
        self.outputs = [self.world.main.view(p) for p in replay.outputs]
        self.leaves = [
            (self.world.main.view(x.part), replay.start.view(x.part), x.where)
            for x in replay.leaves
        ]  # fmt: skip

    def result(self) -> WholeResult:
        if not self.leaves:
            return WholeResult("skipped", reason="no array that it reads requires a gradient")
        self.replay.begin()
        self.replay.forward()
        live = [np.isfinite(x) for x in self.outputs]
        if not any(x.any() for x in live):
            return WholeResult("inconclusive", reason="what the tape computes is not finite")
        self.weights = [
            np.where(m, self.rng.standard_normal(m.shape), 0.0) for m in live
        ]  # fmt: skip
        found = WholeResult("skipped")
        strengths: list[Array] = []
        for number in range(DIRECTIONS):
            direction = self.direction(strengths if number else None)
            one = self.along(direction, strengths)
            found = _worse(found, one, number + 1)
            if found.verdict != "pass":
                break
        return found

    # ---- one direction

    def direction(self, strengths: list[Array] | None) -> list[Array]:
        """Displacements of all leaves, each of its own size; or such that all count alike."""
        out = []
        for k, (_, start, where) in enumerate(self.leaves):
            x = np.where(where & np.isfinite(start), start, 0.0)
            with np.errstate(over="ignore"):
                typical = float(np.sqrt(np.mean(x[where] ** 2)))
            typical = typical if np.isfinite(typical) and typical > 0 else 1.0
            size = np.maximum(np.abs(x), 0.1 * typical)
            v = np.where(where & np.isfinite(start), self.rng.standard_normal(x.shape) * size, 0.0)
            if strengths is not None:
                strengths[k] = np.abs(strengths[k] * size)
            out.append(v)
        if strengths is not None:
            counts = np.concatenate([s[np.isfinite(s) & (s > 0)] for s in strengths])
            if counts.size:
                level = max(float(counts.min()), LEVEL * float(np.median(counts)))
                with np.errstate(all="ignore"):
                    out = [
                        np.where(s > 0, v * np.fmin(1.0, level / s), v)
                        for v, s in zip(out, strengths, strict=True)
                    ]  # fmt: skip
        return out

    def along(self, v: list[Array], strengths: list[Array]) -> WholeResult:
        tangents, grads = self.world.tangents, self.world.grads
        self.replay.record()
        self.seed()
        for s in reversed(self.replay.steps):
            s.backward()
        self.move(tangents, v)
        strengths[:] = [self.gradient_at(k) for k in range(len(self.leaves))]
        with np.errstate(all="ignore"):
            terms = [np.where(d == 0, 0.0, g * d) for g, d in zip(strengths, v, strict=True)]
            spread = float(np.sqrt(sum(float((t * t).sum()) for t in terms)))
        ad = grads.dot(tangents)
        if not np.isfinite(ad):
            return self.not_finite()
        slope = oracle.slope(lambda t: self.displaced(v, t), 1.0, self.matters)
        ref, error = float(slope.value[0]), float(slope.error[0])
        allowed = self.allowed(max(abs(ref), spread), spread)
        if np.isfinite(ref) and abs(ad - ref) <= allowed:
            return _result("pass", ad, ref, allowed)
        return self.third(v, ad, ref, error, spread)

    def third(
        self, v: list[Array], ad: float, ref: float, error: float, spread: float
    ) -> WholeResult:
        """The step-free opinion, where backward pass and differences disagree."""
        try:
            forward = self.forward_mode(v)
        except LaunchFailed as failed:
            return WholeResult("inconclusive", 1, ad, ref, reason=str(failed))
        if not np.isfinite(forward):
            reason = "its derivative in forward mode is not finite"
            return WholeResult("inconclusive", 1, ad, forward, reason=reason)
        allowed = self.allowed(max(abs(forward), spread), spread)
        known = np.isfinite(ref) and np.isfinite(error)
        unsure = allowed + TRUST * error
        if abs(ad - forward) <= allowed:
            if known and abs(ad - ref) > unsure and self.wrong_launches:
                return _result("fail", ad, ref, allowed, WRONG_LAUNCH)
            return _result("pass", ad, forward, allowed)
        if known and abs(forward - ref) > unsure:
            if abs(ad - ref) <= unsure:
                return _result("inconclusive", ad, forward, allowed, AT_ODDS)
            if self.wrong_launches:
                return _result("fail", ad, ref, allowed, WRONG_LAUNCH)
        position = culprit(self.replay, self.seed, lambda: self.move_start(v), allowed)
        cause = cause_of(self.replay, position, lambda: self.move_start(v))
        return _result("fail", ad, forward, allowed, cause=cause)

    def not_finite(self) -> WholeResult:
        if self.bad_launches:
            return WholeResult(
                "nan", 1, float("nan"), reason="an adjoint of a launch is not finite"
            )
        return WholeResult("nan", 1, float("nan"), reason="the gradient of the whole is not finite")

    # ---- pieces

    def seed(self) -> None:
        """Sets the gradients to the cotangents, and all others to zero."""
        self.world.grads.clear()
        for p, w in zip(self.replay.outputs, self.weights, strict=True):
            self.world.grads.view(p)[...] = w

    def move(self, memory: Memory, v: list[Array]) -> None:
        """Sets the tangents to a direction."""
        memory.clear()
        for leaf, d in zip(self.replay.leaves, v, strict=True):
            view = memory.view(leaf.part)
            view[...] = np.where(leaf.where, d, view)

    def move_start(self, v: list[Array]) -> None:
        """Puts the contents from before the tape and their tangents into memory."""
        self.replay.begin()
        self.move(self.world.tangents, v)

    def gradient_at(self, k: int) -> Array:
        """The gradient of a leaf, as the sum over all gradients of its memory."""
        leaf = self.replay.leaves[k]
        total = np.zeros(leaf.where.shape)
        for memory in self.world.grads.roots.values():
            total += memory.view(leaf.part)
        return np.where(leaf.where, total, 0.0)

    def displaced(self, v: list[Array], t: float) -> Array:
        """What the cotangents weigh, from displaced leaves."""
        self.replay.begin()
        for (now, start, where), d in zip(self.leaves, v, strict=True):
            now[...] = np.where(where & (d != 0), start + t * d, now)
        self.replay.forward()
        return self.value()

    def value(self) -> Array:
        with np.errstate(all="ignore"):
            total = sum(
                float(np.where(w == 0, 0.0, w * x).sum())
                for w, x in zip(self.weights, self.outputs, strict=True)
            )
        return np.asarray([total])

    def forward_mode(self, v: list[Array]) -> float:
        self.move_start(v)
        for s in self.replay.steps:
            s.tangent()
        total = 0.0
        for p, w in zip(self.replay.outputs, self.weights, strict=True):
            with np.errstate(all="ignore"):
                moved = self.world.tangents.view(p)
                total += float(np.where(w == 0, 0.0, w * moved).sum())
        return total

    def allowed(self, size: float, spread: float) -> float:
        t = Tolerance(None, None, max(1e-5, self.tolerance.rtol or 0.0))
        return float(t.of(np.asarray(size), spread))

    def matters(self, d: Array) -> Array:
        return np.asarray(Tolerance().of(d, largest(d)))


def _result(
    verdict: Verdict, ad: float, ref: float, allowed: float, reason: str = "",
    cause: Cause | None = None,
) -> WholeResult:  # fmt: skip
    error = abs(ad - ref) / abs(ref) if abs(ref) > allowed else 0.0
    return WholeResult(verdict, 1, ad, ref, float(error), reason, cause)


def _worse(a: WholeResult, b: WholeResult, number: int) -> WholeResult:
    worse = b.verdict != "pass" or a.verdict == "skipped" or b.rel_error >= a.rel_error
    return replace(b if worse else a, directional=number)
