"""Compares the program's own backward passes with differences.

The rest of the check asks the gradient again. What it gave while the program ran is another one
where it keeps something from call to call, and that one the program has used.
"""

from __future__ import annotations

import numpy as np

from engine.autograd.comparison.judgement import Comparison, Judgement
from engine.autograd.reference.noise import Line
from engine.foreign.directions import direction
from engine.foreign.evaluated import FLOOR, Evaluated
from engine.foreign.judging import allowed_along, settled
from engine.foreign.operation import Array, Cotangents, Operation

# Units of rounding that a gradient may be off by: of float32 and finer, and of what is coarser.
FINE, COARSE = 1e3, 16.0
WRONG = "gave one gradient in the program, and another when adtool ran it again"


def wrong_passes(e: Evaluated, rng: np.random.Generator) -> dict[int, Comparison]:
    """The inputs whose gradient was wrong in a backward pass of the program."""
    out: dict[int, Comparison] = {}
    for passed in e.op.passes():
        for i, g in enumerate(passed.gradients):
            if g is not None and not np.all(np.isfinite(g)):
                continue
            v = direction(e, i, rng, FLOOR)
            line = backward_of(e.line({i: v}), e, passed.cotangents)
            slope = e.slope(line, 1.0)
            parts = np.zeros(1) if g is None else (g * v).reshape(-1)
            ad, ref = float(np.sum(parts)), float(slope.value[0])
            allowed = allowed_along(e, ref, float(np.linalg.norm(parts)))
            allowed += rounding_of(e, i) * float(np.sum(np.abs(parts)))
            if settled(e, line, 1.0, ad, slope, allowed).verdict == "fail":
                c = out.get(i, Comparison()).measured(ad, ref, allowed)
                out[i] = c.judged(Judgement("fail", WRONG))
    return out


def rounding_of(e: Evaluated, i: int) -> float:
    """What rounding in the operation's own types may make of a gradient, relative to it."""
    eps = max(v.epsilon for v in (e.op.inputs[i], *e.op.outputs))
    return eps * (FINE if eps < 1e-5 else COARSE)


def backward_of(line: Line, e: Evaluated, cotangents: Cotangents) -> Line:
    """One number of the outputs: their product with cotangents."""
    weights = weights_of(e.op, cotangents)
    return lambda t: np.array([float(weights @ line(t))])


def weights_of(op: Operation, cotangents: Cotangents) -> Array:
    """The cotangents of all outputs in one vector, with zeros where there is none."""
    return np.concatenate([
        np.zeros(v.value.size) if w is None else np.asarray(w, np.float64).reshape(-1)
        for v, w in zip(op.outputs, cotangents, strict=True)
    ])  # fmt: skip
