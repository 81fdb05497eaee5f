"""Checks one launch: first random directions over everything, then Jacobian entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd import oracle
from engine.autograd.problem import Precision, Problem
from engine.autograd.results import Entry, PairResult, Verdict
from engine.autograd.tolerance import Tolerance

Array = NDArray[Any]
Pair = tuple[str, str]

DIRECTIONS = 2
# Above this many Jacobian entries, or scalars of one side, random directions cover the
# launch, and entries are sampled only to show where a direction disagreed.
DENSE_ENTRIES = 1_000_000
DENSE_SIDE = 2048
SAMPLED = 16
# A difference is a wrong gradient only if it is this many times the oracle's own error.
TRUST = 8.0
# An adjoint in the launch's own precision may be off by this much of the block's scale.
ROUNDING = 0.05

ORDER: tuple[Verdict, ...] = ("nan", "fail", "inconclusive", "kink", "pass", "skipped")


@dataclass
class Tally:
    """What is known about a pair so far."""

    verdict: Verdict = "skipped"
    checked: int = 0
    directional: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: Entry | None = None
    worst_excess: float = -1.0
    reason: str = ""

    def say(self, verdict: Verdict, reason: str = "") -> None:
        if ORDER.index(verdict) < ORDER.index(self.verdict):
            self.verdict = verdict
            self.reason = reason

    def compare(self, ad: float, ref: float, allowed: float, row: int, col: int) -> None:
        """Takes note of one entry's error; the worst is the one furthest over its tolerance."""
        err = abs(ad - ref)
        excess = err / allowed if np.isfinite(err) else np.inf
        if np.isfinite(err):
            self.max_abs = max(self.max_abs, err)
            if ref != 0.0:
                self.max_rel = max(self.max_rel, err / abs(ref))
        if excess > self.worst_excess:
            self.worst_excess = float(excess)
            self.worst = Entry(row, col, float(ad), float(ref))


@dataclass(frozen=True)
class Block:
    """The compared entries of one pair: which rows and columns, and both values."""

    rows: tuple[int, ...]
    cols: tuple[int, ...]
    ad: Array
    oracle: Array


@dataclass
class LaunchCheck:
    """The check of one launch. `run` gives one PairResult for each input and output pair."""

    problem: Problem
    tolerance: Tolerance
    rng: np.random.Generator
    max_inputs: int = -1
    max_outputs: int = -1
    pairs: frozenset[Pair] | None = None
    keep_blocks: bool = False
    tallies: dict[Pair, Tally] = field(default_factory=dict)
    blocks: dict[Pair, Block] = field(default_factory=dict)

    def run(self, entries: bool) -> tuple[PairResult, ...]:
        """entries: also compare single entries where the directions found nothing."""
        p = self.problem
        for a in p.inputs:
            for b in p.outputs:
                if self.pairs is None or (a, b) in self.pairs:
                    self.tallies[a, b] = Tally()
        wanted = {a for a, _ in self.tallies}, {b for _, b in self.tallies}
        self.inputs = [a for a in p.inputs if a in wanted[0] and p.size(a)]
        self.outputs = [b for b in p.outputs if b in wanted[1] and p.size(b)]
        for (a, b), t in self.tallies.items():
            if not p.size(a) or not p.size(b):
                t.reason = "the array is empty"
        broken = [name for name, x in p.own.initial.items()
                  if x.dtype.kind == "f" and not np.all(np.isfinite(x))
                  and name in p.inputs]  # fmt: skip
        if broken:
            # Not this launch's fault, and no derivative means anything there.
            for t in self.tallies.values():
                t.say("inconclusive", f"argument {broken[0]!r} holds NaN or Inf at launch")
        elif self.inputs and self.outputs:
            self.directions()
            suspicious = any(t.verdict not in ("pass", "skipped") for t in self.tallies.values())
            if suspicious or (entries and not self.large()) or self.asked():
                self.entries()
        return tuple(self.result(pair, t) for pair, t in self.tallies.items())

    def result(self, pair: Pair, t: Tally) -> PairResult:
        return PairResult(
            pair[0], pair[1], t.verdict, t.checked, t.directional, t.max_abs, t.max_rel,
            t.worst, t.reason,
        )  # fmt: skip

    @property
    def judged(self) -> Precision:
        """The precision whose adjoint is compared with the oracle."""
        return self.problem.exact if self.tolerance.auto else self.problem.own

    # Random directions

    def directions(self) -> None:
        for _ in range(DIRECTIONS):
            w = {b: self.rng.standard_normal(self.shape(b)) for b in self.outputs}
            v = {a: self.direction(a) for a in self.inputs}
            grads = {b: self.gradients(self.judged, b, w[b]) for b in self.outputs}
            for a in self.inputs:
                slope = self.slope(a, v[a])
                at = 0
                for b in self.outputs:
                    n = self.problem.size(b)
                    part = slice(at, at + n)
                    at += n
                    if (a, b) in self.tallies:
                        weights = w[b].ravel()
                        ref = float(weights @ slope.value[part])
                        error = float(np.abs(weights) @ slope.error[part])
                        self.directed(a, b, grads[b][a], v[a], ref, error)
            for b in self.outputs:
                self.own_precision(b, w[b], grads[b])

    def shape(self, name: str) -> tuple[int, ...]:
        return self.problem.exact.initial[name].shape

    def direction(self, a: str) -> Array:
        x = self.problem.exact.initial[a]
        size = np.maximum(np.abs(np.nan_to_num(x)), 0.1 * self.typical(a))
        return np.asarray(self.rng.standard_normal(x.shape) * size)

    def typical(self, a: str) -> float:
        """The size of an input's values: their root mean square, 1 if they are all zero."""
        x = self.problem.exact.initial[a]
        size = float(np.sqrt(np.mean(x * x))) if x.size else 0.0
        return size if np.isfinite(size) and size > 0 else 1.0

    def slope(self, a: str, v: Array) -> oracle.Slope:
        line = self.line(a, v)
        if self.tolerance.eps is not None:
            return oracle.fixed(line, self.tolerance.eps)
        return oracle.slope(line, 1.0, lambda d: self.tolerance.of(d, float(_largest(d))))

    def line(self, a: str, v: Array) -> oracle.Line:
        """Outputs, flat, of the lifted launch with input a displaced along v."""
        exact = self.problem.exact
        start = exact.initial[a]

        def evaluate(t: float) -> Array:
            np.copyto(exact.memory[a], start + t * v)
            return self.outputs_after(a)

        return evaluate

    def outputs_after(self, a: str) -> Array:
        exact = self.problem.exact
        for name in exact.changed:
            if name != a:
                np.copyto(exact.memory[name], exact.initial[name])
        exact._recorded = False
        exact.run(exact.variants.forward(), exact.forward_args)
        out = np.concatenate([exact.memory[b].ravel() for b in self.outputs])
        np.copyto(exact.memory[a], exact.initial[a])
        return out.astype(np.float64, copy=False)

    def gradients(self, precision: Precision, b: str, w: Array) -> dict[str, Array]:
        grads = precision.vjp({b: w})
        return {a: grads[a].astype(np.float64) for a in self.inputs}

    def directed(self, a: str, b: str, g: Array, v: Array, ref: float, error: float) -> None:
        t = self.tallies[a, b]
        t.directional += 1
        products = g * v
        if not np.all(np.isfinite(g)):
            t.compare(float("nan"), ref, 1.0, -1, -1)
            t.say("nan", "the adjoint is not finite")
            return
        ad = float(products.sum())
        spread = float(np.sqrt((products * products).sum()))
        allowed = float(self.tolerance.of(np.asarray(max(abs(ref), spread)), spread))
        t.compare(ad, ref, allowed, -1, -1)
        self.judge(t, abs(ad - ref), allowed, error, np.isfinite(ref))

    def judge(self, t: Tally, diff: float, allowed: float, error: float, finite: bool) -> None:
        if not finite:
            t.say("inconclusive", "the function itself is not finite beside this point")
        elif diff <= allowed:
            t.say("pass")
        elif diff <= TRUST * error:
            t.say("inconclusive", f"the reference itself is uncertain by {error:.1e}")
        else:
            t.say("fail")

    def own_precision(self, b: str, w: Array, exact: dict[str, Array]) -> None:
        """The launch's own adjoint must be finite, and near the lifted one."""
        if not self.tolerance.auto:
            return
        own = self.gradients(self.problem.own, b, w)
        for a in self.inputs:
            if (a, b) not in self.tallies:
                continue
            t = self.tallies[a, b]
            if not np.all(np.isfinite(own[a])):
                t.say("nan", "the adjoint is not finite")
            elif np.all(np.isfinite(exact[a])):
                scale = _largest(exact[a])
                off = _largest(own[a] - exact[a])
                if off > ROUNDING * scale and scale > 0:
                    t.say("inconclusive", f"rounding changes the adjoint by {off / scale:.0%}")

    # Single entries

    def large(self) -> bool:
        """Too many entries to compare each: random directions have to do."""
        cols = sum(self.problem.size(a) for a in self.inputs)
        rows = sum(self.problem.size(b) for b in self.outputs)
        return cols * rows > DENSE_ENTRIES or max(cols, rows) > DENSE_SIDE

    def asked(self) -> bool:
        return self.max_inputs > 0 or self.max_outputs > 0

    def limits(self) -> tuple[int, int]:
        """Columns of an input and rows of an output to compare; -1 for all."""
        fallback = SAMPLED if self.large() else -1
        ask_in = self.max_inputs if self.max_inputs > 0 else fallback
        ask_out = self.max_outputs if self.max_outputs > 0 else fallback
        return ask_in, ask_out

    def entries(self) -> None:
        ask_in, ask_out = self.limits()
        cols = {a: oracle.pick(self.problem.size(a), ask_in, self.rng) for a in self.inputs}
        slopes = {a: [self.column(a, j) for j in cols[a]] for a in self.inputs}
        at = 0
        for b in self.outputs:
            part = slice(at, at + self.problem.size(b))
            at = part.stop
            refs = {a: np.stack([s.value[part] for s in slopes[a]], axis=1) for a in self.inputs}
            errors = {a: np.stack([s.error[part] for s in slopes[a]], axis=1) for a in self.inputs}
            rows = self.rows(b, ask_out, refs)
            ads = self.adjoint_rows(b, rows, cols)
            for a in self.inputs:
                if (a, b) in self.tallies:
                    index = np.asarray(rows)
                    self.block(
                        (a, b),
                        rows,
                        cols[a],
                        ads[a],
                        refs[a][index],
                        errors[a][index],
                        part.start,
                    )

    def column(self, a: str, j: int) -> oracle.Slope:
        line, x = self.element_line(a, j)
        if self.tolerance.eps is not None:
            return oracle.fixed(line, self.tolerance.eps)
        return oracle.slope(
            line, self.scale(a, x), lambda d: self.tolerance.of(d, float(_largest(d)))
        )

    def scale(self, a: str, x: float) -> float:
        """How far to displace an element: by its own size, unless that is next to nothing."""
        return max(abs(x) if np.isfinite(x) else 0.0, 1e-3 * self.typical(a))

    def rows(self, b: str, limit: int, refs: dict[str, Array]) -> Sequence[int]:
        """Which outputs to look at: those that the chosen inputs move most, then others."""
        count = self.problem.size(b)
        if limit <= 0 or count <= limit:
            return range(count)
        moved = sum(np.nansum(np.abs(r), axis=1) for r in refs.values())
        strongest = np.argsort(-np.asarray(moved), kind="stable")[: max(1, limit - limit // 4)]
        others = self.rng.choice(count, size=limit, replace=False)
        chosen = dict.fromkeys([*strongest.tolist(), *others.tolist()])
        return sorted(list(chosen)[:limit])

    def adjoint_rows(self, b: str, rows: Sequence[int], cols: dict[str, Any]) -> dict[str, Array]:
        seed = np.zeros(self.shape(b))
        out = {a: np.empty((len(rows), len(cols[a]))) for a in self.inputs}
        index = {a: np.asarray(cols[a], dtype=np.intp) for a in self.inputs}
        for k, i in enumerate(rows):
            seed.flat[i] = 1.0
            grads = self.judged.vjp({b: seed})
            for a in self.inputs:
                out[a][k] = grads[a].reshape(-1)[index[a]]
            seed.flat[i] = 0.0
        return out

    def block(
        self, pair: Pair, rows: Sequence[int], cols: Sequence[int], ad: Array, ref: Array,
        error: Array, offset: int,
    ) -> None:  # fmt: skip
        """Compares the entries of one pair; the entry verdict replaces the directional one."""
        t = self.tallies[pair]
        if self.keep_blocks:
            self.blocks[pair] = Block(
                tuple(map(int, rows)), tuple(map(int, cols)), ad.copy(), ref.copy()
            )
        before = t.verdict
        if before in ("fail", "inconclusive"):
            t.verdict, t.reason, t.worst, t.worst_excess = "skipped", "", None, -1.0
        t.checked += ad.size
        allowed = self.tolerance.of(ref, float(_largest(ref)))
        with np.errstate(all="ignore"):
            diff = np.abs(ad - ref)
        bad = ~(diff <= allowed)
        if ad.size:
            excess = np.where(np.isfinite(diff), diff / allowed, np.inf)
            k, j = (int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
            t.compare(float(ad[k, j]), float(ref[k, j]), float(allowed[k, j]),
                      int(rows[k]), int(cols[j]))  # fmt: skip
            finite = diff[np.isfinite(diff)]
            t.max_abs = max(t.max_abs, float(finite.max(initial=0.0)))
            with np.errstate(all="ignore"):
                rel = diff / np.abs(ref)
            t.max_rel = max(t.max_rel, float(rel[np.isfinite(rel)].max(initial=0.0)))
            t.say("pass")
        for k, j in zip(*np.nonzero(bad), strict=True):
            self.entry(t, pair[0], int(cols[j]), offset + int(rows[k]), float(ad[k, j]),
                       float(ref[k, j]), float(error[k, j]), float(allowed[k, j]))  # fmt: skip
            if t.verdict == "nan":
                break
        if before in ("fail", "inconclusive") and t.verdict == "pass" and self.sampled(pair):
            # The directions saw something that the sample did not: say so, without an entry.
            t.say(before, "seen along random directions; no sampled entry shows it")
            if before == "fail":
                t.reason = "seen along random directions; the sampled entries agree"

    def sampled(self, pair: Pair) -> bool:
        t = self.tallies[pair]
        return t.checked < self.problem.size(pair[0]) * self.problem.size(pair[1])

    def entry(
        self, t: Tally, a: str, col: int, row: int, ad: float, ref: float, error: float,
        allowed: float,
    ) -> None:  # fmt: skip
        if not np.isfinite(ad):
            t.say("nan", "the adjoint is not finite")
            return
        if np.isfinite(ref) and abs(ad - ref) > TRUST * error and t.verdict == "fail":
            return
        if self.is_kink(a, col, row, ad):
            t.say("kink", "one-sided slopes differ and the adjoint lies between them")
        elif self.tolerance.eps is None and self.others_agree(a, col, row, ad, ref, allowed):
            t.say("pass")
        else:
            self.judge(t, abs(ad - ref), allowed, error, bool(np.isfinite(ref)))

    def element_line(self, a: str, col: int) -> tuple[oracle.Line, float]:
        """Outputs with one element displaced, and the element's value."""
        flat = self.problem.exact.memory[a].reshape(-1)
        x = float(flat[col])

        def line(t: float) -> Array:
            flat[col] = x + t
            return self.outputs_after(a)

        return line, x

    def others_agree(
        self, a: str, col: int, row: int, ad: float, ref: float, allowed: float
    ) -> bool:
        """Do smaller steps, where they are sharp enough to tell, all side with the adjoint?"""
        line, x = self.element_line(a, col)
        sharp = [
            abs(float(s.value[row]) - ad) <= allowed + float(s.error[row])
            for s in oracle.opinions(line, self.scale(a, x))
            if float(s.error[row]) < 0.1 * abs(ad - ref)
        ]
        return bool(sharp) and all(sharp)

    def is_kink(self, a: str, col: int, row: int, ad: float) -> bool:
        line, x = self.element_line(a, col)
        right, left = oracle.one_sided(line, max(abs(x), 1e-3))
        lo, hi = sorted((float(right[row]), float(left[row])))
        slack = 1e-4 * (abs(lo) + abs(hi))
        return np.isfinite(lo + hi) and hi - lo > 4 * slack and lo - slack <= ad <= hi + slack


def _largest(x: Array) -> float:
    finite = np.abs(x[np.isfinite(x)])
    return float(finite.max(initial=0.0))
