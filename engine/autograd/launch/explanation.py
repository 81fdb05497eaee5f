"""Explains verdicts: names of entries, origins of NaN, and the derivative that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from engine.autograd.launch.blame import Shown, blame
from engine.autograd.launch.corner import corner
from engine.autograd.launch.directions import Comparisons
from engine.autograd.launch.evaluation import Evaluations
from engine.autograd.launch.nonfinite import locate
from engine.autograd.results import Blame, PairResult
from engine.autograd.variables.element_names import element_name
from engine.compile.pipeline import Variants
from engine.diagnostics import Span
from engine.ir.nodes import Call, Function, walk


def explained(
    pairs: Comparisons, launch: Evaluations, rng: np.random.Generator
) -> tuple[PairResult, ...]:
    """Results with the names of the worst entries' scalars, and where NaN comes from."""
    out = []
    for (a, b), comparison in pairs.items():
        pair = _named(comparison.result(a, b), launch)
        if pair.verdict == "nan":
            w = rng.standard_normal(launch.own.initial[b].shape)
            pair = replace(pair, nonfinite=locate(launch.own, b, w, a))
        out.append(pair)
    return tuple(out)


def cornered(pairs: Sequence[PairResult], launch: Evaluations) -> tuple[PairResult, ...]:
    """Results with the operation that has the kink, for the first pair that has one."""
    first = next((k for k, p in enumerate(pairs) if p.verdict == "kink"), None)
    return tuple(
        replace(p, corner=corner(launch.exact, p)) if k == first else p for k, p in enumerate(pairs)
    )


def _named(pair: PairResult, launch: Evaluations) -> PairResult:
    e = pair.worst
    if e is None or e.row < 0 or e.col < 0:
        return pair
    initial = launch.exact.initial
    row = element_name(pair.output, e.row, initial[pair.output].shape)
    col = element_name(pair.input, e.col, initial[pair.input].shape)
    return replace(pair, worst=replace(e, row_name=row, col_name=col))


def blamed(
    pairs: Sequence[PairResult], launch: Evaluations, rng: np.random.Generator, shown: Shown
) -> tuple[Blame, ...]:
    """The derivatives written by hand that are wrong, where some pair is. shown: see `blame`."""
    worst = next((p for p in pairs if p.verdict == "fail"), None)
    if worst is None:
        return ()
    return blame(launch.exact, launch.outputs, rng, _thread_of(worst, launch), shown)


def _thread_of(pair: PairResult, launch: Evaluations) -> int:
    """The thread that the worst entry is likely to be of: outputs lie as threads do, as a rule."""
    row = -1 if pair.worst is None else pair.worst.row
    return max(row, 0) * launch.exact.threads // max(launch.size(pair.output), 1)


@lru_cache(256)
def handwritten(variants: Variants) -> tuple[tuple[str, Span], ...]:
    """User-written derivatives that a kernel runs: function name and place."""
    out: dict[str, Span] = {}

    def visit(f: Function) -> None:
        for s in walk(f.body):
            if isinstance(s, Call):
                if s.func.grad is not None:
                    out.setdefault(s.func.name, s.func.grad.span)
                visit(s.func)

    visit(variants.ir)
    return tuple(out.items())
