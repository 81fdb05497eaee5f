"""The check of one launch of Warp: its adjoint against the engine's, which is checked itself.

The launch is run again by the engine, on copies, from the same Python text. Where both leave the
same results, the engine's float64 adjoint of it, which differences confirm, says what Warp's
gradients must be.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import engine
from engine import config
from engine.autograd.comparison.tolerance import largest, relative_to
from engine.autograd.facts import Peer, Reason
from engine.autograd.launch.check import LaunchOptions, check_launch
from engine.autograd.launch.derived import generated
from engine.autograd.launch.evaluation import Evaluation, EvaluationFailed, Evaluations
from engine.autograd.launch.experience import Experience
from engine.autograd.launch.paths import faithful
from engine.autograd.launch.recorded_arguments import NotRepeatable, recorded_launch
from engine.autograd.results import Entry, LaunchResult, PairResult
from engine.autograd.tape.options import Options
from engine.autograd.variables.element_names import element_name
from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError, Span
from engine.diagnostics.site import definition_of
from engine.draws import default_rng
from engine.foreign.check import Seen
from engine.foreign.warp_adjoint import WarpRun
from engine.foreign.warp_handles import links
from engine.foreign.warp_kernels import Translation, Untranslatable
from engine.foreign.warp_operation import check_alone
from engine.foreign.warp_reasons import reasons
from engine.foreign.warp_tapes import WarpLaunch
from engine.foreign.warp_values import Array, for_engine
from engine.tape.records import LaunchRecord, launches

# What Warp's gradient may be off by: relative to itself, and to the largest near by.
RTOL, FLOOR = 2e-3, 2e-5
# Results of both must be as close as that.
RESULTS, RESULTS_FLOOR = 1e-3, 1e-4
# Times what rounding changes in the engine's adjoint of the launch's own precision.
ROUNDING = 16.0
DIRECTIONS = 2
SINGLE = 64  # scalars of an output that are looked at one by one
# Nothing to compare, or something that is wrong with the kernel as it is written.
_OPEN = ("fail", "nan", "skipped", "nondeterministic")
ROWS = 24  # that are looked at to name the worst entry


@contextmanager
def meaning_warps() -> Iterator[None]:
    """Kernels mean what they do in Warp, where that differs."""
    from engine.alias import DIFFERENCES

    wanted = {d.setting: d.value for d in DIFFERENCES} | {"overwrites": "restore"}
    before = {name: getattr(config, name) for name in wanted}
    for name, value in wanted.items():
        setattr(config, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


class LaunchCheck:
    """Checks launches of Warp, one after the other."""

    def __init__(self, warp: Any, translation: Translation, experience: Experience) -> None:
        self.warp = warp
        self.translation = translation
        self.experience = experience
        self._seen = Seen()
        self._peer = Peer("Warp", str(getattr(warp, "__version__", "")))

    def left(self, index: int, launch: WarpLaunch, options: Options) -> LaunchResult | None:
        """What is found of a launch that is left to the check of its tape as a whole.

        None where it is to be checked by itself: see `Experience`.
        """
        if not options.of_launch(launch.kernel.key).leaves:
            return None
        kind = _kind(launch)
        like = self.experience.like(kind)
        if like is None:
            return None
        self.experience.add(kind)
        return replace(like, index=index, site=launch.span, peer=self._peer)

    def check(self, index: int, launch: WarpLaunch, options: Options) -> LaunchResult:
        """What is found of a launch by itself."""
        found, variants = self._checked(index, launch, options)
        kind = _kind(launch)
        self.experience.add(kind)
        self.experience.learn(kind, found, variants is not None and generated(variants))
        return found

    def _checked(
        self, index: int, launch: WarpLaunch, options: Options
    ) -> tuple[LaunchResult, Variants | None]:
        """The same, with the kernel as the engine has it, where it does."""
        how = options.of_launch(launch.kernel.key)
        site = launch.span
        result = LaunchResult(
            index, launch.kernel.key, launch.dim, (), place_of(launch.kernel), site,
            peer=self._peer,
        )  # fmt: skip
        try:
            _refuse_overlaps(launch)
            if linked := next((a.path for a in launch.arrays if links(a.dtype)), ""):
                raise Untranslatable(f"argument {linked!r} is an array of structs that hold arrays")
            try:
                self.translation.kernel(launch.kernel)
            except Untranslatable as why:
                if launch.kept is None:
                    raise
                run = WarpRun(self.warp, launch)
                return check_alone(run, launch, result, str(why), options, self._seen), None
            record = self.record(launch)
        except Untranslatable as why:
            return replace(result, skipped=str(why)), None
        except EngineError as error:
            first = error.diagnostics[0]
            reason = f"the engine does not run it: {first.message}"
            return replace(result, skipped=reason), None
        variants = record.plan.variants
        base = check_launch(index, record, how, self.experience).result
        base = replace(base, site=site, kernel=launch.kernel.key, peer=self._peer)
        if base.skipped:
            return base, variants
        try:
            with faithful(recorded_launch(record)) as evaluated:
                return self._compared(base, launch, evaluated, how), variants
        except (NotRepeatable, Untranslatable) as why:
            return replace(base, pairs=(), skipped=str(why)), variants
        except EvaluationFailed as why:
            return replace(base, pairs=(), skipped=f"its check could not run: {why}"), variants

    def record(self, launch: WarpLaunch, every: bool = False) -> LaunchRecord:
        """The launch, run by the engine on copies. Raises Untranslatable, EngineError.

        every: with gradients of all arrays of floats.
        """
        _refuse_overlaps(launch)
        kernel = self.translation.kernel(launch.kernel)
        make = for_engine(self.translation, launch.before, every)
        given = [make(tree) for tree in launch.args]
        tape = engine.Tape()
        with tape:
            engine.launch(kernel, dim=launch.dim, inputs=given, device="cpu")
        found = launches(tape.records)
        if not found:
            raise Untranslatable("the launch has no threads")
        return found[0]

    def _compared(
        self, base: LaunchResult, launch: WarpLaunch, evaluated: Evaluations,
        options: LaunchOptions,
    ) -> LaunchResult:  # fmt: skip
        run = WarpRun(self.warp, launch)
        why = _results_differ(evaluated, run.forward())
        if why:
            return replace(base, pairs=(), skipped=why)
        pairs = {(p.input, p.output): p for p in base.pairs}
        rng = default_rng([0x3A2B, options.seed, base.index])
        first, wrong = tuple(pairs.values()), False
        # Many like it were right: one direction compares each element of the gradients, too.
        directions = 1 if all(p.by_whole for p in first) else DIRECTIONS
        for b in evaluated.outputs:
            looked_at = [key for key, p in pairs.items() if key[1] == b and p.verdict not in _OPEN]
            closely = any(pairs[key].checked for key in looked_at)
            for key in looked_at:
                pairs[key] = _of_warp(pairs[key])
            for seed, single in _cotangents(evaluated, b, rng, directions, closely):
                differing = _Differing(evaluated, run, {b: seed}, single)
                for key in looked_at:
                    pairs[key] = differing.judged(pairs[key])
                    wrong = wrong or pairs[key].verdict in ("fail", "nan")
        base = replace(base, pairs=tuple(pairs.values()))
        if not wrong or any(p.verdict in ("fail", "nan") for p in first):
            return base  # what is wrong with the kernel itself is told first
        causes = self._reasons(launch, evaluated, run)
        return replace(base, peer=replace(self._peer, wrong=True, reasons=causes))

    def _reasons(
        self, launch: WarpLaunch, evaluated: Evaluations, run: WarpRun
    ) -> tuple[Reason, ...]:
        """Why its adjoint is wrong, as far as is known."""
        found = reasons(launch.kernel)
        rng = default_rng(0x3E5)
        seeds = {b: rng.standard_normal(evaluated.own.initial[b].shape) for b in evaluated.outputs}
        exact, as_before = _copied(evaluated.exact, seeds), run.gradients(seeds, launch.before)
        if all(_agree(exact[a], as_before.get(a)) for a in evaluated.inputs):
            within = Reason(
                "within", "the launch overwrites elements that it "
                          "reads, and the backward pass reads the new "
                          "values", place_of(launch.kernel),
            )  # fmt: skip
            found = (*(r for r in found if r.kind == "in place"), within)
        return found


class _Differing:
    """The gradients of all inputs by a cotangent, as Warp and as the engine have them.

    single: whether the cotangent is that of one scalar.
    """

    def __init__(
        self, evaluated: Evaluations, run: WarpRun, seeds: Mapping[str, Array], single: bool
    ) -> None:
        self.evaluated, self.run, self.seeds, self.single = evaluated, run, seeds, single
        self.exact = _copied(evaluated.exact, seeds)
        self.own = _copied(evaluated.own, seeds)
        self.warps = run.gradients(seeds)

    def judged(self, pair: PairResult) -> PairResult:
        """The pair, with what Warp's gradient says."""
        a = pair.input
        if pair.verdict in ("fail", "nan"):
            return pair
        got, exact, own = self.warps.get(a), self.exact[a], self.own[a]
        if got is None:
            got = np.zeros(exact.shape)
        got = got.reshape(exact.shape).astype(np.float64)
        if self.single:
            pair = replace(pair, checked=pair.checked + got.size)
        else:
            pair = replace(pair, directional=pair.directional + 1)
        finite = np.isfinite(exact)
        if not np.all(np.isfinite(got[finite])):
            return replace(pair, verdict="nan", reason="the adjoint of Warp is not "
                                                       "finite, but the derivative "
                                                       "is")  # fmt: skip
        off = np.where(finite, np.abs(got - np.where(finite, exact, 0.0)), 0.0)
        slack = np.where(np.isfinite(own) & finite, np.abs(own - exact), 0.0)
        scale = largest(exact)
        near = max(scale, pair.scale)
        allowed = RTOL * np.abs(np.where(finite, exact, 0.0)) + FLOOR * near + 1e-30
        allowed += ROUNDING * np.maximum(slack, 1e-2 * largest(slack))
        excess = off / allowed
        if not excess.size:
            return pair
        worst = int(np.argmax(excess))
        entry = Entry(-1, -1, float(got.flat[worst]), float(exact.flat[worst]))
        pair = _measured(pair, entry, float(allowed.flat[worst]), largest(off), scale)
        if not excess.max() > 1.0:
            return pair
        if pair.verdict in ("kink", "inconclusive") and self._beside(pair, worst, got):
            return pair
        entry = self._entry(pair, worst, got)
        pair = _measured(replace(pair, worst=None), entry, 0.0, largest(off), scale)
        return replace(pair, verdict="fail", reason="", corner=None)

    def _beside(self, pair: PairResult, col: int, got: Array) -> bool:
        """Whether Warp's value is one of the slopes beside a kink, or nothing is known."""
        if pair.verdict == "inconclusive":
            return True
        sides = [self._slope(pair, col, s) for s in (1.0, -1.0)]
        if not np.all(np.isfinite(sides)):
            return True
        slack = RTOL * max(map(abs, sides)) + 1e-6
        return bool(min(sides) - slack <= got.reshape(-1)[col] <= max(sides) + slack)

    def _slope(self, pair: PairResult, col: int, side: float) -> float:
        exact = self.evaluated.exact
        b, w = pair.output, self.seeds[pair.output]
        x = exact.initial[pair.input].reshape(-1)
        begin = float(x[col])
        step = side * 1e-5 * max(abs(begin), 1e-2)
        try:
            here = float(np.sum(exact.forward()[b] * w))
            x[col] = begin + step
            exact.refresh()
            there = float(np.sum(exact.forward()[b] * w))
        finally:
            x[col] = begin
            exact.refresh()
        return (there - here) / step

    def _entry(self, pair: PairResult, col: int, got: Array) -> Entry:
        """The entry of the Jacobian that is furthest off, for an element of the input."""
        a, b = pair.input, pair.output
        exact = self.evaluated.exact
        shape, width = exact.initial[b].shape, exact.initial[a].shape
        column = self._column(a, b, col)
        order = np.argsort(-np.abs(column), kind="stable")[:ROWS]
        best: Entry | None = None
        for row in order:
            unit = np.zeros(shape)
            unit.reshape(-1)[row] = 1.0
            mine = float(_copied(exact, {b: unit})[a].reshape(-1)[col])
            theirs = float(self.run.gradients({b: unit})[a].reshape(-1)[col])
            known = best is not None and abs(theirs - mine) <= abs(best.ad - best.oracle)
            if not known and abs(theirs - mine) > RTOL * abs(mine):
                best = Entry(
                    int(row), col, theirs, mine, row_name=element_name(b, int(row), shape),
                    col_name=element_name(a, col, width),
                )  # fmt: skip
        if best is not None:
            return best
        return Entry(-1, -1, float(got.reshape(-1)[col]), float(self.exact[a].reshape(-1)[col]))

    def _column(self, a: str, b: str, col: int) -> Array:
        """The derivatives of an output by an element of an input, one for each scalar."""
        exact = self.evaluated.exact
        v = np.zeros(exact.initial[a].shape)
        v.reshape(-1)[col] = 1.0
        try:
            found: Array = np.nan_to_num(exact.jvp({a: v})[b].reshape(-1).copy())
        except EvaluationFailed:
            found = np.ones(exact.initial[b].size)
        return found


def _of_warp(pair: PairResult) -> PairResult:
    """The pair, ready for what Warp's adjoint is: the engine's own numbers are not of interest."""
    return replace(
        pair, checked=0, directional=0, max_abs_error=0.0, max_rel_error=0.0, worst=None,
        digits_lost=0.0, scale=0.0, off=0.0, forward_error=None, by_whole=False,
    )  # fmt: skip


def _measured(
    pair: PairResult, entry: Entry, allowed: float, off: float, scale: float
) -> PairResult:
    """The pair, with what an entry is off by."""
    error = abs(entry.ad - entry.oracle)
    most = max(allowed, FLOOR * scale)
    relative = relative_to(error, entry.oracle, most, RTOL)
    worst = pair.worst
    if worst is None or error > abs(worst.ad - worst.oracle):
        worst = replace(entry, relative=relative, allowed=most)
    return replace(
        pair, worst=worst, max_abs_error=max(pair.max_abs_error, error),
        max_rel_error=max(pair.max_rel_error, relative or 0.0), off=max(pair.off, off),
        scale=max(pair.scale, scale), tolerance=RTOL,
    )  # fmt: skip


def _cotangents(
    evaluated: Evaluations, b: str, rng: np.random.Generator, directions: int, closely: bool
) -> Iterator[tuple[Array, bool]]:
    """Random cotangents of an output, then those of each of its scalars, if they are few."""
    like = evaluated.own.initial[b]
    for _ in range(directions):
        yield rng.standard_normal(like.shape).astype(like.dtype).astype(np.float64), False
    if closely and like.size <= SINGLE:
        for k in range(like.size):
            unit = np.zeros(like.shape)
            unit.flat[k] = 1.0
            yield unit, True


def _copied(launch: Evaluation, seeds: Mapping[str, Array]) -> dict[str, Array]:
    return {n: g.astype(np.float64, copy=True) for n, g in launch.vjp(seeds).items()}


def _agree(exact: Array, got: Array | None) -> bool:
    if got is None:
        return not exact.any()
    off = np.abs(exact - got.reshape(exact.shape))
    return bool(np.all(off <= RTOL * np.abs(exact) + FLOOR * largest(exact) + 1e-30))


def _results_differ(evaluated: Evaluations, theirs: Mapping[str, Array]) -> str:
    """Why gradients cannot be compared: the engine's results are others than Warp's."""
    own = {n: x.copy() for n, x in evaluated.own.forward().items()}
    for name in evaluated.own.changed:
        mine, other = own[name], theirs.get(name)
        if other is None or mine.dtype.kind != "f":
            continue
        other = other.reshape(mine.shape)
        with np.errstate(all="ignore"):
            off = np.abs(mine.astype(np.float64) - other.astype(np.float64))
            off = np.where((mine == other) | (np.isnan(mine) & np.isnan(other)), 0.0, off)
            allowed = RESULTS * np.abs(mine) + RESULTS_FLOOR * largest(mine) + 1e-30
            excess = np.where(np.isfinite(off), off / allowed, np.inf)
        if excess.max(initial=0.0) > 1.0:
            k = int(np.argmax(excess))
            there, here = float(other.reshape(-1)[k]), float(mine.reshape(-1)[k])
            return (
                "Warp and the engine compute different results, so gradients cannot be compared: "
                f"{element_name(name, k, mine.shape)} is {there:.6g} in Warp and {here:.6g} here"
            )
    return ""


def _refuse_overlaps(launch: WarpLaunch) -> None:
    arrays = [a for a in launch.arrays if a.begin and all(a.shape)]
    for k, a in enumerate(arrays):
        for b in arrays[:k]:
            if a.key == b.key or a.end <= b.begin or b.end <= a.begin:
                continue
            changed = any(launch.before[x.path] is not launch.after[x.path] for x in (a, b))
            if changed:
                raise Untranslatable(f"arguments {b.path!r} and {a.path!r} overlap in memory")


def _kind(launch: WarpLaunch) -> Hashable:
    """Equal for launches of one kernel over equal grids, with arguments of equal shapes.

    Also equal: which arrays have gradients, and which are the same memory.
    """
    first: dict[Any, str] = {}
    arrays = tuple(
        (a.path, a.shape, a.dtype, bool(a.grad), first.setdefault(a.key, a.path))
        for a in launch.arrays
    )
    return "Warp", launch.kernel, launch.dim, launch.block_dim, arrays


def place_of(kernel: Any) -> Span:
    """The `def` line of a kernel."""
    return definition_of(kernel.func.__code__)
