"""Tests whether a function's adjoint is linear in its cotangents.

Cotangents of a power of two times the size, and of the other sign, give gradients of exactly that
size: rounding is the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import Comparison, Judgement
from engine.autograd.function.adjoint import gradients
from engine.autograd.function.compared import ComparedFunction
from engine.autograd.launch.linearity import SCALES
from engine.autograd.results import NOT_LINEAR

Array = NDArray[np.float64]
Key = tuple[int, int]

# What sums in another order may add, as a part of an element; what is smaller may underflow.
PART = 1e-3
UNDERFLOW = 1e6  # smallest positive values


def find_not_linear(function: ComparedFunction) -> dict[Key, tuple[float, float]]:
    """An element's gradient and what it is to be by cotangents of another scale, of pairs whose
    adjoint is not linear.
    """
    out: dict[Key, tuple[float, float]] = {}
    rng = function.rng.spawn(1)[0]
    for b in function.outputs:
        pairs = [p for p in function.pairs if p.output is b]
        w = rng.standard_normal(b.size)
        here = gradients(function.recorded, pairs, w)
        for scale in SCALES:
            found = gradients(function.recorded, pairs, scale * w)
            for p in pairs:
                x, y = here[p.key], found[p.key] / scale
                with np.errstate(all="ignore"):
                    apart = np.abs(x - y) - PART * (np.abs(x) + np.abs(y))
                apart = np.where(np.isfinite(apart), apart, 0.0)
                if apart.max(initial=0.0) > UNDERFLOW * function.tiny:
                    k = int(np.argmax(apart))
                    out[p.key] = float(x[k]), float(y[k])
    return out


def with_linearity(
    pairs: Mapping[Key, Comparison], found: Mapping[Key, tuple[float, float]]
) -> dict[Key, Comparison]:
    """The pairs; those fail of which `find_not_linear` has found something."""
    out = dict(pairs)
    for key, (one, other) in found.items():
        if out[key].verdict not in ("nan", "fail"):
            c = out[key].reopened().measured(one, other, PART * (abs(one) + abs(other)))
            out[key] = c.judged(Judgement("fail", NOT_LINEAR))
    return out
