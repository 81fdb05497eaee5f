"""What makes a gradient not finite: a singular point, or numbers too large for their type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from tests.unit.tape.overwriting import F, cube


@wp.kernel
def grown(x: F, y: F):
    i = wp.tid()
    y[i] = wp.exp(x[i])


@wp.kernel
def quotient(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * (x[i] / 0.5) * x[i]


@wp.kernel
def root(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])


@wp.kernel
def logarithm(x: F, y: F):
    i = wp.tid()
    y[i] = wp.log(x[i])


@wp.kernel
def inverse(x: F, y: F):
    i = wp.tid()
    y[i] = 1.0 / x[i]


@wp.kernel
def unit(x: F, y: F):
    i = wp.tid()
    v = wp.vec2(x[i], 0.0)
    y[i] = v[0] / wp.length(v)


@pytest.mark.parametrize(
    ("kernel", "value", "overflow"),
    [
        (cube, 1e21, True),
        (cube, -1e30, True),
        (grown, 100.0, True),
        (quotient, 1e20, True),
        (root, 0.0, False),
        (logarithm, 0.0, False),
        (inverse, 0.0, False),
        (unit, 0.0, False),
    ],
    ids=lambda x: getattr(x, "key", str(x)),
)
def test_overflow_is_told_from_a_singular_point(kernel: Any, value: float, overflow: bool) -> None:
    x = wp.array([0.5, value], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, 2, [x], [y])
    tape.backward(grads={y: np.ones(2, np.float32)})
    (pair,) = check_tape(tape).launches[0].pairs
    assert pair.verdict == "nan"
    assert pair.nonfinite.element == (1,)
    assert pair.nonfinite.overflow == overflow
