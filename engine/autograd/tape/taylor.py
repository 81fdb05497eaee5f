"""The remainder test of a launch, and of a tape as a whole: see `reference.remainders`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import numpy as np

from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.launch.displaced import DisplacedLaunch
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.launch.paths import faithful
from engine.autograd.launch.recorded_arguments import NotRepeatable, RecordedLaunch, recorded_launch
from engine.autograd.reference.differences import FLOAT64, richardson
from engine.autograd.reference.noise import Array, Line
from engine.autograd.reference.remainders import SLACK, remainders
from engine.autograd.results import RemainderRow, Remainders, Verdict
from engine.autograd.tape.evaluation import TapeEvaluation
from engine.autograd.tape.operations import NotReplayable
from engine.autograd.tape.recorded_tape import RecordedTape
from engine.autograd.tape.replay import replay
from engine.draws import default_rng
from engine.tape.records import LaunchRecord

# The step over which the gradient is differenced for the second derivative; extrapolated.
BEND = 2.0**-10
NEAR = 0.3  # of the rate that a wrong derivative has

WRONG = "it shrinks as with a wrong derivative, or at a kink"
NEITHER = "the rate fits neither a right nor a wrong derivative"
EXACT = "nothing is left but rounding"


def of_launch(index: int, record: LaunchRecord, order: int, directions: int, seed: int
              ) -> tuple[Remainders, ...]:  # fmt: skip
    """Of a launch at the values that its arguments had, along directions through all inputs."""
    name = record.kernel.key
    try:
        launch = recorded_launch(record)
        if not np.prod(launch.dim, dtype=np.int64):
            return ()
        return tuple(
            _of_launch(index, name, launch, order, k, default_rng([0x7A70, seed, k]))
            for k in range(directions)
        )
    except (NotRepeatable, EvaluationFailed) as why:
        return (Remainders(index, name, order, 0, "skipped", reason=str(why)),)
    except MemoryError:
        return (Remainders(index, name, order, 0, "skipped", reason="it needs too much memory"),)


def _of_launch(
    index: int, name: str, launch: RecordedLaunch, order: int, number: int,
    rng: np.random.Generator,
) -> Remainders:  # fmt: skip
    with faithful(launch) as evaluated:
        inputs = [a for a in evaluated.inputs if evaluated.size(a)]
        outputs = [b for b in evaluated.outputs if evaluated.size(b)]
        if not inputs or not outputs:
            why = f"no {'output' if inputs else 'input'} array of it requires a gradient"
            return Remainders(index, name, order, number, "skipped", reason=why)
        tolerance = Tolerance(epsilon=evaluated.epsilon)
        displaced = DisplacedLaunch(evaluated, inputs, outputs, tolerance)
        exact = displaced.exact
        if displaced.nonfinite:
            why = f"argument {displaced.nonfinite!r} holds NaN or Inf at launch"
            return Remainders(index, name, order, number, "skipped", reason=why)
        w = {b: rng.standard_normal(exact.initial[b].shape) for b in outputs}
        v = {a: displaced.direction(a, rng) for a in inputs}
        line = displaced.weighted(v, w)
        start = {a: exact.initial[a].copy() for a in inputs}

        def slope(t: float) -> Array:
            """The derivative along the direction by the adjoint at a displaced point."""
            try:
                for a, x in start.items():
                    exact.initial[a][...] = x + t * v[a]
                exact.refresh()
                grads = exact.vjp(w)
                return np.asarray([sum(float((grads[a] * v[a]).sum()) for a in inputs)])
            finally:
                for a, x in start.items():
                    exact.initial[a][...] = x
                exact.refresh()

        return _judged(index, name, order, number, lambda t: np.asarray([line(t).sum()]), slope)


def of_whole(tape: RecordedTape, order: int, directions: int, seed: int) -> tuple[Remainders, ...]:
    """Of a tape as a whole, along directions through all its leaves."""
    try:
        with closing(replay(tape)) as replayed, replayed.watched():
            if not replayed.leaves:
                raise NotReplayable("no array that it reads requires a gradient")
            rng = default_rng([0x7A71, seed])
            evaluation = TapeEvaluation(replayed, rng)
            if not evaluation.finite:
                raise NotReplayable("the tape computes values that are not finite")
            return tuple(_of_whole(evaluation, order, k, rng) for k in range(directions))
    except (NotReplayable, EvaluationFailed) as why:
        return (Remainders(-1, "", order, 0, "skipped", reason=str(why)),)
    except MemoryError:
        return (Remainders(-1, "", order, 0, "skipped", reason="it needs too much memory"),)


def _of_whole(
    evaluation: TapeEvaluation, order: int, number: int, rng: np.random.Generator
) -> Remainders:
    v = evaluation.direction(rng)

    def slope(t: float) -> Array:
        with evaluation.moved(v, t):
            return np.asarray([evaluation.adjoint_along(v).value])

    return _judged(-1, "", order, number, lambda t: evaluation.displaced(v, t), slope)


def _judged(
    index: int, name: str, order: int, number: int, value: Line, slope: Callable[[float], Array]
) -> Remainders:
    derivative = float(slope(0.0)[0])
    if not np.isfinite(derivative):
        return Remainders(
            index, name, order, number, "nan", derivative, reason="the adjoint is not finite"
        )
    curvature = None
    if order > 1:
        with np.errstate(all="ignore"):
            curvature = float(richardson(slope, BEND, FLOAT64)[0][0])
    taken = remainders(value, derivative, curvature)
    rows = tuple(
        RemainderRow(float(h), *_three(r), *_three(q), k >= taken.clear)
        for k, (h, r, q) in enumerate(
            zip(taken.steps, taken.remainders.T, taken.rates.T, strict=True)
        )
    )
    found = Remainders(
        index, name, order, number, "pass", derivative, taken.rate, taken.floor, rows
    )
    return found.judged(*_verdict(taken.rate, bool(rows), order))


def _verdict(rate: float, clear: bool, order: int) -> tuple[Verdict, str]:
    if not clear:
        return "pass", EXACT
    if rate >= order + 1 - SLACK:
        return "pass", ""
    wrong = any(abs(rate - k) <= NEAR for k in range(1, order + 1))
    return ("fail", WRONG) if wrong else ("inconclusive", NEITHER)


def _three(x: Array) -> tuple[float, float, float]:
    return float(x[0]), float(x[1]), float(x[2])
