"""Kernels whose floats decide otherwise in float64: checked for what they did, and without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, jacobian, jacobian_fd
from engine.autograd.launch.derived import can_lift

F = wp.array(dtype=float)
F2 = wp.array(dtype=float, ndim=2)


@wp.func
def right(w: float):
    return w * w


@wp.func
def wrong(w: float):
    return w * w


@wp.func_grad(right)
def adj_right(w: float, ret: float):
    wp.adjoint[w] += 2.0 * w * ret


@wp.func_grad(wrong)
def adj_wrong(w: float, ret: float):
    wp.adjoint[w] += 5.0 * w * ret


@wp.func
def right_part(w: float):
    return w


@wp.func
def wrong_part(w: float):
    return w


@wp.func_grad(wrong_part)
def adj_wrong_part(w: float, ret: float):
    wp.adjoint[w] += 1.5 * ret


def kernels(f: Any) -> dict[str, Any]:
    """Each calls `f` in a branch that float32 takes, and float64 does not."""

    @wp.kernel(module="unique")
    def equal(x: F, y: F, w: F, z: F):
        i = wp.tid()
        if x[i] * x[i] == y[i]:  # as computed before
            z[i] = f(w[i])

    @wp.kernel(module="unique")
    def too_small_to_matter(x: F, y: F, w: F, z: F):
        i = wp.tid()
        if x[i] + 1.0e-9 == x[i]:
            z[i] = f(w[i])

    @wp.kernel(module="unique")
    def too_large(x: F, y: F, w: F, z: F):
        i = wp.tid()
        if wp.isinf(x[i] * 1.0e38 * 1.0e3):
            z[i] = f(w[i])

    @wp.kernel(module="unique")
    def converted(x: F, y: F, w: F, z: F):
        i = wp.tid()
        k = int((x[i] - x[i] + 0.7) * 10.0)  # 7 in float32
        z[i] = wp.where(k == 7, f(w[i]), 3.0 * w[i])

    @wp.kernel(module="unique")
    def rounded_down(x: F, y: F, w: F, z: F):
        i = wp.tid()
        z[i] = w[i] + (wp.floor((x[i] - x[i] + 0.7) * 10.0) - 6.0) * f(w[i])

    @wp.kernel(module="unique")
    def by_steps(x: F, y: F, w: F, z: F):
        i = wp.tid()
        t, s = float(0.0), w[i]
        while t < 0.3:
            s = s + 0.1 * f(s)
            t += x[0] - x[0] + 0.1  # three times in float32, four in float64
        z[i] = s

    @wp.kernel(module="unique")
    def without_end(x: F, y: F, w: F, z: F):
        i = wp.tid()
        t, s = float(0.0), w[i]
        dt = x[0] - x[0] + 0.2
        while t != 1.0:
            s = s + f(s) * dt
            t += dt
        z[i] = s

    found = [equal, too_small_to_matter, too_large, converted, rounded_down, by_steps, without_end]
    return {k.func.__name__: k for k in found}


RIGHT, WRONG = kernels(right), kernels(wrong)


def launched(kernel: Any) -> wp.Tape:
    x = wp.array(np.float32([0.3, 0.55, 0.7, 0.9]), dtype=float)
    y = wp.array(x.numpy() * x.numpy(), dtype=float)
    w = wp.array([0.3, 0.4, 0.5, 0.2], dtype=float, requires_grad=True)
    z = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, 4, [x, y, w, z])
    assert (z.numpy() != 0).all()
    return tape


@pytest.mark.parametrize("name", RIGHT)
def test_the_branch_that_ran_is_checked(name: str) -> None:
    found = check_tape(launched(RIGHT[name]))
    assert [p.verdict for p in found.launches[0].pairs] == ["pass"]
    assert not can_lift(RIGHT[name].plan.variants)
    assert found.whole is not None and "no equivalent float64 form" in found.whole.reason
    found = check_tape(launched(WRONG[name]))
    assert [p.verdict for p in found.launches[0].pairs] == ["fail"]


@pytest.mark.parametrize("name", RIGHT)
def test_differences_are_of_the_branch_that_ran(name: str) -> None:
    kernel = kernels(right)[name]  # one that no check has seen
    (record,) = launched(kernel).records
    # The output has the results already: without the branch they are the same.
    found = jacobian_fd(kernel, 4, record.args[:3], record.args[3:])
    by_adjoint = jacobian(kernel, 4, record.args[:3], record.args[3:])
    np.testing.assert_allclose(found[2, 0].numpy(), by_adjoint[2, 0].numpy(), rtol=0.02, atol=1e-3)


@wp.func
def attenuated(d: float):
    return wp.exp(-d)


@wp.func_grad(attenuated)
def adj_attenuated(d: float, ret: float):
    wp.adjoint[d] += wp.exp(-d) * ret  # the sign is wrong


@wp.kernel
def depth(p: wp.array(dtype=wp.vec3), z: F):
    i = wp.tid()
    wp.atomic_min(z, i % 4, wp.length(p[i] * 1.1))


def shading(f: Any) -> Any:
    @wp.kernel(module="unique")
    def shade(p: wp.array(dtype=wp.vec3), z: F, image: F):
        i = wp.tid()
        d = wp.length(p[i] * 1.1)
        if d == z[i % 4]:
            image[i % 4] = f(d)

    return shade


@wp.func
def attenuated_rightly(d: float):
    return wp.exp(-d)


@pytest.mark.parametrize("f, verdict", [(attenuated_rightly, "pass"), (attenuated, "fail")])
def test_a_depth_buffer_read_again(f: Any, verdict: str) -> None:
    """The gradient is that of the points which are nearest, as they were in float32."""
    rng = np.random.default_rng(0)
    p = wp.array(rng.normal(size=(12, 3)) + 2, dtype=wp.vec3, requires_grad=True)
    z = wp.full(4, 1e9, dtype=float, requires_grad=True)
    image = wp.zeros(4, dtype=float, requires_grad=True)
    shade = shading(f)
    with wp.Tape() as tape:
        wp.launch(depth, 12, [p, z])
        wp.launch(shade, 12, [p, z, image])
    assert (image.numpy() != 0).all()
    found = {(x.input, x.output): x.verdict for x in check_tape(tape).launches[1].pairs}
    assert found["p", "image"] == verdict


def advecting(f: Any) -> Any:
    @wp.kernel(module="unique")
    def advect(v: F2, carried: F2, out: F2):
        i, j = wp.tid()
        n = carried.shape[0]
        x = float(i) - v[i, j]
        y = float(j) - v[j, i]
        left, low = int(wp.floor(x)), int(wp.floor(y))
        s, t = f(x - float(left)), y - float(low)
        left, low = (left + n) % n, (low + n) % n
        right, top = (left + 1) % n, (low + 1) % n
        below = (1.0 - t) * carried[left, low] + t * carried[left, top]
        above = (1.0 - t) * carried[right, low] + t * carried[right, top]
        out[i, j] = (1.0 - s) * below + s * above

    return advect


@pytest.mark.parametrize("f, verdict", [(right_part, "pass"), (wrong_part, "fail")])
def test_advection_by_velocities_next_to_nothing(f: Any, verdict: str) -> None:
    """In float32 the point that a value comes from is on the grid; in float64 in the cell beside.

    Differences in float32 see nothing of such velocities, and in float64 the kinks of `floor`.
    """
    rng = np.random.default_rng(3)
    n = 24
    v = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-20, -2, (n, n)) * (rng.random((n, n)) < 0.7)
    given = wp.array(v, dtype=float, requires_grad=True)
    carried = wp.array(rng.normal(size=(n, n)), dtype=float, requires_grad=True)
    out = wp.zeros((n, n), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(advecting(f), (n, n), [given, carried], [out])
    pairs = check_tape(tape).launches[0].pairs
    assert {p.input: p.verdict for p in pairs} == {"v": verdict, "carried": "pass"}
    # The adjoint in float64, of the cells that float32 has chosen.
    tape.backward(grads={out: wp.ones((n, n), dtype=float)})
    i, j = np.indices((n, n))
    x, y = np.float32(i) - given.numpy(), np.float32(j) - given.numpy().T
    left, low = np.floor(x).astype(int), np.floor(y).astype(int)
    s, t = np.float64(x) - left, np.float64(y) - low
    c = np.float64(carried.numpy())
    corner = {(a, b): c[(left + a) % n, (low + b) % n] for a in (0, 1) for b in (0, 1)}
    by_x = (1 - t) * (corner[1, 0] - corner[0, 0]) + t * (corner[1, 1] - corner[0, 1])
    by_y = (1 - s) * (corner[0, 1] - corner[0, 0]) + s * (corner[1, 1] - corner[1, 0])
    if verdict == "pass":
        np.testing.assert_allclose(given.grad.numpy(), -by_x - by_y.T, rtol=1e-4, atol=1e-5)


@wp.kernel
def cancels(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.0:
        y[i] = (x[i] + 10000.0) * x[i] - 10000.0 * x[i]


def test_rounding_alone_is_no_other_path() -> None:
    x = wp.array([0.3, 0.4], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cancels, 2, [x, y])
    assert check_tape(tape).launches[0].pairs[0].verdict in ("pass", "rounding")
    assert can_lift(cancels.plan.variants)


@pytest.mark.parametrize("f, verdict", [(right_part, "pass"), (wrong_part, "fail")])
def test_kinks_near_by_on_a_large_grid(f: Any, verdict: str) -> None:
    """Directions displace velocities next to nothing across the kinks of `floor`."""
    rng = np.random.default_rng(5)
    n = 48
    v = -np.abs(rng.normal(size=(n, n))) * 10.0 ** rng.uniform(-12, -2, (n, n))
    given = wp.array(v, dtype=float, requires_grad=True)
    carried = wp.array(rng.normal(size=(n, n)), dtype=float, requires_grad=True)
    out = wp.zeros((n, n), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(advecting(f), (n, n), [given, carried], [out])
    pairs = check_tape(tape).launches[0].pairs
    assert {p.input: p.verdict for p in pairs} == {"v": verdict, "carried": "pass"}


@pytest.mark.parametrize("f, verdict", [(right_part, "kink"), (wrong_part, "fail")])
def test_a_large_grid_at_kinks(f: Any, verdict: str) -> None:
    """A fluid at rest: every point is on the grid. Later launches of the kind pass by their path.

    Of a right kernel no step of differences is taken anew; a wrong one fails each time.
    """
    n, kernel = 48, advecting(f)
    rng = np.random.default_rng(6)
    given = wp.zeros((n, n), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(3):  # no two alike: what is equal is checked once
            carried = wp.array(rng.normal(size=(n, n)), dtype=float, requires_grad=True)
            out = wp.zeros((n, n), dtype=float, requires_grad=True)
            wp.launch(kernel, (n, n), [given, carried], [out])
    launches = check_tape(tape, end_to_end=False).launches
    found = [{p.input: p.verdict for p in x.pairs} for x in launches]
    assert [x["carried"] for x in found] == ["pass"] * 3
    assert [x["v"] for x in found[:2]] == [verdict] * 2
    assert found[2]["v"] == ("pass" if verdict == "kink" else "fail")
    if verdict == "kink":
        assert [p.directional for p in launches[2].pairs] == [1, 1]  # one direction was enough
