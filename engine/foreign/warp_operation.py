"""A Warp launch that the engine cannot compile, as an operation with Warp's adjoint.

Differences are of Warp's own launches then, in their own precision: they see what is plainly wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.autograd.results import LaunchResult, PairResult
from engine.autograd.tape.options import Options
from engine.diagnostics import Span
from engine.foreign.check import Seen, check_operation
from engine.foreign.operation import Array, Cotangents, Gradients, Operation, OperationFailed, Value
from engine.foreign.warp_adjoint import WarpRun
from engine.foreign.warp_reasons import reasons
from engine.foreign.warp_tapes import WarpLaunch

PLAIN = 0.05  # of a derivative: what is off by less, differences in float32 do not accuse
_FLOATS = ("float16", "float32", "float64")


class WarpOperation(Operation):
    """A launch: its float arrays with gradients, as they were, to those that it changes."""

    framework = "Warp"
    what = "kernel"

    def __init__(self, run: WarpRun, launch: WarpLaunch, span: Span) -> None:
        self._run = run
        self.name = launch.kernel.key
        self.gradient = f"the adjoint of {self.name}"
        self.span = span
        self.site = launch.span
        before, after = run.moving(), run.forward()
        self.inputs = [_value(n, x) for n, x in before.items()]
        self.outputs = [
            _value(n, after[n]) for n, x in before.items() if not np.array_equal(after[n], x)
        ]

    def primal(self, inputs: Sequence[Array], lifted: bool) -> Sequence[Array]:
        found = self._run.forward(self._named(inputs, lifted))
        return [found[v.name].astype(np.float64) for v in self.outputs]

    def vjp(self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool) -> Gradients:
        given = zip(self.outputs, cotangents, strict=True)
        seeds = {v.name: w for v, w in given if w is not None}
        found = self._run.gradients(seeds, inputs=self._named(inputs, lifted))
        return [found[v.name].astype(np.float64) for v in self.inputs]

    def _named(self, inputs: Sequence[Array], lifted: bool) -> Mapping[str, Array]:
        if lifted and any(v.dtype != "float64" for v in self.inputs):
            raise OperationFailed("Warp has no float64 form of it")
        return {v.name: x for v, x in zip(self.inputs, inputs, strict=True)}


def _value(name: str, x: Array) -> Value:
    return Value(name, x.astype(np.float64), str(x.dtype))


def check_alone(
    run: WarpRun, launch: WarpLaunch, result: LaunchResult, why: str, options: Options, seen: Seen
) -> LaunchResult:
    """The check of a launch by Warp alone. result: of it, with nothing in it. why: it is so.

    What differences in its own precision do not tell is left unchecked, with both reasons.
    """
    skipped = replace(result, skipped=why)
    if not run.repeats():
        again = "a second run gives other results: it reads something else that has changed"
        return replace(skipped, skipped=f"{why}; {again}")
    op = WarpOperation(run, launch, result.span)
    if not op.inputs or not op.outputs or any(v.dtype not in _FLOATS for v in op.inputs):
        return skipped
    try:
        found = check_operation(op, options, result.index, seen)
    except Exception as error:  # whatever Warp raises at displaced values
        return replace(skipped, skipped=f"{why}; Warp itself fails beside its values: {error}")
    pairs = tuple(_sure(p, why) for p in found.pairs)
    if all(p.verdict == "skipped" for p in pairs):
        return skipped
    wrong = any(p.verdict in ("fail", "nan") for p in pairs)
    why_wrong = reasons(launch.kernel) if wrong else ()
    peer = None if result.peer is None else replace(result.peer, wrong=wrong, reasons=why_wrong)
    return replace(result, pairs=pairs, peer=peer)


def _sure(p: PairResult, why: str) -> PairResult:
    """The pair, unless nothing is certain of it."""
    e = p.worst
    if p.verdict in ("fail", "nan"):
        if p.verdict == "nan" or (
            e is not None and abs(e.ad - e.oracle) > PLAIN * max(abs(e.ad), abs(e.oracle))
        ):
            return p
    elif p.verdict in ("pass", "kink", "skipped"):
        return p
    reason = f"{why}, and differences of its launches in Warp cannot decide"
    return PairResult(p.input, p.output, "skipped", reason=reason)
