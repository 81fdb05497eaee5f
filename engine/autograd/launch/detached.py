"""Arrays without a gradient that a launch writes and then reads.

A kernel that reads back what it stored differentiates through that array only where the array has a
gradient: else the derivative ends there. That is no wrong adjoint, but a path that is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.autograd.comparison.judgement import Comparison
from engine.autograd.launch.compare import CompareOptions, compare
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.launch.paths import faithful
from engine.autograd.launch.recorded_arguments import RecordedLaunch
from engine.draws import default_rng
from engine.ir.nodes import Var
from engine.lang.types import ArrayType, is_float

Pairs = Mapping[tuple[str, str], Comparison]


def detached(launch: RecordedLaunch, found: Pairs, options: CompareOptions) -> tuple[str, ...]:
    """Parameters whose missing gradients are why pairs fail, if all of these pass with them."""
    failed = [pair for pair, c in found.items() if c.verdict == "fail"]
    names = _read_back(launch) if failed else ()
    if not names:
        return ()
    attached = replace(launch, arguments=tuple(
        replace(a, requires_grad=a.requires_grad or a.name in names) for a in launch.arguments
    ))  # fmt: skip
    how = replace(options, jointly=False)
    try:
        with faithful(attached) as evaluated:
            again = compare(evaluated, how, default_rng(0), failed).pairs
    except EvaluationFailed:
        return ()
    passed = all(again[pair].verdict in ("pass", "kink", "rounding") for pair in failed)
    return names if passed else ()


def _read_back(launch: RecordedLaunch) -> tuple[str, ...]:
    """Arrays of floats without a gradient that the kernel writes and reads."""
    through = launch.variants.read & launch.variants.written
    return tuple(
        a.name for p, a in zip(launch.variants.ir.params, launch.arguments, strict=True)
        if a.name in through and not a.requires_grad and not a.alias and _floats(p)
    )  # fmt: skip


def _floats(p: Var) -> bool:
    return isinstance(p.type, ArrayType) and is_float(p.type)
