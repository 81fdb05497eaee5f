"""Leaves that count for next to nothing beside others: what is wrong with them is seen, too."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import WholeResult, check_tape

F = wp.array(dtype=float)
N = 6


@wp.kernel
def square(x: F, loss: F, size: float):
    i = wp.tid()
    wp.atomic_add(loss, 0, size * x[i] * x[i])


@wp.kernel
def times(x: F, w: F, y: F):
    i = wp.tid()
    y[i] = x[i] * w[i]


@wp.kernel(enable_backward=False)
def mute(x: F, y: F):
    i = wp.tid()
    y[i] = 3.0 * x[i]


@wp.kernel
def turned(q: wp.array(dtype=wp.quat), y: F):
    i = wp.tid()
    n = wp.normalize(q[i])
    y[i] = wp.dot(n, n) + 0.0 * n[0]


@wp.kernel
def cancelled(x: F, y: F):
    i = wp.tid()
    third = x[i] / 3.0
    y[i] = (wp.sin(third * 3.0) - wp.sin(x[i])) + 1.0


@wp.kernel
def added(y: F, loss: F, size: float):
    i = wp.tid()
    wp.atomic_add(loss, 0, size * y[i])


def ramp(seed: int = 0) -> wp.array:
    values = np.random.default_rng(seed).uniform(0.5, 1.5, N)
    return wp.array(values, dtype=float, requires_grad=True)


def zeros(n: int = N) -> wp.array:
    return wp.zeros(n, dtype=float, requires_grad=True)


def whole(tape: wp.Tape) -> WholeResult:
    found = check_tape(tape).whole
    assert found is not None
    return found


# How much the leaf counts for, beside one that counts for about 1.
SHARES = [1e-3, 1e-7, 1e-10]


@pytest.mark.parametrize("share", SHARES)
def test_an_array_overwritten_before_a_faint_leaf_is_seen(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(wp.config, "overwrites", "present")
    monkeypatch.setattr(wp.config, "tape_snapshots", "eager")
    x, a, w, y, loss = ramp(0), ramp(1), ramp(2), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [loss, 1.0])
        wp.launch(times, N, [a, w], [y])
        wp.launch(times, N, [x, x], [w])
        wp.launch(added, N, [y], [loss, share])
    found = whole(tape)
    assert found.verdict == "fail"
    assert found.cause is not None and found.cause.kind == "overwrite"


@pytest.mark.parametrize("share", SHARES)
def test_a_path_without_a_backward_pass_to_a_faint_leaf_is_seen(share: float) -> None:
    x, a, y, loss = ramp(0), ramp(1), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [loss, 1.0])
        wp.launch(mute, N, [a], [y])
        wp.launch(added, N, [y], [loss, share])
    found = whole(tape)
    assert found.verdict == "fail"
    assert found.cause is not None and found.cause.kernel == "mute"


@pytest.mark.parametrize("share", [1e8, 1.0, 1e-3, 1e-6, 1e-9, 1e-12, 0.0])
def test_faint_leaves_that_are_right_raise_no_alarm(share: float) -> None:
    for seed in range(8):
        x, a, c, w = ramp(0), ramp(seed), ramp(seed + 9), ramp(2)
        q = wp.array(np.random.default_rng(seed).normal(size=(N, 4)), dtype=wp.quat,
                     requires_grad=True)  # fmt: skip
        loss = zeros(1)
        outs = [zeros() for _ in range(3)]
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [loss, 1.0])
            wp.launch(times, N, [a, w], [outs[0]])
            wp.launch(added, N, [outs[0]], [loss, share])
            # Their gradients are zero but for rounding.
            wp.launch(turned, N, [q], [outs[1]])
            wp.launch(added, N, [outs[1]], [loss, 1.0])
            wp.launch(cancelled, N, [c], [outs[2]])
            wp.launch(added, N, [outs[2]], [loss, 1.0])
        assert whole(tape).verdict == "pass", seed


@wp.kernel
def residuals(M: wp.array2d(dtype=wp.float64), x: wp.array(dtype=wp.float64),
              b: wp.array(dtype=wp.float64), r: wp.array(dtype=wp.float64)):  # fmt: skip
    i = wp.tid()
    s = wp.float64(0.0)
    for j in range(x.shape[0]):
        s += M[i, j] * x[j]
    r[i] = s - b[i]


@wp.kernel
def squares(r: wp.array(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(loss, 0, r[i] * r[i])


@wp.kernel
def carried(u: F, q: F, out: F):
    i = wp.tid()
    n = q.shape[0]
    left, right = (i + n - 1) % n, (i + 1) % n
    out[i] = q[i] - 0.1 * (u[i] * (q[right] + q[i]) - u[left] * (q[i] + q[left]))


@wp.kernel
def one(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i] * x[i]) / x[i] - 1.0


@pytest.mark.parametrize("off", [0.0, 1e-13, 1e-9, 1e-3])
def test_gradients_that_vanish_at_a_solution_raise_no_alarm(off: float) -> None:
    rng = np.random.default_rng(0)
    matrix, b = rng.normal(size=(20, 4)), rng.normal(size=20)
    solution = np.linalg.lstsq(matrix, b, rcond=None)[0] + off
    M, known = wp.array(matrix, dtype=wp.float64), wp.array(b, dtype=wp.float64)
    x = wp.array(solution, dtype=wp.float64, requires_grad=True)
    r = wp.zeros(20, dtype=wp.float64, requires_grad=True)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(residuals, 20, [M, x, known], [r])
        wp.launch(squares, 20, [r], [loss])
    assert whole(tape).verdict == "pass"


@pytest.mark.parametrize("steps", [1, 30])
def test_what_is_conserved_has_no_gradient_and_raises_no_alarm(steps: int) -> None:
    u, q, loss = ramp(0), ramp(1), zeros(1)
    with wp.Tape() as tape:
        for _ in range(steps):
            after = zeros()
            wp.launch(carried, N, [u, q], [after])
            q = after
        wp.launch(added, N, [q], [loss, 1.0])
    assert whole(tape).verdict == "pass"


@pytest.mark.parametrize("size", [1.0, 1e4, 1e7, 1e10])
def test_large_terms_that_cancel_raise_no_alarm(size: float) -> None:
    x, a, y, loss = ramp(0), ramp(1), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(one, N, [x], [y])
        wp.launch(added, N, [y], [loss, size])
        wp.launch(square, N, [a], [loss, 1.0])
    assert whole(tape).verdict == "pass"


@pytest.mark.parametrize("share", [1e-6, 1e-8, 1e-10])
def test_a_faint_leaf_among_many_sizes_is_seen(share: float) -> None:
    """Beside many others, the largest of which counts far more than most."""
    x, a, y, loss = ramp(0), ramp(1), zeros(), zeros(1)
    many = wp.array(np.random.default_rng(3).uniform(0.5, 1.5, 400), dtype=float,
                    requires_grad=True)  # fmt: skip
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [loss, 100.0])
        wp.launch(square, 400, [many], [loss, 1e-3])
        wp.launch(mute, N, [a], [y])
        wp.launch(added, N, [y], [loss, share])
    assert whole(tape).verdict == "fail"
