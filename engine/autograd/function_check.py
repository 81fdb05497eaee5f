"""The check of a Python function: its tape's backward pass against running it again.

A function may do more than launch kernels, so it is run at displaced inputs, in its
own precision. What that cannot tell is settled launch by launch, where differences
in float64 can be had (see `check`): a pair passes only if no launch fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.blocks import Dense
from engine.autograd.check import Options, run_checks
from engine.autograd.entries import Block
from engine.autograd.function_jacobian import (
    FACTORS,
    POWER,
    FunctionSubject,
    OwnLines,
    adjoint_rows,
    arrays_of,
    clear,
    leaves_of,
    own_slope,
    span,
    typical_size,
    unharmed,
)
from engine.autograd.guard import PrivateTape
from engine.autograd.lines import largest
from engine.autograd.results import LaunchResult, PairResult, TapeResult
from engine.autograd.subject import Mask, Pair
from engine.autograd.tally import KINK, NOT_FINITE, TRUST, Tally
from engine.autograd.tolerance import AUTO_RTOL, Tolerance
from engine.autograd.variables import Variable
from engine.diagnostics import UNKNOWN
from engine.diagnostics.site import call_span
from engine.runtime.array import array

Array = NDArray[Any]

# Above this many scalars on a side or entries in all, random directions take the place of entries.
SIDE = 512
ENTRIES = 100_000
DIRECTIONS = 2


def check_function_subject(
    subject: FunctionSubject, mask: Mask | None, options: Options
) -> TapeResult:
    """Checks a function. Gives its result, first, and those of its launches."""
    with unharmed(subject) as keeper:
        tape, results = subject.run()
        roles = subject.roles(results)
        pairs = roles.pairs(mask)
        outputs = list({id(p.output): p.output for p in pairs}.values())
        lines = OwnLines(subject, keeper, outputs)
        check = _Check(subject, tape, results, pairs, lines, options)
        if check.small():
            check.entries()
        else:
            check.directions()
        keeper.restore()
        inner = TapeResult(0, ())
        if options.tolerance == Tolerance():
            inner = run_checks(tape, Options(seed=options.seed))
    own = LaunchResult(-1, subject.key, (), check.results(), call_span() or UNKNOWN)
    return TapeResult(0, (own, *inner.launches), inner.unchecked)


class _Check:
    """The adjoint is asked first: runs of the function then change what its tape has seen."""

    def __init__(
        self, subject: FunctionSubject, tape: PrivateTape, results: Sequence[Any],
        pairs: Sequence[Pair], lines: OwnLines, options: Options,
    ) -> None:  # fmt: skip
        self.subject, self.tape, self.results_, self.pairs = subject, tape, results, pairs
        self.lines, self.options = lines, options
        self.tolerance = options.tolerance
        self.tallies = {p.key: Tally() for p in pairs}
        self.rng = np.random.default_rng(options.seed)
        found = [leaves_of(subject.given[p.input.index])[q.leaf] for p in pairs
                 for q in p.input.parts]  # fmt: skip
        found += [leaves_of(results[p.output.index])[q.leaf] for p in pairs for q in p.output.parts]
        self.precision = max(float(np.finfo(a._parts.dtype).eps) for a in found)
        # What differences in this precision can tell.
        self.rtol = max(AUTO_RTOL, 100.0 * self.precision ** (1.0 - POWER))

    def small(self) -> bool:
        inputs = sum(v.size for v in _unique([p.input for p in self.pairs]))
        outputs = sum(v.size for v in _unique([p.output for p in self.pairs]))
        asked = self.options.max_inputs > 0 or self.options.max_outputs > 0
        return asked or (max(inputs, outputs) <= SIDE and inputs * outputs <= ENTRIES)

    def results(self) -> tuple[PairResult, ...]:
        out = []
        for p in self.pairs:
            t = self.tallies[p.key]
            reason = t.reason
            if not p.input.size or not p.output.size:
                reason = "the array is empty"
            out.append(
                PairResult(
                    p.input.label,
                    p.output.label,
                    t.verdict,
                    t.checked,
                    t.directional,
                    t.max_abs,
                    t.max_rel,
                    t.worst,
                    reason,
                )
            )
        return tuple(out)

    # ---- entries

    def entries(self) -> None:
        dense = Dense(list(self.pairs), True)
        limit = self.options.max_outputs
        adjoint_rows(self.tape, self.results_, self.subject, self.pairs, dense, limit)
        self.lines.keeper.restore()
        for v in _unique([p.input for p in self.pairs]):
            targets = [p for p in self.pairs if p.input is v]
            columns = self._columns(v)
            for p in targets:
                rows = slice(0, limit if limit > 0 else None)
                part = span(self.lines.outputs, p.output)
                ref = np.stack([s[0][part][rows] for s in columns.values()], axis=1)
                err = np.stack([s[1][part][rows] for s in columns.values()], axis=1)
                cols = list(columns)
                ad = dense.entries[p.key][rows][:, cols]
                block = Block(tuple(range(len(ad))), tuple(cols), ad, ref, err)
                self.judge(p, block)

    def _columns(self, v: Variable) -> dict[int, tuple[Array, Array]]:
        out: dict[int, tuple[Array, Array]] = {}
        leaves = leaves_of(self.subject.given[v.index])
        for part in v.parts:
            a = leaves[part.leaf]
            typical = typical_size(a)
            for f, col in enumerate(part.index().tolist()):
                if 0 < self.options.max_inputs <= col:
                    continue
                s = own_slope(self.lines, a, f, typical, self.tolerance.eps)
                out[col] = (s.value, s.error)
        return dict(sorted(out.items()))

    def judge(self, p: Pair, block: Block) -> None:
        t = self.tallies[p.key]
        ad, ref, err = block.ad, block.oracle, block.error
        t.checked += ad.size
        if not ad.size:
            return
        size = np.where(np.isfinite(ref), np.abs(ref), 0.0)
        near = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
        allowed = self._allowed(ref, near)
        with np.errstate(all="ignore"):
            diff = np.abs(ad - ref)
            excess = np.where(np.isfinite(diff), diff / np.maximum(allowed + err, 1e-300), np.inf)
        k, j = (int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
        t.compare(float(ad[k, j]), float(ref[k, j]), float(max(allowed[k, j] + err[k, j], 1e-300)),
                  block.rows[k], block.cols[j])  # fmt: skip
        t.max_abs = max(t.max_abs, largest(diff))
        known = np.abs(ref) > allowed + TRUST * err
        with np.errstate(all="ignore"):
            t.max_rel = max(t.max_rel, largest(np.where(known, diff / np.abs(ref), 0.0)))
        t.say("pass")
        if not np.all(np.isfinite(ad)):
            t.say("nan", NOT_FINITE)
            return
        for k, j in np.argwhere(~(diff <= allowed)):
            self._one(t, p, block, int(k), int(j), float(allowed[k, j]))
            if t.verdict == "fail":
                t.compare(float(ad[k, j]), float(ref[k, j]), 1e-300, block.rows[k], block.cols[j])
                return

    def _allowed(self, ref: Array, near: Array) -> Array:
        if self.tolerance != Tolerance() and self.tolerance.literal:
            return self.tolerance.of(ref, near)
        automatic = self.rtol * np.abs(ref) + 0.1 * self.rtol * near
        if self.tolerance.atol is None and self.tolerance.rtol is None:
            return np.asarray(automatic)
        return self.tolerance.of(ref, near)

    def _one(self, t: Tally, p: Pair, block: Block, k: int, j: int, allowed: float) -> None:
        """Judges an entry that disagrees."""
        ad, ref, err = block.ad[k, j], block.oracle[k, j], block.error[k, j]
        if not np.isfinite(ref):
            t.say("inconclusive", "the function itself is not finite beside this point")
            return
        right, left = self._one_sided(p, block.cols[j], block.rows[k])
        low, high = min(right, left), max(right, left)
        slack = 0.02 * (abs(low) + abs(high))
        if high - low > 4 * slack and low - slack <= ad <= high + slack:
            t.say("kink", KINK)
        elif abs(ad - ref) <= allowed + err:
            pass  # as far as differences in this precision can tell
        elif abs(ad - ref) <= allowed + TRUST * err:
            t.say("inconclusive", f"the reference itself is uncertain by {err:.1e}")
        else:
            t.say("fail")

    def _one_sided(self, p: Pair, col: int, row: int) -> tuple[float, float]:
        part = next(q for q in p.input.parts if col in q.index())
        a = leaves_of(self.subject.given[p.input.index])[part.leaf]
        f = int(np.flatnonzero(part.index() == col)[0])
        x = abs(float(a._parts[np.unravel_index(f, a._parts.shape)]))
        h = max(x, typical_size(a) if x == 0 else 0.0) * self.precision**0.4
        here = self.lines.at(a, f, 0.0)[1]
        at = span(self.lines.outputs, p.output).start + row
        slopes = []
        for s in (h, -h):
            moved, out = self.lines.at(a, f, s)
            slopes.append((out[at] - here[at]) / moved if moved else np.nan)
        return slopes[0], slopes[1]

    # ---- random directions

    def directions(self) -> None:
        adjoint = [self._gradients() for _ in range(DIRECTIONS)]
        self.lines.keeper.restore()
        for found in adjoint:
            slopes = {id(v): self._along(v) for v in _unique([p.input for p in self.pairs])}
            for p in self.pairs:
                self._directed(p, *found[p.key], *slopes[id(p.input)])

    def _gradients(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        """A random cotangent of each output, and the gradient of each input by it."""
        loose = arrays_of([*self.subject.given, *self.results_])
        found = {}
        for b in _unique([p.output for p in self.pairs]):
            w = self.rng.standard_normal(b.size)
            clear(self.tape, loose)
            for part, out in self._leaves(self.results_, b):
                grad = out.grad
                assert grad is not None
                grad.storage.before_write(grad.lo, grad.hi)
                grad._parts[...] = w[part.places()].reshape(grad._parts.shape)
            self.tape.backward(grads={})
            for p in self.pairs:
                if p.output is b:
                    found[p.key] = (w, self._gradient(p.input))
        return found

    def _leaves(self, values: Sequence[Any], v: Variable) -> list[tuple[Any, array]]:
        leaves = leaves_of(values[v.index])
        return [(part, leaves[part.leaf]) for part in v.parts]

    def _gradient(self, v: Variable) -> Array:
        out = np.zeros(v.size)
        for part, a in self._leaves(self.subject.given, v):
            grad = a.grad
            if grad is not None:
                out[part.places()] = grad._parts.reshape(-1)
        return out

    def _along(self, v: Variable) -> tuple[Array, Array, Array]:
        """A random direction, and the derivative of all outputs along it with its error."""
        moves = []
        whole = np.zeros(v.size)
        for part, a in self._leaves(self.subject.given, v):
            size = np.maximum(np.abs(a._parts.astype(np.float64)), 0.1 * typical_size(a))
            d = np.where(np.isfinite(size), size * self.rng.standard_normal(a._parts.shape), 0.0)
            moves.append((a, d))
            whole[part.places()] = d.reshape(-1)
        best: Array | None = None
        error: Array | None = None
        steps = [self.precision**POWER * k for k in FACTORS]
        if self.tolerance.eps is not None:
            steps = [self.tolerance.eps]
        for h in steps:
            far, near = (
                (self.lines.along(moves, s), self.lines.along(moves, -s)) for s in (h, h / 2)
            )
            with np.errstate(all="ignore"):
                wide, narrow = (far[0] - far[1]) / (2 * h), (near[0] - near[1]) / h
                rounding = 8 * self.precision * np.maximum(np.abs(near[0]), np.abs(near[1])) / h
                value = (4 * narrow - wide) / 3
                bound = np.abs(narrow - wide) + rounding
                bound = np.where(np.isfinite(value), bound, np.inf)
            if best is None or error is None:
                best, error = value, bound
            else:
                better = bound < error
                best, error = np.where(better, value, best), np.where(better, bound, error)
        assert best is not None and error is not None
        return whole, best, error

    def _directed(self, p: Pair, w: Array, g: Array, v: Array, slope: Array, error: Array) -> None:
        t = self.tallies[p.key]
        part = span(self.lines.outputs, p.output)
        t.directional += 1
        if not np.all(np.isfinite(g)):
            t.say("nan", NOT_FINITE)
            return
        with np.errstate(all="ignore"):
            ref = float(w @ slope[part])
            err = float(np.linalg.norm(w * error[part]))
            parts = g * v
            spread = float(np.linalg.norm(parts))
        ad = float(parts.sum())
        allowed = float(self._allowed(np.asarray(max(abs(ref), spread)), np.asarray(spread)))
        t.compare(ad, ref, max(allowed, 1e-300), -1, -1)
        if abs(ad - ref) <= allowed + err and err > 0.1 * max(abs(ref), spread) > 0:
            t.say("inconclusive", f"the reference itself is uncertain by {err:.1e}")
        else:
            t.judge(abs(ad - ref), allowed + err, err, bool(np.isfinite(ref)))


def _unique(variables: Sequence[Variable]) -> list[Variable]:
    return list({id(v): v for v in variables}.values())


__all__ = ["check_function_subject"]
