"""Whether an adjoint is linear in its cotangents, as a derivative is.

An adjoint that is written by hand may drop negative cotangents, or clip large ones: it is right for
those that a comparison happens to ask with, and wrong for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import Comparison, Judgement
from engine.autograd.launch.directions import Comparisons
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations
from engine.autograd.results import NOT_LINEAR
from engine.lang.numbers import epsilon

Array = NDArray[Any]
Gradients = dict[str, Array]  # by input

# What rounding may add, as a part of the gradients that are added, and in units of their precision.
PART, UNITS = 1e-6, 1e4
# By what factors cotangents are larger and smaller: powers of two, which rounding leaves alone. So
# each element is asked with both signs.
SCALES = (-(2.0**10), 2.0**-12)
# Runs with cotangents that are off by some last digits. What is no more than so many times what
# that changes is rounding: of a sum of large parts that cancel, nothing else tells the size.
SHAKEN, DIGITS, NOISE = 16, 8.0, 256.0
_OPEN = ("pass", "kink", "rounding", "inconclusive")


def with_linearity(
    launch: Evaluations, pairs: Comparisons, rng: np.random.Generator
) -> Comparisons:
    """The pairs; those fail whose adjoint is not linear in its cotangents.

    By a sum of cotangents it must be the sum of those by each, which have other signs and sizes
    than the whole; and by cotangents of another scale, it must be of that scale. Each element is
    judged by itself.
    """
    out = dict(pairs)
    for b in dict.fromkeys(b for (_, b), c in pairs.items() if c.verdict in _OPEN):
        asked = [a for a in launch.inputs if (a, b) in out and out[a, b].verdict in _OPEN]
        whole = rng.standard_normal(launch.exact.initial[b].shape)
        noise: Gradients = {}
        try:
            here, others = _here_and_others(launch, b, whole, rng)
            for a in asked:
                suspect = _furthest(here[a], [x[a] for x in others], launch.epsilon)
                if not suspect.any():
                    continue
                noise = noise or _noise(launch, b, whole, here, rng)
                suspect = _beyond(suspect, [np.abs(x[a] - here[a]) for x in others], noise[a])
                if suspect.any():
                    out[a, b] = _failed(out[a, b], here[a], [x[a] for x in others], suspect)
        except EvaluationFailed:
            continue
    return out


def _here_and_others(
    launch: Evaluations, b: str, whole: Array, rng: np.random.Generator
) -> tuple[Gradients, list[Gradients]]:
    """The gradients by cotangents, and what they would be by others if the adjoint is linear."""
    part = whole * rng.uniform(-1.0, 2.0, whole.shape)
    here, first, second = (_gradients(launch, b, w) for w in (whole, part, whole - part))
    others = [{a: first[a] + second[a] for a in launch.inputs}]
    for scale in SCALES:
        found = _gradients(launch, b, scale * whole)
        others.append({a: g / scale for a, g in found.items()})
    return here, others


def _gradients(launch: Evaluations, b: str, w: Array) -> Gradients:
    with np.errstate(all="ignore"):
        grads = launch.exact.vjp({b: w})
    return {a: grads[a].astype(np.float64) for a in launch.inputs}


def _furthest(here: Array, others: Sequence[Array], unit: float) -> NDArray[np.bool_]:
    """Which elements are further apart than is likely beside their own size."""
    with np.errstate(all="ignore"):
        apart = [np.abs(x - here) > max(PART, UNITS * unit) * (np.abs(x) + np.abs(here))
                 for x in others if np.isfinite(x).any()]  # fmt: skip
        finite = np.isfinite(here) & np.all([np.isfinite(x) for x in others], axis=0)
    return np.asarray(np.any(apart, axis=0) & finite)


def _noise(
    launch: Evaluations, b: str, whole: Array, here: Gradients, rng: np.random.Generator
) -> Gradients:
    """How far cotangents that are off by their last digits take the gradients."""
    unit = DIGITS * max(launch.epsilon, epsilon(np.float64))
    out = {a: np.zeros(g.shape) for a, g in here.items()}
    for _ in range(SHAKEN):
        found = _gradients(launch, b, whole * (1.0 + unit * rng.uniform(-1.0, 1.0, whole.shape)))
        for a, g in found.items():
            with np.errstate(all="ignore"):
                out[a] = np.fmax(out[a], np.abs(g - here[a]))
    return out


def _beyond(suspect: NDArray[np.bool_], apart: Sequence[Array], noise: Array) -> NDArray[np.bool_]:
    """Which of the suspects are further off than rounding may put them.

    Where it is not seen to change an element, it may have changed it as it does others, as a rule.
    """
    seen = noise[suspect & (noise > 0)]
    usual = float(np.median(seen)) if seen.size else 0.0
    most = NOISE * np.where(noise > 0, noise, usual)
    return np.asarray(suspect & (np.max(apart, axis=0) > most))


def _failed(
    c: Comparison, here: Array, others: Sequence[Array], wrong: NDArray[np.bool_]
) -> Comparison:
    """With the element that is furthest off, as a part of itself."""
    with np.errstate(all="ignore"):
        parts = [np.abs(x - here) / (np.abs(x) + np.abs(here)) for x in others]
        found = np.where(wrong, np.nan_to_num(parts), -1.0)
    n, k = (int(i) for i in np.unravel_index(int(np.argmax(found.reshape(len(others), -1))),
                                             (len(others), here.size)))  # fmt: skip
    one, other = float(here.flat[k]), float(others[n].flat[k])
    c = c.reopened().measured(one, other, PART * (abs(one) + abs(other)))
    return c.judged(Judgement("fail", NOT_LINEAR))
