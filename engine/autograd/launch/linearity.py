"""Whether an adjoint is linear in its cotangents, as a derivative is.

An adjoint that is written by hand may drop negative cotangents, or clip large ones: it is right for
those that a comparison happens to ask with, and wrong for others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import NOT_LINEAR, Comparison, Judgement
from engine.autograd.launch.directions import Comparisons
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations

Array = NDArray[Any]

# What rounding may add, as a part of the gradients that are added, and in units of their precision.
PART, UNITS = 1e-6, 1e4
_OPEN = ("pass", "kink", "rounding", "inconclusive")


def with_linearity(
    launch: Evaluations, pairs: Comparisons, rng: np.random.Generator
) -> Comparisons:
    """The pairs; those fail whose adjoint by a sum of cotangents is not the sum of those by each.

    The parts have other signs and sizes than the whole. Each element is judged by itself.
    """
    out = dict(pairs)
    for b in dict.fromkeys(b for (_, b), c in pairs.items() if c.verdict in _OPEN):
        shape = launch.exact.initial[b].shape
        whole = rng.standard_normal(shape)
        part = whole * rng.uniform(-1.0, 2.0, shape)
        try:
            by_whole, *parts = (_gradients(launch, b, w) for w in (whole, part, whole - part))
        except EvaluationFailed:
            continue
        for a in launch.inputs:
            c = out.get((a, b))
            if c is not None and c.verdict in _OPEN:
                out[a, b] = _judged(c, by_whole[a], parts[0][a], parts[1][a], launch.epsilon)
    return out


def _gradients(launch: Evaluations, b: str, w: Array) -> dict[str, Array]:
    grads = launch.exact.vjp({b: w})
    return {a: grads[a].astype(np.float64) for a in launch.inputs}


def _judged(c: Comparison, whole: Array, first: Array, second: Array, unit: float) -> Comparison:
    with np.errstate(all="ignore"):
        total = first + second
        off = np.abs(whole - total)
        allowed = max(PART, UNITS * unit) * (np.abs(whole) + np.abs(first) + np.abs(second))
        excess = np.where(np.isfinite(off) & (off > allowed), off / allowed, 0.0)
    if not excess.size or not excess.max() > 1.0:
        return c
    k = int(np.argmax(excess))
    c = c.reopened().measured(float(whole.flat[k]), float(total.flat[k]), float(allowed.flat[k]))
    return c.judged(Judgement("fail", NOT_LINEAR))
