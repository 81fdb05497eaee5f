"""Tests whether a tape's backward pass gives the derivative of the whole tape.

Along a random direction in the leaf arrays, three numbers must agree: what the lifted
backward pass says, central differences of the lifted replay, and, where these two differ,
forward mode, which needs no step. Forward mode composes the launches' own derivatives, so
that it is blind to a wrong derivative of one launch and sharp for a wrong composition. That
is what is looked for here; single launches are checked by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import TRUST
from engine.autograd.comparison.tolerance import Tolerance, largest, relative_error
from engine.autograd.launch.confirmed import CLOSE
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.reference.differences import Slope, bear_out, remembered, slope
from engine.autograd.results import LaunchResult, Verdict, WholeResult
from engine.autograd.tape.cause import cause_of, culprit, of_linear
from engine.autograd.tape.evaluation import AdjointAlong, Direction, Levelled, TapeEvaluation
from engine.autograd.tape.operations import NotReplayable, ReplayedLinear
from engine.autograd.tape.recorded_tape import recorded_tape
from engine.autograd.tape.replay import replay
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.draws import default_rng
from engine.tape.capture import CapturedTape
from engine.tape.records import Record
from engine.tape.tape import Tape

Array = NDArray[Any]

_RIGHT: frozenset[Verdict] = frozenset(("pass", "kink", "rounding", "skipped"))
TELLS = 0.1  # the error of differences that still tells something, as a part of them
DIRECTIONS = 2
NOISE = 32.0  # times what rounding is seen to change, which it may have changed here
LONG = 1000  # operations, beyond which runs of a tape are saved

WRONG_LAUNCH = "a derivative of one of its launches is wrong"
ALONE = "differences are inconclusive, and not every launch is verified"
GIVEN = "an array that it reads holds NaN or Inf"
UNREPEATABLE = "one of its launches gives other results each time it runs"
AT_ODDS = "forward mode and differences disagree, and the differences agree with the adjoint"


def check_end_to_end(
    tape: Tape | CapturedTape, tolerance: Tolerance, launches: Sequence[LaunchResult] | None,
    seed: int, known: bool = False, before: WholeResult | None = None, number: int = 0,
) -> WholeResult:  # fmt: skip
    """The check of a tape from its leaves to its ends.

    launches: what their checks found; None where that is not known, and the result is to be what it
    is if all are right (see `all_right`). known: whether tapes like it were checked, so that fewer
    runs of it will do. before: what was found of the last one of these. number: how many of them
    were checked before, so that each is looked at along directions of its own.
    """
    found = _whole(tape, tolerance, launches, seed, known, before, number)
    if known or found.verdict in ("fail", "nan"):
        return found
    return _wrong_record(recorded_tape(tape).records) or found


def _whole(
    tape: Tape | CapturedTape, tolerance: Tolerance, launches: Sequence[LaunchResult] | None,
    seed: int, known: bool, before: WholeResult | None, number: int,
) -> WholeResult:  # fmt: skip
    if any(p.verdict == "nondeterministic" for x in launches or () for p in x.pairs):
        return _skipped(UNREPEATABLE)  # its replay would seem to be overwritten by something
    try:
        with closing(replay(recorded_tape(tape))) as replayed, replayed.watched():
            if replayed.leaves and not any(x.part.size for x in replayed.leaves):
                return _skipped("the arrays that it reads are empty")
            if not replayed.leaves:
                return _skipped("no array that it reads requires a gradient")
            rng = default_rng([seed, 0x7A9E, number])
            return _checked(TapeEvaluation(replayed, rng), tolerance, launches, rng, known, before)
    except NotReplayable as why:
        return _skipped(str(why), why.site)
    except EvaluationFailed as why:
        return _skipped(f"its replay could not run: {why}")
    except MemoryError:
        return _skipped("its check does not fit into memory")


def all_right(launches: Sequence[LaunchResult]) -> bool:
    """Whether no launch was found to be anything but right, as far as it was looked at."""
    return all(p.verdict in _RIGHT for x in launches for p in x.pairs)


def _skipped(why: str, site: Span | None = None) -> WholeResult:
    return WholeResult("skipped", reason=why, site=site)


def _checked(
    evaluation: TapeEvaluation, tolerance: Tolerance, launches: Sequence[LaunchResult] | None,
    rng: np.random.Generator, known: bool, before: WholeResult | None,
) -> WholeResult:  # fmt: skip
    """The worst of some directions; the last ones make all leaves count alike."""
    if not evaluation.finite:
        return WholeResult("inconclusive", reason="the tape computes values that are not finite")
    verdicts = {x.index: {p.verdict for p in x.pairs} for x in launches or ()}
    left = launches is None or any(p.by_whole for x in launches for p in x.pairs)
    found = WholeResult("skipped")
    briefly = known or len(evaluation.replay.operations) > LONG
    for number in range(1 if briefly else DIRECTIONS):
        if briefly or number:
            level = evaluation.levelled_direction(rng, evaluation.gradients())
        else:
            v = evaluation.direction(rng)
            level = Levelled(v, v, None)
        v = level.v
        adjoint = evaluation.adjoint_along(v)
        again = _overwritten_again(evaluation, v, adjoint, tolerance, before) if known else None
        if again is not None:
            return again
        one = _briefly(evaluation, level, tolerance) if briefly else None
        if one is None:
            one = _along(evaluation, v, adjoint, tolerance, verdicts)
            fainter = one.verdict == "pass" and _faint(evaluation, level, tolerance, verdicts)
            if fainter and level.faint is not None:
                one, v = fainter, level.faint
        found = _worse(found, one, number + 1)
        if found.verdict != "pass":
            break
    if found.verdict == "fail" and left:
        try:
            forward = evaluation.forward_along(v)
            found = replace(found, parts_right=_parts_right(evaluation, v, forward, tolerance))
        except EvaluationFailed:
            pass
    if found.verdict == "pass" and not briefly:
        found = replace(found, rounding=evaluation.rounding(evaluation.gradients()))
    return found


def _wrong_record(records: Sequence[Record]) -> WholeResult | None:
    """What is wrong with the backward pass of a linear record, which no other check looks at.

    Each kind of them is looked at by itself, for the whole does not show all of it: gradients that
    reach no leaf, and tapes that cannot be replayed.
    """
    linear = [ReplayedLinear.of(x) for r in records if (x := r.linear) is not None]
    for s in {s.kind: s for s in linear}.values():
        try:
            found = s.mismatch()
        except MemoryError:
            continue
        if found is not None:
            backward, forward = found
            error = abs(backward - forward) / max(abs(forward), 1e-300)
            return WholeResult("fail", 1, backward, forward, error, cause=of_linear(s, True))
    return None


def _parts_right(
    evaluation: TapeEvaluation, v: Direction, forward: float, tolerance: Tolerance
) -> bool:
    """Whether the derivatives of all launches make the right one, where nothing is overwritten."""
    with evaluation.healed():
        return _beside(evaluation.adjoint_along(v), forward, tolerance).agrees(forward)


def _beside(adjoint: AdjointAlong, forward: float, tolerance: Tolerance) -> Derivatives:
    return Derivatives.of(adjoint, Slope(np.array([forward]), np.zeros(1)), tolerance)


def _overwritten_again(
    evaluation: TapeEvaluation, v: Direction, adjoint: AdjointAlong, tolerance: Tolerance,
    before: WholeResult | None,
) -> WholeResult | None:  # fmt: skip
    """What is wrong with a tape, if it is what was wrong with the last one like it.

    That is told by putting back what was overwritten, and not by a search.
    """
    if before is None or before.cause is None or before.cause.kind != "overwrite":
        return None
    try:
        forward = evaluation.forward_along(v)
    except EvaluationFailed:
        return None
    n = _beside(adjoint, forward, tolerance)
    if not np.isfinite([n.ad, forward]).all() or n.agrees(forward):
        return None
    if not _parts_right(evaluation, v, forward, tolerance):
        return None
    found = n.result("fail", forward, n.allowed(forward))
    return replace(found, cause=before.cause, parts_right=True)


def _along(
    evaluation: TapeEvaluation, v: Direction, adjoint: AdjointAlong, tolerance: Tolerance,
    launches: Mapping[int, set[Verdict]],
) -> WholeResult:  # fmt: skip
    """One direction, from the adjoint to the verdict and, where it is wrong, the cause.

    launches: the verdicts of the launches by themselves, by number.
    """
    if not np.isfinite(adjoint.value):
        if not evaluation.given:
            return WholeResult("inconclusive", 1, float("nan"), reason=GIVEN)
        if any("nan" in found for found in launches.values()):
            return WholeResult(
                "nan", 1, float("nan"), reason="an adjoint of a launch is not finite"
            )
        return _not_finite(evaluation, v, tolerance)
    n = _by_differences(evaluation, v, adjoint, tolerance)
    if n.agrees(n.ref):
        return _closer(evaluation, v, n)
    try:
        forward = evaluation.forward_along(v)
    except EvaluationFailed as why:
        return WholeResult("inconclusive", 1, n.ad, n.ref, reason=str(why))
    wrong = {number for number, found in launches.items() if "fail" in found}
    # Without derivatives written by hand, forward mode has rules of its own.
    right = evaluation.replay.ruled or all(v <= _RIGHT for v in launches.values())
    found = compare(n, forward, bool(wrong), right)
    if found.verdict != "fail" or found.reason:
        return found
    unsure = _rounding(evaluation, v, abs(n.ad - forward))
    if abs(n.ad - forward) <= unsure:
        return n.result("pass", forward, unsure)
    position = culprit(evaluation, v, n.allowed(forward))
    if position >= 0 and evaluation.replay.operations[position].launch in wrong:
        return replace(found, reason=WRONG_LAUNCH)  # said there, with what to do about it
    return replace(found, cause=cause_of(evaluation, v, position))


def _closer(evaluation: TapeEvaluation, v: Direction, n: Derivatives) -> WholeResult:
    """A pass, with the error beside forward mode where differences have too few digits to tell.

    But not where a derivative is written by hand: forward mode has those of the launches' own.
    """
    found = n.result("pass", n.ref, n.allowed(n.ref))
    if abs(n.ad - n.ref) <= CLOSE * abs(n.ref) or not evaluation.replay.ruled:
        return found
    try:
        forward = evaluation.forward_along(v)
    except EvaluationFailed:
        return found
    if not n.agrees(forward) or abs(n.ad - forward) >= abs(n.ad - n.ref):
        return found
    return n.result("pass", forward, n.allowed(forward))


def _by_differences(
    evaluation: TapeEvaluation, v: Direction, adjoint: AdjointAlong, tolerance: Tolerance
) -> Derivatives:
    reference = slope(remembered(lambda t: evaluation.displaced(v, t)), 1.0, _matters)
    return Derivatives.of(adjoint, reference, tolerance)


def _briefly(
    evaluation: TapeEvaluation, level: Levelled, tolerance: Tolerance
) -> WholeResult | None:
    """A pass with fewer runs of the tape: by forward mode, borne out by coarse differences.

    That is not asked for where all derivatives are generated: that the rules are right, the checks
    of launches say by differences of their own. None where nothing says so.
    """
    found = _forwards(evaluation, level.raised, tolerance)
    if found is not None and evaluation.replay.generated:
        return found
    if level.faint is not None:
        found = found or _forwards(evaluation, level.raised, tolerance, rounding=True)
        found = found and _forwards(evaluation, level.v, tolerance)
    if found is None or evaluation.replay.generated:
        return found
    adjoint = evaluation.adjoint_along(level.v)
    allowed = _beside(adjoint, found.oracle, tolerance).allowed(found.oracle)
    numbers = (np.array([x]) for x in (found.oracle, adjoint.spread, allowed))
    line = remembered(lambda t: evaluation.displaced(level.v, t))
    return found if bear_out(line, *numbers) else None


def _forwards(
    evaluation: TapeEvaluation, v: Direction, tolerance: Tolerance, rounding: bool = False
) -> WholeResult | None:
    """A pass, if forward mode gives what the backward pass does along a direction.

    rounding: also one if it is off by no more than what rounding may change.
    """
    try:
        forward = evaluation.forward_along(v)
    except EvaluationFailed:
        return None
    n = _beside(evaluation.adjoint_along(v), forward, tolerance)
    allowed = n.allowed(forward)
    if not n.agrees(forward) and rounding:
        allowed = _rounding(evaluation, v, abs(n.ad - forward))
    off = abs(n.ad - forward)
    return n.result("pass", forward, allowed) if np.isfinite(forward) and off <= allowed else None


def _rounding(evaluation: TapeEvaluation, v: Direction, off: float) -> float:
    """How far rounding may put derivatives along a direction apart. off: by how much they are."""
    try:
        return NOISE * evaluation.noise(v, default_rng(0x5AA), off / NOISE)
    except EvaluationFailed:
        return 0.0


def _faint(
    evaluation: TapeEvaluation, level: Levelled, tolerance: Tolerance,
    launches: Mapping[int, set[Verdict]],
) -> WholeResult | None:  # fmt: skip
    """What is wrong with elements that count for next to nothing beside the others, if it is."""
    v = level.faint
    if v is None or _forwards(evaluation, level.raised, tolerance, rounding=True) is not None:
        return None
    found = _along(evaluation, v, evaluation.adjoint_along(v), tolerance, launches)
    return found if found.verdict == "fail" else None


def _not_finite(
    evaluation: TapeEvaluation, v: Direction, tolerance: Tolerance
) -> WholeResult:  # fmt: skip
    """A backward pass that is not finite, though that of each launch by itself is."""
    found = WholeResult("nan", 1, float("nan"), reason="the gradient of the whole is not finite")
    try:
        forward = evaluation.forward_along(v)
    except EvaluationFailed:
        return found
    if not np.isfinite(forward):
        return found
    allowed = float(Tolerance(None, None, max(1e-5, tolerance.rtol or 0.0)).of(
        np.asarray(abs(forward)), abs(forward)
    ))  # fmt: skip
    position = culprit(evaluation, v, allowed)
    return replace(found, oracle=forward, cause=cause_of(evaluation, v, position))


@dataclass(frozen=True)
class Derivatives:
    """A derivative by the backward pass and by differences.

    error: of the differences. spread: see `AdjointAlong`. rtol: the relative error allowed.
    """

    ad: float
    ref: float
    error: float
    spread: float
    rtol: float

    @staticmethod
    def of(adjoint: AdjointAlong, reference: Slope, tolerance: Tolerance) -> Derivatives:
        """Both, along one direction."""
        return Derivatives(
            adjoint.value, float(reference.value[0]), float(reference.error[0]), adjoint.spread,
            max(1e-5, tolerance.rtol or 0.0),
        )  # fmt: skip

    def allowed(self, other: float) -> float:
        """How far the derivative may be from another number."""
        size = np.asarray(max(abs(other), self.spread))
        return float(Tolerance(None, None, self.rtol).of(size, self.spread))

    def agrees(self, other: float) -> bool:
        """Whether the backward pass gives the same as another number, which is known."""
        return bool(np.isfinite(other) and abs(self.ad - other) <= self.allowed(other))

    def result(
        self, verdict: Verdict, other: float, allowed: float, reason: str = ""
    ) -> WholeResult:
        """The result where another number stands beside the backward pass's."""
        error = abs(self.ad - other)
        if verdict != "pass":  # never a failure without an error
            relative = error / max(abs(other), 1e-300)
        else:
            beside = max(abs(other), self.spread) if abs(other) > allowed else 0.0
            relative = float(relative_error(error, beside, allowed, self.rtol))
        return WholeResult(verdict, 1, self.ad, other, relative, reason, tolerance=self.rtol)


def compare(
    n: Derivatives, forward: float, wrong_launch: bool, right_launches: bool = True
) -> WholeResult:
    """The verdict where backward pass and differences disagree, by forward mode.

    wrong_launch: whether the derivative of some launch is wrong by itself. right_launches: whether
    each is known to be right, or nothing in it is written by hand: else forward mode, which has the
    launches' own derivatives, says nothing alone.
    """
    if not np.isfinite(forward):
        reason = "its derivative in forward mode is not finite"
        return WholeResult("inconclusive", 1, n.ad, forward, reason=reason)
    known = bool(np.isfinite(n.ref) and np.isfinite(n.error))
    allowed = n.allowed(forward)
    unsure = allowed + TRUST * n.error
    if n.agrees(forward):
        if known and abs(n.ad - n.ref) > unsure and wrong_launch:
            return n.result("fail", n.ref, allowed, WRONG_LAUNCH)
        tells = known and abs(n.ad - n.ref) <= unsure and TRUST * n.error <= TELLS * abs(n.ref)
        if not right_launches and (wrong_launch or not tells):
            reason = WRONG_LAUNCH if wrong_launch else ALONE
            return WholeResult("inconclusive", 1, n.ad, forward, reason=reason)
        return n.result("pass", forward, allowed)
    if known and abs(forward - n.ref) > unsure:
        if abs(n.ad - n.ref) <= unsure:
            return n.result("inconclusive", forward, allowed, AT_ODDS)
        if wrong_launch:
            return n.result("fail", n.ref, allowed, WRONG_LAUNCH)
    return n.result("fail", forward, allowed)


def _matters(d: Array) -> Array:
    return np.asarray(Tolerance().of(d, largest(d)))


def _worse(a: WholeResult, b: WholeResult, number: int) -> WholeResult:
    worse = b.verdict != "pass" or a.verdict == "skipped" or b.rel_error >= a.rel_error
    return replace(b if worse else a, directional=number)
