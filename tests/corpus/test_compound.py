"""Gradients of kernels with compound arguments, in both precisions, against differences."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp
from tests.corpus import arrays, choices, structs  # noqa: F401 (they register cases)
from tests.corpus import compound as c

Found = dict[tuple[str, bool], dict[str, list[Any]]]


@pytest.fixture(scope="module")
def made() -> dict[tuple[str, bool], tuple[Any, Any, list[Any]]]:
    """Every case in both precisions; all are made before any is compiled."""
    types = {False: wp.float32, True: wp.float64}
    return {(case.name, d): case.make(T) for case in c.CASES for d, T in types.items()}


def gradient(made: Any, name: str, double: bool) -> dict[str, list[Any]]:
    kernel, dim, args = made[name, double]
    args = copy.deepcopy(args)
    return c.gradients(kernel, dim, args, c.weights_of(args))


@pytest.mark.parametrize("name", [case.name for case in c.CASES])
def test_float64_gradient_matches_differences(name: str, made: Any) -> None:
    kernel, dim, args = made[name, True]
    found = gradient(made, name, True)
    expected = c.differences(kernel, dim, args, c.weights_of(args))
    for which, parts in expected.items():
        assert parts
        for k, part in enumerate(parts):
            got = found[which][k]
            scale = float(np.abs(part).max(initial=0.0)) + 1e-3
            np.testing.assert_allclose(got, part, rtol=1e-6, atol=1e-7 * scale, err_msg=which)


@pytest.mark.parametrize("name", [case.name for case in c.CASES])
def test_float32_gradient_matches_float64(name: str, made: Any) -> None:
    single, double = gradient(made, name, False), gradient(made, name, True)
    for which, parts in double.items():
        for k, part in enumerate(parts):
            scale = float(np.abs(part).max(initial=0.0)) + 1e-3
            np.testing.assert_allclose(single[which][k], part, rtol=2e-4, atol=2e-5 * scale)


@pytest.mark.parametrize("name", [case.name for case in c.CASES])
def test_forward_mode_is_the_transpose_of_reverse_mode(name: str, made: Any) -> None:
    kernel, dim, args = made[name, True]
    args = copy.deepcopy(args)
    found, weights = c.differentiable(args), c.weights_of(args)
    directions = {key: c.weights_of([a])["0"][...] for key, a in found.items()}
    before = {key: a.numpy().copy() for key, a in found.items()}
    with wp.Tape() as tape:
        wp.launch(kernel, dim=dim, inputs=args)
    again = copy.deepcopy(args)
    for key, a in c.differentiable(again).items():
        a.assign(before[key])
    of_tape = jvp(tape, tangents={a: directions[key] for key, a in found.items()})
    others = c.differentiable(again)
    of_launch = jvp(kernel, dim, again, tangents={a: directions[k] for k, a in others.items()})
    tape.backward(grads={a: weights[key] for key, a in found.items()})
    back = sum(_dot(found[key].grad.numpy(), directions[key]) for key in found)
    for moved, own in ((of_tape, found), (of_launch, others)):
        ahead = sum(
            _dot(moved[a].numpy() if a in moved else directions[key], weights[key])
            for key, a in own.items()
        )
        assert ahead == pytest.approx(back, rel=1e-11, abs=1e-12)
    for key, a in others.items():
        np.testing.assert_array_equal(a.numpy(), before[key])


def _dot(x: np.ndarray, y: np.ndarray) -> float:
    """The inner product of the floats of two arrays."""
    pairs = zip(c.fields_of(x), c.fields_of(y), strict=True)
    return sum(float((a * b).sum()) for (_, a), (_, b) in pairs if a.dtype.kind == "f")


def test_a_spoiled_gradient_is_caught() -> None:
    """The harness itself: a gradient that is wrong in one field must not pass."""

    cls, kernel = structs.spoiled(wp.float64)
    args = [c.records(cls, "x", 3), c.floats("y", 3, T=wp.float64)]
    weights = c.weights_of(args)
    expected = c.differences(kernel, 3, args, weights)
    got = c.gradients(kernel, 3, args, weights)
    np.testing.assert_allclose(got["0"][0], expected["0"][0], rtol=1e-6)
    assert not np.allclose(got["0"][1], expected["0"][1], rtol=1e-6)
