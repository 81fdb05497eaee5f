"""The check of a Python function: its tape's backward pass against running it again.

A function may do more than launch kernels, so it is run at displaced inputs, in its
own precision. What that cannot tell is settled launch by launch, where differences
in float64 can be had (see `check`): a pair passes only if no launch fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.blocks import Dense
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
from engine.autograd.results import Entry, LaunchResult, PairResult, TapeResult, Verdict
from engine.autograd.rounding import noise
from engine.autograd.settling import Sample, sampled, settle, steps
from engine.autograd.subject import Mask, Pair
from engine.autograd.tally import KINK, NOT_FINITE, TRUST, Tally
from engine.autograd.tape_check import Options, run_checks
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

REASONS: dict[str, str] = {
    "kink": KINK,
    "inconclusive": "differences in the arrays' own precision do not tell",
}


def check_function_subject(
    subject: FunctionSubject, mask: Mask | None, options: Options
) -> TapeResult:
    """Checks a function. Gives its result, first, and those of its launches."""
    with unharmed(subject) as keeper:
        tape, results = subject.run()
        roles = subject.roles(results)
        pairs = roles.pairs(mask)
        outputs = list({id(p.output): p.output for p in pairs}.values())
        lines = OwnLines(subject, keeper, outputs, results)
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
        self.tiny = max(float(np.finfo(a._parts.dtype).smallest_subnormal) for a in found)
        self.literal = options.tolerance != Tolerance() and options.tolerance.literal
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
                    self._placed(p, t),
                    reason,
                )
            )
        return tuple(out)

    def _placed(self, p: Pair, t: Tally) -> Entry | None:
        """The worst entry with the names of its scalars."""
        e = t.worst
        if e is None or e.row < 0:
            return e
        return replace(e, row_name=p.output.place(e.row), col_name=p.input.place(e.col))

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
                cols = list(columns)
                ad = dense.entries[p.key][rows][:, cols]
                ref, err = np.empty(ad.shape), np.empty(ad.shape)
                for k, (value, bound) in enumerate(columns.values()):
                    ref[:, k], err[:, k] = value[part][rows], bound[part][rows]
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
        if not np.all(np.isfinite(ad)):
            spoiled = self.spoiled(p)
            t.say("inconclusive", spoiled) if spoiled else t.say("nan", NOT_FINITE)
        allowed = self._allowed(ref)
        with np.errstate(all="ignore"):
            wrong = ~(np.abs(ad - ref) <= allowed) & np.isfinite(ad)
        open_ = ~np.isfinite(ad)
        for j in np.flatnonzero(wrong.any(axis=0)).tolist():
            bad = np.flatnonzero(wrong[:, j])
            verdicts, slopes = self._column(p, block, j, bad, allowed)
            for verdict in verdicts:
                t.say(verdict, REASONS.get(verdict, ""))
            # What was settled replaces a difference that was not good for anything.
            ref[bad, j] = np.where(np.isfinite(slopes), slopes, ref[bad, j])
            err[bad, j] = np.where(np.isfinite(slopes), 0.0, err[bad, j])
            open_[bad, j] = [v not in ("pass", "fail") for v in verdicts]
        t.say("pass")
        self._note(t, block, open_)

    def _note(self, t: Tally, block: Block, open_: Array) -> None:
        """Takes note of the errors of entries that are settled."""
        ad, ref, err = block.ad, block.oracle, block.error
        allowed = np.maximum(self._allowed(ref) + err, 1e-300)
        with np.errstate(all="ignore"):
            diff = np.where(open_, 0.0, np.abs(ad - ref))
            excess = np.where(np.isfinite(diff), diff / allowed, np.inf)
            if t.verdict == "nan":
                excess = np.where(np.isfinite(ad), -1.0, np.inf)
            rel = np.where(np.abs(ref) > allowed + TRUST * err, diff / np.abs(ref), 0.0)
        k, j = (int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
        t.compare(float(ad[k, j]), float(ref[k, j]), float(allowed[k, j]),
                  block.rows[k], block.cols[j])  # fmt: skip
        t.max_abs = max(t.max_abs, largest(diff))
        t.max_rel = max(t.max_rel, largest(rel))

    def spoiled(self, p: Pair) -> str:
        """Why a pair whose input is not finite cannot be judged; empty where it is."""
        for _, a in self._leaves(self.subject.given, p.input):
            if not np.all(np.isfinite(a._parts)):
                return f"argument {p.input.label!r} holds NaN or Inf"
        return ""

    def _allowed(self, ref: Array) -> Array:
        """The largest error allowed at each entry, beside the others in its row and column."""
        size = np.where(np.isfinite(ref), np.abs(ref), 0.0)
        near = size
        if size.ndim == 2:
            near = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
        if self.literal:
            return self.tolerance.of(ref, near)
        automatic = self.rtol * np.abs(ref) + 0.1 * self.rtol * near
        if self.tolerance.atol is None and self.tolerance.rtol is None:
            return np.asarray(automatic)
        return self.tolerance.of(ref, near)

    def _column(
        self, p: Pair, block: Block, j: int, bad: Array, allowed: Array
    ) -> tuple[list[Verdict], Array]:  # fmt: skip
        """Judges the entries of one column that disagree: verdicts and slopes."""
        ad, ref = block.ad[bad, j], block.oracle[bad, j]
        if self.literal:
            return ["fail"] * len(bad), ref
        rows = span(self.lines.outputs, p.output).start + np.asarray(block.rows)[bad]
        found = self._samples(p, block.cols[j], rows)
        allowed = np.minimum(allowed, self._allowed(block.ad))  # where differences were no good
        return settle(found, ad, allowed[bad, j], self.rtol)

    def _samples(self, p: Pair, col: int, rows: Array) -> list[Sample]:
        """Slopes of outputs by one scalar over many steps."""
        part = next(q for q in p.input.parts if col in q.index())
        a = leaves_of(self.subject.given[p.input.index])[part.leaf]
        f = int(np.flatnonzero(part.index() == col)[0])
        x = float(a._parts[np.unravel_index(f, a._parts.shape)])
        sizes = steps(x, typical_size(a), self.precision)

        def line(t: float) -> tuple[float, Array]:
            return self.lines.at(a, f, t)

        with np.errstate(all="ignore"):
            rough = noise(lambda t: line(t)[1][rows], 64.0 * sizes[-1])
        return sampled(line, sizes, self.precision, self.tiny, rough, rows)

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
        sizes = [self.precision**POWER * k for k in FACTORS]
        if self.tolerance.eps is not None:
            sizes = [self.tolerance.eps]
        for h in sizes:
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
            spoiled = self.spoiled(p)
            t.say("inconclusive", spoiled) if spoiled else t.say("nan", NOT_FINITE)
            return
        with np.errstate(all="ignore"):
            ref = float(w @ slope[part])
            err = float(np.linalg.norm(w * error[part]))
            parts = g * v
            spread = float(np.linalg.norm(parts))
        ad = float(parts.sum())
        allowed = float(self._allowed(np.asarray(max(abs(ref), spread))))
        t.compare(ad, ref, max(allowed, 1e-300), -1, -1)
        if abs(ad - ref) <= allowed + err and err > 0.1 * max(abs(ref), spread) > 0:
            t.say("inconclusive", f"the reference itself is uncertain by {err:.1e}")
        elif abs(ad - ref) <= allowed + err:
            t.say("pass")
        elif self.literal:
            t.judge(abs(ad - ref), allowed + err, err, bool(np.isfinite(ref)))
        else:
            verdict = self._along_many(p, w, v, ad, allowed, spread)
            t.say(verdict, REASONS.get(verdict, ""))

    def _along_many(
        self, p: Pair, w: Array, v: Array, ad: float, allowed: float, spread: float
    ) -> Verdict:
        """What many steps along a direction say of w' J v."""
        moves = [(a, v[q.places()].reshape(a._parts.shape))
                 for q, a in self._leaves(self.subject.given, p.input)]  # fmt: skip
        part = span(self.lines.outputs, p.output)
        rows = np.arange(part.start, part.stop)

        def line(t: float) -> tuple[float, Array]:
            return t, self.lines.along(moves, t)

        sizes = [t for t in steps(1.0, 1.0, self.precision) if t >= 64.0 * self.precision]
        found = sampled(line, sizes, self.precision, self.tiny, 0.0, rows, w, spread)
        return settle(found, np.array([ad]), np.array([allowed]), self.rtol)[0][0]


def _unique(variables: Sequence[Variable]) -> list[Variable]:
    return list({id(v): v for v in variables}.values())


__all__ = ["check_function_subject"]
