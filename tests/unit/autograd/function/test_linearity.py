"""A function whose adjoint is not linear in its cotangents fails, whatever tolerance was given."""

from __future__ import annotations

from typing import Any

import pytest

import engine as wp
from engine.autograd import gradcheck
from tests.unit.autograd.launch import test_linearity as launches

WRONG = [
    launches.without_negative, launches.without_positive, launches.magnitude,
    launches.clipped_at_1, launches.clipped_at_100, launches.without_small,
]  # fmt: skip
GIVEN: list[dict[str, Any]] = [{}, {"atol": 1e-2, "rtol": 1e-2}, {"eps": 1e-3, "atol": 1e-2}]


def passes(change: Any, n: int, given: dict[str, Any]) -> bool:
    kernel = launches.squares(change)

    def function(x: Any) -> Any:
        out = wp.zeros(x.shape, dtype=float, requires_grad=True)
        wp.launch(kernel, x.shape, inputs=[x], outputs=[out])
        return out

    x = wp.array(launches.values(n), dtype=float, requires_grad=True)
    return bool(gradcheck(function, inputs=[x], raise_exception=False, show_summary=False, **given))


@pytest.mark.parametrize("given", GIVEN, ids=["default", "tolerances", "step"])
@pytest.mark.parametrize("n", [1, 20, 2000])
@pytest.mark.parametrize("change", WRONG, ids=lambda f: f.key)
def test_what_drops_or_clips_cotangents_fails(change: Any, n: int, given: dict[str, Any]) -> None:
    assert not passes(change, n, given)


@pytest.mark.parametrize("given", GIVEN, ids=["default", "tolerances", "step"])
@pytest.mark.parametrize("n", [1, 20, 2000])
def test_the_right_one_passes(n: int, given: dict[str, Any]) -> None:
    assert passes(launches.right, n, given)


@wp.kernel
def lengths(v: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    u = v[i] / wp.length(v[i])
    out[i] = wp.dot(u, u)


@pytest.mark.parametrize("seed", range(10))
def test_a_derivative_that_is_zero_by_cancellation_passes(seed: int) -> None:
    """Cotangents of another scale leave the same rounding of it, by that scale."""

    def function(v: Any) -> Any:
        out = wp.zeros(v.shape, dtype=float, requires_grad=True)
        wp.launch(lengths, v.shape, inputs=[v], outputs=[out])
        return out

    v = wp.array(launches.values(20, 3, seed=seed), dtype=wp.vec3, requires_grad=True)
    assert gradcheck(
        function, inputs=[v], raise_exception=False, show_summary=False, atol=1e-2, rtol=1e-2
    )
