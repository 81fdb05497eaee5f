"""Tests of the springs. With `pytest --adtool` the tapes that they make are checked, too."""

import numpy as np
import pytest
from springs.kernels import energy

import engine as wp


def chain(count):
    place = wp.array(np.linspace(0.0, 2.0, count + 1) ** 2, dtype=float, requires_grad=True)
    stiffness = wp.array(np.ones(count), dtype=float, requires_grad=True)
    return place, stiffness, wp.zeros(1, dtype=float, requires_grad=True)


@pytest.mark.parametrize("count", [1, 4])
def test_energy_is_not_negative(count):
    place, stiffness, out = chain(count)
    with wp.Tape() as tape:
        wp.launch(energy, dim=count, inputs=[place, stiffness, 0.5], outputs=[out])
    tape.backward(out)
    assert out.numpy()[0] >= 0.0


def test_gradient(gradcheck):
    place, stiffness, out = chain(3)
    gradcheck(energy, dim=3, inputs=[place, stiffness, 0.5], outputs=[out])
