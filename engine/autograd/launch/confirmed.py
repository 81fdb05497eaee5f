"""Compares the adjoint with forward mode for digits that differences cannot resolve.

Both are computed in float64 from the kernel's own code, so that they agree to rounding wherever
that code is differentiated by rules alone; that the rules are right is for differences to say. Of
derivatives that are written by hand nothing is said here: one entry of many may be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.autograd.comparison.judgement import Comparison
from engine.autograd.launch.directions import Pair
from engine.autograd.launch.displaced import norm
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations
from engine.ir.nodes import Call, Function, walk

# Differences that agree this well have said all that is asked for.
CLOSE = 1e-7
_VERDICTS = ("pass", "rounding")


def ruled(fn: Function) -> bool:
    """Whether all of a function's derivatives follow from rules, and none is written by hand."""
    calls = (s.func for s in walk(fn.body) if isinstance(s, Call))
    return fn.native is None and all(
        f.grad is None and f.replay is None and ruled(f) for f in calls
    )  # fmt: skip


def confirmed(
    launch: Evaluations, pairs: Mapping[Pair, Comparison], rng: np.random.Generator
) -> dict[Pair, Comparison]:
    """The pairs that pass, with how far they are from forward mode where that may matter."""
    out = dict(pairs)
    asked = [
        pair for pair, c in pairs.items() if c.verdict in _VERDICTS and not _close(c)
    ]  # fmt: skip
    if asked and ruled(launch.exact.variants.ir):
        for pair in asked:
            out[pair] = replace(out[pair], forward_error=_apart(launch, *pair, rng))
    return out


def _close(c: Comparison) -> bool:
    return c.max_rel <= CLOSE or c.max_abs <= CLOSE * c.scale


def _apart(launch: Evaluations, a: str, b: str, rng: np.random.Generator) -> float | None:
    """|w'Jv by the adjoint - by forward mode|, relative to the larger of it and its parts."""
    exact = launch.exact
    v = rng.standard_normal(exact.initial[a].shape)
    w = rng.standard_normal(exact.initial[b].shape)
    try:
        moved = exact.jvp({a: v})[b]
        parts = exact.vjp({b: w})[a] * v
    except EvaluationFailed:
        return None
    forward, backward = float((w * moved).sum()), float(parts.sum())
    size = max(abs(forward), norm(parts))
    apart = abs(forward - backward)
    return apart / size if np.isfinite(apart) and np.isfinite(size) and size > 0 else None
