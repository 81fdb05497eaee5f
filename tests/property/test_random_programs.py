"""Random programs: every pass keeps the meaning, and both modes give the derivative.

Reverse mode, forward mode and float64 differences have to agree. The interpreter
runs everything, so a failure here is a wrong rule or pass, not wrong code
generation. `ENGINE_PROGRAMS` sets how many programs run (default 100).
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from engine import ad
from engine.ad import tangent_rules
from engine.ir import interp
from engine.ir.ops import OPS, Elementwise
from engine.ir.verify import verify
from tests.property.programs import ARRAYS, DIM, SIZE, program

COUNT = int(os.environ.get("ENGINE_PROGRAMS", "100"))
WRT = frozenset(ARRAYS)


def start(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1.5, 1.5, SIZE) for _ in ARRAYS]


def run(fn, arrays, trips=3, journal=None, extra=()):
    memory = [a.copy() for a in arrays]
    interp.run(fn, [*memory, trips, *extra], DIM, journal=journal or interp.Journal())
    return memory


def adjoint(fn, arrays, weights):
    """J' w by the recorded forward program and the adjoint program."""
    prepared = ad.prepare(fn)
    verify(prepared)
    journaled = ad.read_params(fn) & ad.written_params(fn)
    out = ad.reverse(prepared, WRT, journaled)
    verify(out.fn)
    journal = interp.Journal()
    after = run(ad.record(prepared, out.sites), arrays, journal=journal)
    grads = [w.copy() for w in weights]
    held = [a.copy() for a in after]
    interp.run(out.fn, [*held, 3, *grads], DIM, journal=journal)
    for kept, before in zip(held, after, strict=True):
        np.testing.assert_array_equal(kept, before)  # the backward pass changes gradients alone
    return after, grads


def pushed(fn, arrays, direction):
    """J v by the tangent program, and what it leaves in the arrays."""
    out = ad.tangent(fn, WRT)
    verify(out)
    moved = [v.copy() for v in direction]
    return run(out, arrays, extra=moved), moved


def assert_transposed(moved, weights, direction, grads, rtol=1e-9):
    """<J v, w> = <v, J' w>, up to rounding of the largest terms."""
    ahead = [float(t @ w) for t, w in zip(moved, weights, strict=True)]
    back = [float(v @ g) for v, g in zip(direction, grads, strict=True)]
    scale = sum(map(abs, [*ahead, *back])) + sum(float(np.abs(g).sum()) for g in grads)
    assert abs(sum(ahead) - sum(back)) <= rtol * scale + 1e-12


def differences(fn, arrays, weights):
    """The oracle, and where it is trustworthy: a step across a branch shows as disagreement."""

    def loss(parts):
        return sum(float(w @ x) for w, x in zip(weights, run(fn, parts), strict=True))

    grads, trusted = [], True
    for i, a in enumerate(arrays):
        g = np.zeros_like(a)
        for j in range(a.size):
            slopes = []
            for h in (2e-5, 1e-5):
                sides = []
                for s in (h, -h):
                    parts = [x.copy() for x in arrays]
                    parts[i][j] += s
                    sides.append(loss(parts))
                slopes.append((sides[0] - sides[1]) / (2 * h))
            g[j] = (4 * slopes[1] - slopes[0]) / 3
            trusted &= abs(slopes[1] - slopes[0]) < 1e-5 * (1 + abs(g[j]))
        grads.append(g)
    return grads, trusted


@pytest.mark.parametrize("seed", range(COUNT))
def test_adjoint_and_tangent_are_the_derivative(seed: int) -> None:
    fn = program(seed)
    verify(fn)
    arrays = start(seed)
    rng = np.random.default_rng(seed + 10_000)
    weights = [rng.standard_normal(SIZE) for _ in ARRAYS]
    direction = [rng.standard_normal(SIZE) for _ in ARRAYS]
    expected_after = run(fn, arrays)
    after, grads = adjoint(fn, arrays, weights)
    also_after, moved = pushed(fn, arrays, direction)
    for x, y, z in zip(after, also_after, expected_after, strict=True):
        np.testing.assert_array_equal(x, z)
        np.testing.assert_array_equal(y, z)
    assert_transposed(moved, weights, direction, grads)
    expected, trusted = differences(fn, arrays, weights)
    if not trusted:
        pytest.skip("a branch lies within the difference step")
    for got, want in zip(grads, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


# ---- these tests see what is wrong


def caught() -> bool:
    """Whether one of the first programs fails."""
    for seed in range(40):
        try:
            test_adjoint_and_tangent_are_the_derivative(seed)
        except AssertionError:
            return True
        except pytest.skip.Exception:
            pass
    return False


def scaled(rule, factor):
    return lambda *a: [None if x is None else x * factor for x in rule(*a)]


def test_a_wrong_partial_is_seen(monkeypatch) -> None:
    """Both modes use it, so that only differences can tell."""
    op = OPS["sin"]
    wrong = Elementwise(scaled(op.derivative.partials, 1.0001))
    monkeypatch.setitem(OPS, "sin", replace(op, derivative=wrong))
    assert caught()


def test_a_wrong_forward_rule_is_seen(monkeypatch) -> None:
    op = OPS["extract"]
    right = op.derivative.jvp
    wrong = replace(op.derivative, jvp=lambda *a: None if right(*a) is None else right(*a) * 1.001)
    monkeypatch.setitem(OPS, "extract", replace(op, derivative=wrong))
    assert caught()


def test_a_forgotten_tangent_is_seen(monkeypatch) -> None:
    """The tangent of an element stays where an atomic minimum replaces the element."""
    monkeypatch.setattr(tangent_rules, "extremum", lambda *a: None)
    assert caught()
