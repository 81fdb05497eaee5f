"""A quick check of calls that resemble checked ones.

What their backward gave when the program ran is compared with one step along one direction. Errors
that are only there at some values (a clipped part, a largest element) are found so, without a
check of every call. What it says is no verdict: it only chooses.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import field

import numpy as np

from engine.autograd.comparison.tolerance import Tolerance, largest
from engine.autograd.reference.differences import FLOAT64
from engine.autograd.results import LaunchResult
from engine.classes import dataclass
from engine.draws import default_rng
from engine.foreign.directions import direction
from engine.foreign.evaluated import FLOOR, SAME, Evaluated, outputs
from engine.foreign.operation import Array, Operation
from engine.foreign.passes import rounding_of, weights_of

STEP = 1e-5  # of an input's size
APART = 1e-4  # of the parts of a derivative: what is further off is suspicious
NOTHING = 1e-9  # of the outputs: what is below tells nothing
MISTAKEN = 2  # checks for nothing of one function, after which it is no longer looked at
SECONDS = 5.0  # for all calls together


@dataclass
class Glance:
    """Looks at calls. It learns by which functions it is mistaken, and takes a bounded time."""

    tolerance: Tolerance
    _mistaken: Counter[tuple[str, str]] = field(default_factory=Counter)
    _spent: float = 0.0

    def suspects(self, op: Operation) -> bool:
        """Whether something seems to be wrong with a call."""
        if op.changes:
            return True
        if self._spent > SECONDS or self._mistaken[_key(op)] >= MISTAKEN:
            return False
        begin = time.perf_counter()
        try:
            return _suspicious(op, self.tolerance)
        except Exception:  # what cannot be run is told of where it is checked
            return False
        finally:
            self._spent += time.perf_counter() - begin

    def learn(self, op: Operation, found: LaunchResult) -> None:
        """Takes what a check of a call said that was suspected."""
        if all(p.verdict in ("pass", "inconclusive", "kink") for p in found.pairs):
            self._mistaken[_key(op)] += 1


def _key(op: Operation) -> tuple[str, str]:
    return op.name, str(op.span)


def _suspicious(op: Operation, tolerance: Tolerance) -> bool:
    passes = op.passes()
    x: tuple[Array, ...] = tuple(v.value for v in op.inputs)
    if not passes or not all(np.all(np.isfinite(a)) for a in x):
        return False
    here = outputs(op, x, True)
    recorded = np.concatenate([v.value.reshape(-1) for v in op.outputs])
    eps = max(v.epsilon for v in op.outputs)
    if not largest(here - recorded) <= max(SAME, 64.0 * eps) * largest(recorded):
        return False  # it is no function of what it is given, or not the same in float64
    e = Evaluated(op, x, True, here, FLOAT64, tolerance)
    weights = [weights_of(op, p.cotangents) for p in passes]
    rng = default_rng(0x91A)
    for i in range(len(x)):
        v = direction(e, i, rng, FLOOR)
        line = e.line({i: v})
        slope = (line(STEP) - line(-STEP)) / (2.0 * STEP)
        for w, p in zip(weights, passes, strict=True):
            g = p.gradients[i]
            parts = np.zeros(1) if g is None else (g * v).reshape(-1)
            if not np.all(np.isfinite(parts)):
                return True
            ref, ad = float(w @ slope), float(np.sum(parts))
            allowed = APART * max(abs(ref), float(np.linalg.norm(parts)))
            allowed += rounding_of(e, i) * float(np.sum(np.abs(parts)))
            allowed += NOTHING * float(np.sum(np.abs(w * here)))
            if abs(ad - ref) > allowed:
                return True
    return False
