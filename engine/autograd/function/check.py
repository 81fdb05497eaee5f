"""Checks a Python function: the backward pass of its tape against reruns.

What differences in the arrays' own precision cannot tell is settled launch by launch, where
they can be had in float64: a pair passes only if no launch fails.
"""

from __future__ import annotations

from dataclasses import replace

from engine.autograd.comparison.judgement import Comparison
from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.function.call import FunctionCall
from engine.autograd.function.compared import ComparedFunction
from engine.autograd.function.directions import compare_directions
from engine.autograd.function.displaced import DisplacedFunction
from engine.autograd.function.entries import compare_entries
from engine.autograd.function.linearity import find_not_linear, with_linearity
from engine.autograd.function.recorded_call import ChangedInput, recorded_call, unexpected
from engine.autograd.results import LaunchResult, PairResult, TapeResult
from engine.autograd.tape.check import check_records
from engine.autograd.tape.options import Options
from engine.autograd.variables.roles import Mask, Pair
from engine.classes import dataclass
from engine.diagnostics import UNKNOWN
from engine.diagnostics.site import call_span
from engine.draws import default_rng


@dataclass(frozen=True)
class CheckedFunction:
    """The results of a function, first, and of its launches; and which inputs a run changed."""

    result: TapeResult
    changed: tuple[ChangedInput, ...]


def check_function_call(call: FunctionCall, mask: Mask | None, options: Options) -> CheckedFunction:
    """Checks a function. Its arrays are as they were afterwards."""
    with recorded_call(call) as recorded:
        pairs = call.roles(recorded.results).pairs(mask)
        outputs = list({id(p.output): p.output for p in pairs}.values())
        function = ComparedFunction(
            recorded, pairs, DisplacedFunction(recorded, outputs), options.tolerance,
            options.max_inputs, options.max_outputs, default_rng(options.seed),
        )  # fmt: skip
        # The adjoint is asked first: runs of the function then change what its tape has seen.
        not_linear = find_not_linear(function)
        compare = compare_entries if function.small else compare_directions
        compared = with_linearity(compare(function), not_linear)
        recorded.restore()
        inner = TapeResult(0, ())
        if options.tolerance == Tolerance():
            inner = check_records(recorded.tape.records, Options(seed=options.seed))
    own = LaunchResult(
        -1, call.key, (), tuple(_result(p, compared[p.key]) for p in pairs),
        call_span() or UNKNOWN, changed_inputs=unexpected(recorded.changed),
    )  # fmt: skip
    result = TapeResult(0, (own, *inner.launches), inner.unchecked)
    return CheckedFunction(result, recorded.changed)


def _result(p: Pair, c: Comparison) -> PairResult:
    """A pair's result, with the names of the worst entry's scalars."""
    if not p.input.size or not p.output.size:
        c = replace(c, reason="the array is empty")
    out = c.result(p.input.label, p.output.label)
    e = out.worst
    if e is None or e.row < 0:
        return out
    named = replace(e, row_name=p.output.place(e.row), col_name=p.input.place(e.col))
    return replace(out, worst=named)
