"""Tests whether an adjoint is linear in its cotangents.

An adjoint that is written by hand may drop negative cotangents, or clip large ones: it is right for
those that a comparison happens to ask with, and wrong for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import Comparison, Judgement
from engine.autograd.comparison.tolerance import median
from engine.autograd.launch.directions import Comparisons
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations
from engine.autograd.results import NOT_LINEAR
from engine.lang.numbers import epsilon

Array = NDArray[Any]
Gradients = dict[str, Array]  # by input

# What rounding may add, as a part of the gradients that are added, and in units of their precision.
PART, UNITS = 1e-6, 1e4
# By what factors cotangents are larger and smaller: powers of two, which rounding leaves alone.
# Each element is asked with both signs.
# How often some elements of a cotangent are zero, at random.
MASKS = 2
SCALES = (-(2.0**10), 2.0**10, -(2.0**24), 2.0**24, 2.0**-12)
# Runs with cotangents that are off by some last digits. What is no more than so many times what
# that changes is rounding: of a sum of large parts that cancel, nothing else tells the size.
SHAKEN, DIGITS, NOISE = 16, 8.0, 256.0
_OPEN = ("pass", "kink", "rounding", "inconclusive")


def with_linearity(
    launch: Evaluations, pairs: Comparisons, rng: np.random.Generator
) -> Comparisons:
    """The pairs; those fail whose adjoint is not linear in its cotangents.

    By a sum of cotangents it must be the sum of those by each, which have other signs and sizes
    than the whole, or are zero where the other is not; by those of all outputs together the sum of
    those by each output; and by cotangents of another scale, it must be of that scale. Each element
    is judged by itself.
    """
    out = dict(pairs)
    asked = {
        b: [a for a in launch.inputs if (a, b) in out and out[a, b].verdict in _OPEN]
        for b in dict.fromkeys(b for _, b in pairs)
    }
    whole = {b: rng.standard_normal(launch.exact.initial[b].shape) for b in asked}
    here: dict[str, Gradients] = {}
    with np.errstate(all="ignore"):
        for b, inputs in asked.items():
            if not inputs:
                continue
            try:
                here[b], others = _here_and_others(launch, whole[b], b, rng)
                found = _suspects(launch, {b: whole[b]}, here[b], others, inputs, rng)
            except EvaluationFailed:
                continue
            for a, wrong in found.items():
                out[a, b] = _failed(out[a, b], here[b][a], [x[a] for x in others], wrong)
        if len(here) > 1:
            _ask_together(launch, out, {b: whole[b] for b in here}, here, rng)
    return out


def _ask_together(
    launch: Evaluations, out: dict[tuple[str, str], Comparison], whole: dict[str, Array],
    here: dict[str, Gradients], rng: np.random.Generator,
) -> None:  # fmt: skip
    """Fails pairs whose adjoint by all outputs is not the sum of those by each."""
    inputs = [a for a in launch.inputs
              if all(out[a, b].verdict in _OPEN for b in whole if (a, b) in out)]  # fmt: skip
    try:
        together = _gradients(launch, whole)
        apart = {a: np.sum([g[a] for g in here.values()], axis=0) for a in launch.inputs}
        found = _suspects(launch, whole, together, [apart], inputs, rng)
    except EvaluationFailed:
        return
    for a, wrong in found.items():
        for b in whole:
            if (a, b) in out:
                out[a, b] = _failed(out[a, b], together[a], [apart[a]], wrong)


def _suspects(
    launch: Evaluations, w: dict[str, Array], here: Gradients, others: Sequence[Gradients],
    inputs: Sequence[str], rng: np.random.Generator,
) -> dict[str, NDArray[np.bool_]]:  # fmt: skip
    """By input, which elements differ from what they are to be by more than rounding."""
    noise: Gradients = {}
    out = {}
    for a in inputs:
        suspect = _furthest(here[a], [x[a] for x in others], launch.epsilon)
        if not suspect.any():
            continue
        noise = noise or _noise(launch, w, here, rng)
        suspect = _beyond(suspect, [np.abs(x[a] - here[a]) for x in others], noise[a])
        if suspect.any():
            out[a] = suspect
    return out


def _here_and_others(
    launch: Evaluations, whole: Array, b: str, rng: np.random.Generator
) -> tuple[Gradients, list[Gradients]]:
    """The gradients by cotangents, and what they would be by others if the adjoint is linear."""
    here, others = _gradients(launch, {b: whole}), []
    mixed = whole * rng.uniform(-1.0, 2.0, whole.shape)
    every_other = np.arange(whole.size).reshape(whole.shape) % 2 == 0
    masks = [every_other, *(rng.random(whole.shape) < 0.5 for _ in range(MASKS))]
    for part in (mixed, *(np.where(mask, whole, 0.0) for mask in masks)):
        first, second = (_gradients(launch, {b: w}) for w in (part, whole - part))
        others.append({a: first[a] + second[a] for a in launch.inputs})
    for scale in SCALES:
        found = _gradients(launch, {b: scale * whole})
        others.append({a: g / scale for a, g in found.items()})
    return here, others


def _gradients(launch: Evaluations, w: dict[str, Array]) -> Gradients:
    grads = launch.exact.vjp(w)
    return {a: grads[a].astype(np.float64) for a in launch.inputs}


def _furthest(here: Array, others: Sequence[Array], unit: float) -> NDArray[np.bool_]:
    """Which elements are further apart than is likely beside their own size."""
    apart = [np.abs(x - here) > max(PART, UNITS * unit) * (np.abs(x) + np.abs(here))
             for x in others if np.isfinite(x).any()]  # fmt: skip
    finite = np.isfinite(here) & np.all([np.isfinite(x) for x in others], axis=0)
    return np.asarray(np.any(apart, axis=0) & finite)


def _noise(
    launch: Evaluations, w: dict[str, Array], here: Gradients, rng: np.random.Generator
) -> Gradients:
    """How far cotangents that are off by their last digits take the gradients."""
    unit = DIGITS * max(launch.epsilon, epsilon(np.float64))
    out = {a: np.zeros(g.shape) for a, g in here.items()}
    for _ in range(SHAKEN):
        off = {b: x * (1.0 + unit * rng.uniform(-1.0, 1.0, x.shape)) for b, x in w.items()}
        for a, g in _gradients(launch, off).items():
            out[a] = np.fmax(out[a], np.abs(g - here[a]))
    return out


def _beyond(suspect: NDArray[np.bool_], apart: Sequence[Array], noise: Array) -> NDArray[np.bool_]:
    """Which of the suspects are further off than rounding may put them.

    Where it is not seen to change an element, it may have changed it as it does others, as a rule.
    """
    seen = noise[suspect & (noise > 0)]
    usual = median(seen) if seen.size else 0.0
    most = NOISE * np.where(noise > 0, noise, usual)
    return np.asarray(suspect & (np.max(apart, axis=0) > most))


def _failed(
    c: Comparison, here: Array, others: Sequence[Array], wrong: NDArray[np.bool_]
) -> Comparison:
    """With the element that is furthest off, as a part of itself."""
    parts = [np.abs(x - here) / (np.abs(x) + np.abs(here)) for x in others]
    found = np.where(wrong, np.nan_to_num(parts), -1.0)
    n, k = (int(i) for i in np.unravel_index(int(np.argmax(found.reshape(len(others), -1))),
                                             (len(others), here.size)))  # fmt: skip
    one, other = float(here.flat[k]), float(others[n].flat[k])
    c = c.reopened().measured(one, other, PART * (abs(one) + abs(other)))
    return c.judged(Judgement("fail", NOT_LINEAR))
