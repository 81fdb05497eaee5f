"""Noise: zeros, periods, smoothness, gradients, and fields without divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.builtins.composite import COMPOSITES
from engine.frontend import lower_composite
from engine.ir.interp import evaluate
from engine.lang.types import FLOAT64, INT32, UINT32, VectorType

RNG = np.random.default_rng(20240712)


def point(n: int) -> Any:
    return FLOAT64 if n == 1 else VectorType(FLOAT64, n)


def call(name: str, types: list[Any], *args: Any) -> Any:
    """A composite in double precision, interpreted."""
    (found,) = (c for c in COMPOSITES[name] if c.accepts(types))
    (out,) = evaluate(lower_composite(found, types), args)
    return out


def noise(p: Any, state: int = 77) -> Any:
    n = np.size(p)
    return call("noise", [UINT32, point(n)], state, p)


def pnoise(p: Any, *periods: int) -> Any:
    n = np.size(p)
    return call("pnoise", [UINT32, point(n), *[INT32] * n], 77, p, *periods)


def curl(p: Any, octaves: int = 1, lacunarity: float = 2.0, gain: float = 0.5) -> Any:
    types = [UINT32, point(len(p)), UINT32, FLOAT64, FLOAT64]
    return call("curlnoise", types, 5, p, octaves, lacunarity, gain)


def at(n: int) -> Any:
    return RNG.uniform(-4, 4, n) if n > 1 else RNG.uniform(-4, 4)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_noise_is_zero_on_the_lattice_and_random_elsewhere(n: int) -> None:
    whole = RNG.integers(-9, 9, n).astype(float)
    assert noise(whole if n > 1 else whole[0]) == 0
    values = np.array([noise(at(n)) for _ in range(200)])
    assert np.abs(values).max() < 1
    assert abs(values.mean()) < 0.1 and 0.1 < values.std() < 0.5
    p = at(n)
    assert len({float(noise(p, k)) for k in range(20)}) == 20
    assert noise(p) == noise(p)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_noise_has_two_continuous_derivatives(n: int) -> None:
    """Across a face of the lattice, differences of both sides agree."""
    p = np.atleast_1d(at(n))
    p[0] = 2.0
    e = np.eye(n)[0]

    def along(t: float) -> Any:
        q = p + t * e
        return noise(q if n > 1 else q[0])

    h = 1e-4
    right = (along(h) - along(0)) / h, (along(2 * h) - 2 * along(h) + along(0)) / h**2
    left = (along(0) - along(-h)) / h, (along(-2 * h) - 2 * along(-h) + along(0)) / h**2
    np.testing.assert_allclose(right, left, atol=0.05)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_periods(n: int) -> None:
    periods = (3, 4, 5, 2)[:n]
    for _ in range(5):
        p = np.atleast_1d(at(n))
        base = pnoise(p if n > 1 else p[0], *periods)
        for k in range(n):
            q = p + np.eye(n)[k] * periods[k] * RNG.integers(-3, 4)
            assert pnoise(q if n > 1 else q[0], *periods) == pytest.approx(base, abs=1e-12)
        half = p + np.eye(n)[0]
        assert pnoise(half if n > 1 else half[0], *periods) != pytest.approx(base, abs=1e-6)
    # No period is that of the plain noise.
    q = at(n)
    assert pnoise(q, *(0,) * n) == pnoise(q, *(-3,) * n) == noise(q)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_curl_noise_has_no_divergence(n: int) -> None:
    for _ in range(4):
        p = at(n)
        h = 1e-5
        space = min(n, 3)
        parts = []
        for k in range(space):
            step = h * np.eye(n)[k]
            octaves = (3, 1.9, 0.6)
            parts.append((curl(p + step, *octaves) - curl(p - step, *octaves))[k] / (2 * h))
        assert abs(sum(parts)) < 1e-7
        assert max(map(abs, parts)) > 1e-3
    assert not curl(at(n), 0).any()


def test_curl_in_the_plane_is_the_turned_gradient() -> None:
    p, h = at(2), 1e-6
    dx, dy = ((noise(p + h * e, 5) - noise(p - h * e, 5)) / (2 * h) for e in np.eye(2))
    np.testing.assert_allclose(curl(p), [-dy, dx], atol=1e-8)


def test_the_fields_are_those_of_warp() -> None:
    """What Warp 1.19 gives at one point, in float32."""
    state = call("rand_init", [INT32], 42)
    state = state[0] if isinstance(state, (tuple, list)) else state
    p = np.array([1.25, 2.375, 0.5, 3.875])
    r, more = p[:2] * [1, -1], (2, 1.75, 0.5)

    def of(name: str, q: Any, *rest: Any) -> Any:
        kinds = [UINT32, FLOAT64, FLOAT64] if name == "curlnoise" else [INT32] * len(rest)
        return call(name, [UINT32, point(np.size(q)), *kinds], state, q, *rest)

    found = [
        of("noise", -p[1]), of("noise", r), of("noise", p[:3]), of("noise", p),
        of("pnoise", p[1], 2), of("pnoise", p, 1, 2, 3, 4),
        of("curlnoise", r, *more)[0], of("curlnoise", p[:3], *more)[1],
        of("curlnoise", p, *more)[2],
    ]  # fmt: skip
    there = [
        -0.024907231, 0.046393514, 0.34588259, 0.037468068, 0.1965542, 0.17580798, -0.66388249,
        0.47897142, 0.5113765,
    ]  # fmt: skip
    np.testing.assert_allclose(found, there, rtol=2e-6)


@wp.kernel
def everything(x: wp.array(dtype=wp.vec4), c: wp.array(dtype=float), y: wp.array2d(dtype=float)):
    i = wp.tid()
    s = wp.rand_init(3)
    p = x[i]
    q = wp.vec3(p[0], p[1], p[2])
    r = wp.vec2(p[0], p[1])
    y[i, 0] = wp.noise(s, p[0]) + wp.pnoise(s, p[0], 3)
    y[i, 1] = wp.noise(s, r) + wp.pnoise(s, r, 3, 4)
    y[i, 2] = wp.noise(s, q)
    y[i, 3] = wp.noise(s, p)
    y[i, 4] = wp.pnoise(s, q, 2, 3, 4) + wp.curlnoise(s, r, 2, c[0], c[1])[0]
    y[i, 5] = wp.curlnoise(s, q, wp.uint32(2), c[0], c[1])[2]
    y[i, 6] = wp.curlnoise(s, p)[1]


def test_gradients_and_both_backends() -> None:
    x = wp.array(RNG.uniform(-3, 3, (5, 4)), dtype=wp.vec4, requires_grad=True)
    c = wp.array([1.8, 0.6], dtype=float, requires_grad=True)
    y = wp.zeros((5, 7), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(everything, dim=5, inputs=[x, c], outputs=[y])
    wp.autograd.gradcheck_tape(tape, show_summary=False)

    from engine.ir import interp

    same = np.zeros((5, 7), np.float32)
    interp.run(everything.plan.variants.ir, [x.numpy(), c.numpy(), same], 5)
    np.testing.assert_array_equal(same, y.numpy())  # no function of the C library is used
