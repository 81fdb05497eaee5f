"""Random numbers: the sequence, the distributions, and what a call does to its state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import engine as wp
from engine.ir import interp

COUNT = 20000


def pcg(n: int) -> int:
    """The published hash, on Python integers."""
    state = (n * 747796405 + 2891336453) % 2**32
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737 % 2**32
    return (word >> 22) ^ word


@wp.kernel
def integers(seed: int, lam: float, out: wp.array2d(dtype=wp.uint32), cdf: wp.array(dtype=float)):
    i = wp.tid()
    s = wp.rand_init(seed, i)
    out[i, 0] = wp.rand_init(seed)
    out[i, 1] = s
    out[i, 2] = wp.randu(s)
    out[i, 3] = s
    out[i, 4] = wp.uint32(wp.randi(s))
    out[i, 5] = wp.randu(s, wp.uint32(10), wp.uint32(20))
    out[i, 6] = wp.uint32(wp.randi(s, -5, 100) + 5)
    out[i, 7] = wp.uint32(wp.sample_cdf(s, cdf))
    out[i, 8] = s
    out[i, 9] = wp.poisson(s, lam)


@wp.kernel
def floats(seed: int, out: wp.array2d(dtype=float)):
    i = wp.tid()
    s = wp.rand_init(seed, i)
    out[i, 0] = wp.randf(s)
    out[i, 1] = wp.randf(s, -3.0, 8.0)
    out[i, 2] = wp.randn(s)
    t = wp.sample_triangle(s)
    q = wp.sample_unit_square(s)
    c = wp.sample_unit_cube(s)
    for k in range(2):
        out[i, 3 + k] = t[k]
        out[i, 5 + k] = q[k]
    for k in range(3):
        out[i, 7 + k] = c[k]


@wp.kernel
def points(seed: int, out: wp.array2d(dtype=wp.vec3)):
    i = wp.tid()
    s = wp.rand_init(seed, i)
    ring = wp.sample_unit_ring(s)
    disk = wp.sample_unit_disk(s)
    out[i, 0] = wp.vec3(ring[0], ring[1], 0.0)
    out[i, 1] = wp.vec3(disk[0], disk[1], 0.0)
    out[i, 2] = wp.sample_unit_sphere_surface(s)
    out[i, 3] = wp.sample_unit_sphere(s)
    out[i, 4] = wp.sample_unit_hemisphere_surface(s)
    out[i, 5] = wp.sample_unit_hemisphere(s)


@wp.func
def draw(s: wp.uint32):
    return wp.randu(s)


@wp.kernel
def flow(out: wp.array(dtype=wp.uint32), state: wp.array(dtype=wp.uint32), given: wp.uint32):
    s = wp.uint32(0)
    for k in range(3):
        out[k] = wp.randu(s)
    if s > wp.uint32(0):
        out[3] = wp.randu(s)
    while out[4] == wp.uint32(0):
        out[4] = wp.randu(s)
    out[5] = draw(s)  # a function gets the value only
    out[6] = draw(s)
    out[7] = wp.randu(s) + wp.randu(s) * wp.uint32(3)
    out[8] = wp.randu(state[0])  # and so does an element
    out[9] = state[0]
    out[10] = wp.randu(given)
    out[11] = wp.randu(given)


@wp.kernel
def scaled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = wp.rand_init(7, i)
    total = float(0.0)
    for _ in range(3):
        total += wp.randf(s, x[i], x[i] * x[i]) * wp.randn(s)
    y[i] = total * float(wp.poisson(s, 3.0))


def drawn_integers(lam: float, count: int = COUNT) -> Any:
    out = wp.zeros((count, 10), dtype=wp.uint32)
    cdf = wp.array([0.1, 0.3, 0.3, 1.0], dtype=float)
    wp.launch(integers, dim=count, inputs=[42, lam], outputs=[out, cdf])
    return out.numpy()


def test_the_sequence_is_the_published_one() -> None:
    got = drawn_integers(2.0, 500).astype(np.int64)
    for i, row in enumerate(got.tolist()):
        s = pcg((42 + pcg(i)) % 2**32)
        a = [pcg(s)]
        for _ in range(4):
            a.append(pcg(a[-1]))
        assert row[:6] == [pcg(42), s, a[0], a[0], a[1], a[2] % 10 + 10]
        assert row[6] == a[3] % 105
        assert row[8] == a[4]
        assert row[7] == np.searchsorted(np.float32([0.1, 0.3, 0.3, 1.0]), (a[4] >> 8) * 2.0**-24)
    # As Warp draws, for seeds of one and two numbers.
    assert wp.rand_init(42) == 1223963391
    assert wp.rand_init(42, 7) == 3115480925
    assert wp.rand_init(-1) == 3861530882
    assert wp.randi(wp.rand_init(0), -5, 100) == 817759070 % 105 - 5


def test_the_interpreter_draws_the_same() -> None:
    got = drawn_integers(30.0, 40)
    cdf = np.float32([0.1, 0.3, 0.3, 1.0])
    out = np.zeros((40, 10), np.uint32)
    interp.run(integers.plan.variants.ir, [42, 30.0, out, cdf], 40)
    np.testing.assert_array_equal(out, got)
    wide = wp.zeros((40, 10), dtype=float)
    wp.launch(floats, dim=40, inputs=[3], outputs=[wide])
    same = np.zeros((40, 10), np.float32)
    interp.run(floats.plan.variants.ir, [3, same], 40)
    np.testing.assert_allclose(same, wide.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lam", [0.3, 4.0, 9.9, 10.0, 35.0, 2000.0])
def test_poisson(lam: float) -> None:
    got = drawn_integers(lam)[:, 9]
    # Classes with enough draws in each, and the tails.
    low, high = stats.poisson.ppf([0.002, 0.998], lam)
    edges = np.unique(np.linspace(low, high, 25).astype(int))
    seen = np.histogram(got, [-np.inf, *(edges + 0.5), np.inf])[0]
    wanted = np.diff([0, *stats.poisson.cdf(edges, lam), 1]) * COUNT
    keep = wanted > 5
    assert (
        stats.chisquare(seen[keep], wanted[keep] * seen[keep].sum() / wanted[keep].sum())[1] > 1e-4
    )
    assert abs(got.mean() - lam) < 5 * math.sqrt(lam / COUNT)


@pytest.mark.parametrize("lam", [0.0, -1.0, math.nan])
def test_poisson_of_nothing_draws_nothing(lam: float) -> None:
    assert not drawn_integers(lam, 5)[:, 9].any()


def test_log_factorial() -> None:
    from engine.builtins.composite import HELPERS
    from engine.builtins.library.random import log_factorial
    from engine.frontend import lower_composite
    from engine.lang.types import FLOAT64

    fn = lower_composite(HELPERS[log_factorial], [FLOAT64])
    for k in (0, 1, 5, 20, 300, 10**6, 10**9):
        (got,) = interp.evaluate(fn, [float(k)])
        assert got == pytest.approx(math.lgamma(k + 1), rel=1e-13, abs=1e-13)


def test_floats_are_spread_evenly() -> None:
    out = wp.zeros((COUNT, 10), dtype=float)
    wp.launch(floats, dim=COUNT, inputs=[3], outputs=[out])
    got = out.numpy().astype(float)
    assert got[:, 0].min() >= 0 and got[:, 0].max() < 1
    assert np.all(got[:, 0] * 2**24 % 1 == 0)
    root = got[:, 3]
    for column in (
        got[:, 0], (got[:, 1] + 3) / 11, stats.norm.cdf(got[:, 2]), (1 - root) ** 2,
        got[:, 4] / (1 - root), *(got[:, 5:].T + 0.5),
    ):  # fmt: skip
        assert stats.kstest(column, "uniform")[1] > 1e-4
    together = np.corrcoef(got[:, [0, 1, 2, 5, 6, 7, 8, 9]].T) - np.eye(8)
    assert np.abs(together).max() < 5 / math.sqrt(COUNT)


def test_points_lie_in_their_shapes() -> None:
    out = wp.zeros((COUNT, 6), dtype=wp.vec3)
    wp.launch(points, dim=COUNT, inputs=[5], outputs=[out])
    p = out.numpy().astype(float)
    size = np.linalg.norm(p, axis=2)
    np.testing.assert_allclose(size[:, [0, 2, 4]], 1, atol=1e-6)
    assert size[:, [1, 3, 5]].max() <= 1 + 1e-6
    angle = np.arctan2(p[..., 1], p[..., 0]) / (2 * np.pi) + 0.5
    even = [*angle.T, size[:, 1] ** 2, size[:, 3] ** 3, size[:, 5] ** 3]
    even += [p[:, 2, 2] / 2 + 0.5, p[:, 3, 2] / size[:, 3] / 2 + 0.5]
    even += [p[:, 4, 2], p[:, 5, 2] / size[:, 5]]
    for column in even:
        assert stats.kstest(column, "uniform")[1] > 1e-4


def test_the_state_follows_the_program() -> None:
    out, state = wp.zeros(12, dtype=wp.uint32), wp.zeros(1, dtype=wp.uint32)
    wp.launch(flow, dim=1, inputs=[out, state, 0])
    a = [pcg(0)]
    for _ in range(7):
        a.append(pcg(a[-1]))
    assert out.list() == [*a[:5], a[5], a[5], (a[5] + a[6] * 3) % 2**32, a[0], 0, a[0], a[1]]


def test_on_the_host_the_state_stays() -> None:
    s = wp.rand_init(42)
    assert wp.randf(s) == wp.randf(s) == pytest.approx((pcg(s) >> 8) * 2.0**-24)
    assert wp.randu(np.uint32(s)) == pcg(s)
    assert 0 <= wp.sample_triangle(s)[0] <= 1


def test_gradients_go_through_what_is_drawn() -> None:
    x = wp.array(np.linspace(0.5, 2, 6), dtype=float, requires_grad=True)
    y = wp.zeros(6, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scaled, dim=6, inputs=[x], outputs=[y])
    assert np.any(y.numpy())
    wp.autograd.gradcheck_tape(tape, show_summary=False)
