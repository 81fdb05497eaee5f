"""Builtins written in the language: how a call finds one, what it means, its places."""

from __future__ import annotations

import math

import numpy as np
import pytest

import engine as wp
from engine.builtins.composite import COMPOSITES, composite


@wp.kernel
def norms(x: wp.array(dtype=wp.vec3), y: wp.array2d(dtype=float)):
    i = wp.tid()
    v = x[i]
    y[i, 0] = wp.norm_l1(v)
    y[i, 1] = wp.norm_l2(v)
    y[i, 2] = wp.norm_huber(v)
    y[i, 3] = wp.norm_huber(v, 0.5)
    y[i, 4] = wp.norm_pseudo_huber(v, 2.0)
    y[i, 5] = wp.smooth_normalize(v)[1]


@wp.kernel
def norms_64(x: wp.array(dtype=wp.vec2d), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.norm_huber(x[i], 2) + wp.norm_pseudo_huber(x[i])


@wp.kernel
def refused(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    y[0] = wp.norm_huber(x[0], wp.float64(1.0))
    y[0] = wp.norm_l1(y[0])


DATA = [[1, 2, 3], [0.1, 0.2, -0.3], [0, 0, 0.1]]


def test_values_and_gradients() -> None:
    x = wp.array(DATA, dtype=wp.vec3, requires_grad=True)
    y = wp.zeros((3, 6), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(norms, dim=3, inputs=[x], outputs=[y])
    v = np.array(DATA)
    n = np.linalg.norm(v, axis=1)
    wanted = [
        np.abs(v).sum(1), n, np.where(n <= 1, n * n / 2, n - 0.5),
        np.where(n <= 0.5, n * n / 2, 0.5 * (n - 0.25)), 2 * np.sqrt(1 + n * n / 4),
        v[:, 1] / np.sqrt(1 + n * n),
    ]  # fmt: skip
    np.testing.assert_allclose(y.numpy(), np.stack(wanted, 1), rtol=1e-6)
    wp.autograd.gradcheck_tape(tape, show_summary=False)


def test_literals_and_defaults_take_the_type_of_the_others() -> None:
    y = wp.zeros(1, dtype=wp.float64)
    wp.launch(norms_64, dim=1, inputs=[wp.array([[3, 4]], dtype=wp.vec2d)], outputs=[y])
    assert y.numpy()[0] == pytest.approx(2 * (5 - 1) + math.sqrt(26), rel=1e-15)


def test_on_the_host() -> None:
    assert wp.norm_huber(wp.vec3(0.6, 0.0, 0.8)) == pytest.approx(0.5)
    assert wp.norm_l1(wp.vec2d(1.0, -2.0)) == 3.0
    assert wp.smooth_normalize(wp.vec2(3.0, 4.0), 5.0) == wp.vec2(3.0, 4.0) / (5.0 * math.sqrt(2))
    with pytest.raises(wp.EngineError, match="norm_l1"):
        wp.norm_l1(1.0)


def test_refusals_are_at_the_call() -> None:
    with pytest.raises(wp.KernelError) as caught:
        wp.launch(refused, dim=1, inputs=[wp.zeros(1, dtype=wp.vec3), wp.zeros(1, dtype=float)])
    first, second = caught.value.diagnostics
    assert first.code == second.code == "E104" and "norm_huber(v, delta" in first.help
    assert first.span is not None and first.span.file == __file__


@wp.kernel
def singular(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    y[0] = wp.norm_pseudo_huber(x[0], 0.0)


def test_non_finite_values_have_the_place_of_the_call() -> None:
    y = wp.zeros(1, dtype=float, requires_grad=True)
    x = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(singular, dim=1, inputs=[x], outputs=[y])
    (pair,) = wp.autograd.check_tape(tape).launches[0].pairs
    assert pair.nonfinite is not None
    assert pair.nonfinite.span.file == __file__
    assert pair.nonfinite.span.line == singular.span.line + 1


def test_every_composite_has_a_doc_that_names_it() -> None:
    assert COMPOSITES
    for name, overloads in COMPOSITES.items():
        for c in overloads:
            assert c.doc.startswith(name) or not name.isidentifier()
    with pytest.raises(ValueError, match="no doc"):
        composite("", lambda types: True)(lambda: 0)
