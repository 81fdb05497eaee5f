"""Compares handwritten tangents, such as a `jvp` beside a `backward`, with differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.autograd.comparison.judgement import Comparison, Judgement
from engine.autograd.reference.differences import Slope
from engine.foreign.directions import Pair, direction, weighted
from engine.foreign.evaluated import FLOOR, Evaluated
from engine.foreign.judging import allowed_along, settled
from engine.foreign.operation import OperationFailed

WRONG_TANGENT = "its tangents are wrong"


def compare_tangents(
    e: Evaluated, pairs: Mapping[Pair, Comparison], rng: np.random.Generator
) -> dict[Pair, Comparison]:
    """The pairs; those that pass fail where the tangents are not those of the function."""
    out = dict(pairs)
    if e.op.tangent is None:
        return out
    for i in sorted({i for i, _ in pairs}):
        v = direction(e, i, rng, FLOOR)
        try:
            tangents = e.op.jvp(e.at, {i: v}, e.lifted)
        except OperationFailed:
            continue
        line = e.line({i: v})
        slope = e.slope(line, 1.0)
        for j, t in enumerate(tangents):
            c, part = out.get((i, j)), e.spans[j]
            if c is None or c.verdict != "pass":
                continue
            w = rng.standard_normal(part.stop - part.start)
            parts = np.zeros(w.size) if t is None else w * t.reshape(-1)
            ad, ref = float(np.sum(parts)), float(w @ slope.value[part])
            error = float(np.linalg.norm(w * slope.error[part]))
            allowed = allowed_along(e, ref, float(np.linalg.norm(parts)))
            found = Slope(np.array([ref]), np.array([error]))
            if not np.isfinite(ad):
                verdict = "fail" if np.isfinite(ref) else ""
            else:
                at = weighted(line, part, w)
                verdict = settled(e, at, 1.0, ad, found, allowed).verdict
            if verdict == "fail":
                c = replace(c, worst=None, excess=-1.0).measured(ad, ref, allowed)
                out[i, j] = c.judged(Judgement("fail", WRONG_TANGENT))
    return out
