"""Checks one launch: first random directions over everything, then Jacobian entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd import oracle
from engine.autograd.bisect import (
    Disagreement,
    allowed_along,
    between_one_sided,
    columns_behind,
    differs_near_by,
    forward_along,
    only_by_size,
    row_behind,
)
from engine.autograd.entries import Block, adjoint_rows, judge_block, rows_to_see, spoilt
from engine.autograd.lines import Lines, largest, norm
from engine.autograd.problem import Precision, Problem
from engine.autograd.results import PairResult
from engine.autograd.tally import KINK, NOT_FINITE, Tally
from engine.autograd.tolerance import Tolerance
from engine.autograd.votes import Question, remeasured, settle

Array = NDArray[Any]
Pair = tuple[str, str]

DIRECTIONS = 3
# A direction whose error is below this part of its tolerance leaves no doubt: see `directions`.
TIGHT = 1e-3
# Above this many Jacobian entries, or scalars of one side, random directions cover the
# launch, and entries are sampled only to show where a direction disagreed.
DENSE_ENTRIES = 1_000_000
DENSE_SIDE = 2048
UNEQUAL = "elements of very different size cannot be displaced together"
SAMPLED = 16
# An adjoint in the launch's own precision may be off by this part of its largest element, or
# by so many units of rounding.
ROUNDING = 1e-2
UNITS = 64.0
# Two runs may differ by this part of the largest value: sums in another order.
REPEATED = 1e-3
LEVEL = 1e-4
TRACED = 4  # elements whose wrong outputs are searched for


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
    disagreements: dict[Pair, Disagreement] = field(default_factory=dict)

    def run(self, entries: bool) -> tuple[PairResult, ...]:
        """entries: also compare single entries where the directions found nothing."""
        p = self.problem
        for a in p.inputs:
            for b in p.outputs:
                if self.pairs is None or (a, b) in self.pairs:
                    self.tallies[a, b] = Tally()
        for pair in sorted(self.pairs or ()):
            if pair not in self.tallies:
                self.tallies[pair] = Tally(reason=self.why_not(pair))
        wanted = {a for a, _ in self.tallies}, {b for _, b in self.tallies}
        self.inputs = [a for a in p.inputs if a in wanted[0] and p.size(a)]
        self.outputs = [b for b in p.outputs if b in wanted[1] and p.size(b)]
        for (a, b), t in self.tallies.items():
            if not t.reason and not (p.size(a) and p.size(b)):
                t.reason = "the array is empty"
        self.tolerance = replace(self.tolerance, epsilon=p.epsilon)
        if self.inputs and self.outputs:
            self.lines = Lines(p, self.inputs, self.outputs, self.tolerance)
            self.look(entries)
        return tuple(
            PairResult(a, b, t.verdict, t.checked, t.directional, t.max_abs, t.max_rel, t.worst,
                       t.reason, None, t.digits_lost)
            for (a, b), t in self.tallies.items()
        )  # fmt: skip

    def why_not(self, pair: Pair) -> str:
        """Why a pair that was asked for has no derivative."""
        a, b = pair
        if a not in self.problem.inputs:
            return f"{a!r} is not an array that the kernel reads and that requires a gradient"
        return f"{b!r} is not an array that the kernel writes and that requires a gradient"

    def look(self, entries: bool) -> None:
        lines = self.lines
        dead = [x for x in self.inputs if not lines.live[x].any()]
        dead += [b for b in self.outputs if not lines.live_rows[lines.spans[b]].any()]
        for (a, b), t in self.tallies.items():
            if a in dead or b in dead:
                # Not this launch's fault, and no derivative means anything there.
                t.say("inconclusive", spoilt(lines))
        self.inputs = [a for a in self.inputs if a not in dead]
        self.outputs = [b for b in self.outputs if b not in dead]
        if not self.inputs or not self.outputs:
            return
        self.repeat()
        self.directions()
        fine = ("pass", "skipped", "rounding", "nondeterministic")
        suspicious = any(t.verdict not in fine for t in self.tallies.values())
        if suspicious or (entries and not self.large()) or self.asked():
            self.entries()

    def repeat(self) -> None:
        """Runs the launch and its adjoint twice: both must give the same again."""
        own = self.problem.own
        w = {b: self.cotangent(b) for b in self.outputs}
        runs = []
        for _ in range(2):
            made = {b: own.forward()[b].copy() for b in self.outputs}
            runs.append((made, {a: own.vjp(w)[a].copy() for a in self.inputs}))
        for (a, b), t in self.tallies.items():
            if a not in self.inputs or b not in self.outputs:
                continue
            for what, x, y in (
                ("its results", runs[0][0][b], runs[1][0][b]),
                ("its adjoint", runs[0][1][a], runs[1][1][a]),
            ):
                with np.errstate(all="ignore"):
                    spread, size = largest(x - y), largest(x)
                if spread > REPEATED * size:
                    part = f"{spread / size:.1e} of the largest value" if size else f"{spread:.1e}"
                    t.say("nondeterministic", f"{what} differ by {part}")

    # Random directions

    def directions(self) -> None:
        """Compares w'Jv along random directions.

        The v are normal, so that w'Ev is so, too, for an error E of the Jacobian, and falls
        below a part TIGHT of its own standard deviation with probability sqrt(2/pi) TIGHT.
        An error of the tolerance's size, one whose w'Ev has the direction's tolerance for its
        standard deviation, stays below TIGHT in DIRECTIONS = 3 directions with probability
        (8e-4)^3 = 5e-10. A pass of less than that needs forward mode, whose only error is
        rounding, to agree as closely; where neither does (rough functions without a forward
        mode), an error of m tolerances passes with probability (0.8/m)^3 at most.
        """
        lines = self.lines
        grads: dict[str, dict[str, Array]] = {}
        w: dict[str, Array] = {}
        for _ in range(DIRECTIONS):
            # Later ones keep the magnitudes, so that `levelled` knows what each part counts for.
            w = {b: self.flipped(w[b]) if w else self.cotangent(b) for b in self.outputs}
            v = {a: lines.direction(a, self.rng) for a in self.inputs}
            if grads:
                v = {a: levelled(v[a], [grads[b][a] for b in self.outputs]) for a in v}
            grads = {b: self.gradients(self.problem.exact, b, w[b]) for b in self.outputs}
            for a in self.inputs:
                asked = [b for b in self.outputs if (a, b) in self.tallies]
                found = [Disagreement(a, b, w[b], grads[b][a], v[a]) for b in asked]
                self.along(found, lines.slope_of(lines.weighted(a, v[a], {b: w[b] for b in asked})))
            for b in self.outputs:
                self.own_precision(b, w[b], grads[b])

    def cotangent(self, b: str) -> Array:
        shape = self.problem.exact.initial[b].shape
        live = self.lines.live_rows[self.lines.spans[b]].reshape(shape)
        return np.where(live, self.rng.standard_normal(shape), 0.0)

    def flipped(self, w: Array) -> Array:
        return np.asarray(w * self.rng.choice([-1.0, 1.0], w.shape))

    def gradients(self, precision: Precision, b: str, w: Array) -> dict[str, Array]:
        grads = precision.vjp({b: w})
        return {a: grads[a].astype(np.float64) for a in self.inputs}

    def along(self, found: list[Disagreement], sums: oracle.Slope) -> None:
        """Compares w'Jv of an input with several outputs. sums: by differences, one for each.

        What these do not confirm is looked at output by output, each with the step that
        suits it.
        """
        slope: oracle.Slope | None = None
        for k, d in enumerate(found):
            t, lines = self.tallies[d.a, d.b], self.lines
            t.directional += 1
            ref, error = float(sums.value[k]), float(sums.error[k])
            if not np.all(np.isfinite(d.g[lines.live[d.a]])):
                self.not_finite(t, ref)
                continue
            parts = np.where(d.v == 0, 0.0, d.g * d.v)
            ad, size = float(parts.sum()), norm(parts)
            allowed = allowed_along(lines, d.w, d.g, d.v, ref)
            if not (np.isfinite(ref) and abs(ad - ref) <= allowed):
                first = Tally()
                settle(first, self.question(d, ad, ref, error, allowed))
                if first.verdict != "pass":
                    slope = slope or lines.slope_along(d.a, d.v)
                    ref, error = self.summed(d, slope)
                    allowed = allowed_along(lines, d.w, d.g, d.v, ref)
            t.compare(ad, ref, max(allowed, 1e-300), -1, -1, size)
            if allowed > 0 and TIGHT * allowed < abs(ad - ref) <= allowed:
                self.closer(t, d, ad, allowed)
            else:
                settle(t, self.question(d, ad, ref, error, allowed))
            if t.verdict == "fail":
                self.disagreements.setdefault((d.a, d.b), d)

    def summed(self, d: Disagreement, slope: oracle.Slope) -> tuple[float, float]:
        """w'Jv by the differences of all outputs, and its error."""
        part, weights = self.lines.spans[d.b], d.w.ravel()
        with np.errstate(all="ignore"):
            value = np.where(weights == 0, 0.0, weights * slope.value[part])
            error = np.where(weights == 0, 0.0, np.abs(weights) * slope.error[part])
            return float(value.sum()), float(error.sum())

    def question(
        self, d: Disagreement, ad: float, ref: float, error: float, allowed: float
    ) -> Question:
        """What forward mode and a closer look at the differences may be asked."""
        lines = self.lines
        return Question(
            ad, ref, error, allowed, lambda: forward_along(lines, d),
            lambda: remeasured(lines.weighted(d.a, d.v, {d.b: d.w}), 1.0, lines.grain),
        )  # fmt: skip

    def closer(self, t: Tally, d: Disagreement, ad: float, allowed: float) -> None:
        """Judges a direction that passes, if not as clearly as it should."""
        forward = forward_along(self.lines, d)
        if np.isfinite(forward) and abs(ad - forward) > allowed:
            t.say("fail")
        else:
            t.say("pass")

    def not_finite(self, t: Tally, ref: float) -> None:
        if self.lines.spoiled:
            t.say("inconclusive", spoilt(self.lines))
            return
        t.compare(float("nan"), ref, 1.0, -1, -1)
        t.say("nan", NOT_FINITE)

    def own_precision(self, b: str, w: Array, exact: dict[str, Array]) -> None:
        """The launch's own adjoint must be finite, and near the lifted one."""
        own = self.gradients(self.problem.own, b, w)
        for a in self.inputs:
            if (a, b) not in self.tallies:
                continue
            t, live = self.tallies[a, b], self.lines.live[a]
            mine, lifted = own[a][live], exact[a][live]
            if not np.all(np.isfinite(mine)):
                self.not_finite(t, 0.0) if self.lines.spoiled else t.say("nan", NOT_FINITE)
            elif np.all(np.isfinite(lifted)):
                unit = float(np.finfo(self.problem.own.grads[a].dtype).eps)
                self.rounding(t, largest(lifted), largest(mine - lifted), unit)

    def rounding(self, t: Tally, scale: float, off: float, unit: float) -> None:
        """Judges how far the launch's own adjoint is from the lifted one. unit: of rounding."""
        # One cotangent may make next to nothing of a derivative by cancellation.
        t.scale, t.off = max(t.scale, scale), max(t.off, off)
        asked = self.tolerance.rtol
        limit = max(ROUNDING if asked is None else asked, UNITS * unit)
        if t.directional < DIRECTIONS or not t.off > limit * t.scale > 0:
            return
        most = -float(np.log10(unit))
        t.digits_lost = min(most, float(np.log10(t.off / t.scale / unit)))
        t.say("rounding", f"{t.digits_lost:.1f} of {most:.1f} digits are lost to rounding")

    # Single entries

    def large(self) -> bool:
        """Too many entries to compare each: random directions have to do."""
        cols = sum(self.problem.size(a) for a in self.inputs)
        rows = sum(self.problem.size(b) for b in self.outputs)
        return cols * rows > DENSE_ENTRIES or max(cols, rows) > DENSE_SIDE

    def asked(self) -> bool:
        return self.max_inputs > 0 or self.max_outputs > 0

    def entries(self) -> None:
        fallback = SAMPLED if self.large() else -1
        ask_in = self.max_inputs if self.max_inputs > 0 else fallback
        ask_out = self.max_outputs if self.max_outputs > 0 else fallback
        lines, rng = self.lines, self.rng
        cols = {a: self.columns(a, ask_in) for a in self.inputs}
        complete, traced = self.trace(cols)
        slopes = {a: [lines.column(a, j) for j in cols[a]] for a in self.inputs}
        for b in self.outputs:
            part = lines.spans[b]
            every = [s for a in self.inputs for s in slopes[a]]
            live = lines.live_rows[part]
            rows = rows_to_see(self.problem.size(b), ask_out, every, part, live, rng)
            rows = sorted({*rows, *self.traced_rows(b, traced, cols, slopes)})
            ads = adjoint_rows(lines, lambda b, w: self.problem.exact.vjp({b: w}), b, rows, cols)
            at = part.start + np.asarray(rows, dtype=np.intp)
            for a in self.inputs:
                if (a, b) in self.tallies:
                    block = Block(
                        tuple(rows), tuple(cols[a]), ads[a],
                        np.stack([s.value[at] for s in slopes[a]], axis=1),
                        np.stack([s.error[at] for s in slopes[a]], axis=1),
                    )  # fmt: skip
                    self.compared((a, b), block, (a, b) in complete)

    def columns(self, a: str, limit: int) -> list[int]:
        every = np.flatnonzero(self.lines.live[a])
        return [int(every[k]) for k in oracle.pick(len(every), limit, self.rng)]

    def trace(self, cols: dict[str, list[int]]) -> tuple[set[Pair], dict[Pair, list[int]]]:
        """Adds the elements behind each disagreement to a sample of columns.

        Gives the pairs whose disagreement is fully traced to elements, and these.
        """
        complete: set[Pair] = set()
        traced: dict[Pair, list[int]] = {}
        for pair, d in self.disagreements.items():
            if len(cols[pair[0]]) == np.count_nonzero(self.lines.live[pair[0]]):
                complete.add(pair)
                continue
            found, all_of_them = columns_behind(self.lines, d)
            traced[pair] = found
            cols[pair[0]] = sorted({*cols[pair[0]], *found})
            if found and all_of_them:
                complete.add(pair)
        return complete, traced

    def traced_rows(
        self, b: str, traced: dict[Pair, list[int]], cols: dict[str, list[int]],
        slopes: dict[str, list[oracle.Slope]],
    ) -> set[int]:  # fmt: skip
        """Outputs in which the traced elements disagree."""
        out = set()
        for (a, other), found in traced.items():
            for col in found[:TRACED] if other == b else ():
                column = slopes[a][cols[a].index(col)]
                row = row_behind(self.lines, self.disagreements[a, b], col, column)
                if row is not None:
                    out.add(row)
        return out

    def compared(self, pair: Pair, block: Block, complete: bool) -> None:
        """Judges a pair by its entries. complete: no other element can be behind a failure."""
        t = self.tallies[pair]
        if self.keep_blocks:
            self.blocks[pair] = block
        before, why, d = t.verdict, t.reason, self.disagreements.get(pair)
        if before == "nan":
            t.checked += block.ad.size
            return
        judge_block(self.lines, t, *pair, block)
        whole = t.checked == self.problem.size(pair[0]) * self.problem.size(pair[1])
        if whole or t.verdict in ("fail", "nan"):
            return
        if before == "inconclusive" and t.verdict == "pass":
            t.say(before, f"{why} (along random directions; no sampled entry shows it)")
        elif d is not None and not (complete and t.verdict == "kink"):
            # The directions saw something that the sampled entries do not account for.
            if only_by_size(self.lines, d):
                t.say("inconclusive", UNEQUAL)
            elif differs_near_by(self.lines, d, self.rng):
                t.say("fail", "seen along random directions; the sampled entries agree")
            elif t.verdict == "kink" or between_one_sided(self.lines, d):
                t.say("kink", KINK)
            else:
                t.say("fail", "seen along random directions; the sampled entries agree")


def levelled(v: Array, grads: Sequence[Array]) -> Array:
    """The direction with its strongest parts weakened, so that weak ones show beside them.

    v times the gradients of an earlier direction says how much each part counts; all are
    made to count as the weakest, or as LEVEL of their median, which rounding leaves visible.
    """
    with np.errstate(all="ignore"):
        part = np.max([np.abs(g * v) for g in grads], axis=0)
        counts = part[np.isfinite(part) & (part > 0)]
        if not counts.size:
            return v
        level = max(float(counts.min()), LEVEL * float(np.median(counts)))
        return np.where(part > 0, v * np.fmin(1.0, level / part), v)


__all__ = ["Block", "LaunchCheck", "Pair"]
