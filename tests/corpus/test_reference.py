"""The worked examples of the reference documents, with the numbers that they print.

Where a document says that a number is wrong, the right one stands here.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.autograd import jvp

ONES = np.ones(3, np.float32)


def floats(*values: float) -> Any:
    return wp.array(values, dtype=float, requires_grad=True)


def close(a: Any, expected: Any) -> None:
    np.testing.assert_allclose(a.numpy(), np.asarray(expected), rtol=1e-6)


def both_modes(tape: Any, out: Any, leaves: dict[Any, Any]) -> None:
    """Gradients of the sum of `out` in reverse mode, and the same numbers in forward mode."""
    tape.backward(grads={out: wp.ones_like(out)})
    for leaf, expected in leaves.items():
        close(leaf.grad, expected)
        for k, slope in enumerate(expected):
            moved = jvp(tape, tangents={leaf: np.eye(leaf.size, dtype=np.float32)[k]})
            assert moved[out].numpy().sum() == pytest.approx(slope, rel=1e-6)


# ---- copies


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    tid = wp.tid()
    y[tid] = x[tid] * 2.0


def copied(x: Any, y: Any) -> Any:
    z = wp.zeros_like(x)
    wp.copy(z, y)
    return z


def cloned(x: Any, y: Any) -> Any:
    return wp.clone(y, requires_grad=True)


def assigned(x: Any, y: Any) -> Any:
    z = wp.zeros_like(y)
    z.assign(y)
    return z


@pytest.mark.parametrize("how", [copied, cloned, assigned])
def test_copying_is_differentiable(how: Any) -> None:
    x = wp.array(np.arange(3), dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        wp.launch(double, dim=3, inputs=[x, y])
        z = how(x, y)
    both_modes(tape, z, {x: [2, 2, 2]})


def test_clone_without_gradient_detaches() -> None:
    x = floats(0, 1, 2)
    y, out = wp.zeros_like(x), wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, dim=3, inputs=[x, y])
        z = wp.clone(y, requires_grad=False)
        wp.launch(double, dim=3, inputs=[z, out])
    tape.backward(grads={out: wp.ones_like(out)})
    close(x.grad, [0, 0, 0])
    close(jvp(tape, tangents={x: ONES})[out], [0, 0, 0])


# ---- Jacobians, row by row


@wp.kernel
def coupled(q: wp.array(dtype=float), r: wp.array(dtype=float)):
    env = wp.tid()
    a = q[2 * env]
    b = q[2 * env + 1]
    r[2 * env] = a * b
    r[2 * env + 1] = a * a - b


@pytest.mark.parametrize("envs", [1, 3])
def test_jacobian_of_all_environments_by_rows(envs: int) -> None:
    values = np.arange(1.0, 2 * envs + 1)
    q = wp.array(values, dtype=float, requires_grad=True)
    r = wp.zeros_like(q)
    tape = wp.Tape()
    with tape:
        wp.launch(coupled, dim=envs, inputs=[q], outputs=[r])
    rows = np.empty((envs, 2, 2), np.float32)
    columns = np.empty((envs, 2, 2), np.float32)
    for k in range(2):
        e = np.tile(np.eye(2, dtype=np.float32)[k], envs)
        tape.backward(grads={r: wp.array(e, dtype=wp.float32)})
        rows[:, k, :] = tape.gradients[q].numpy().reshape(envs, 2)
        tape.zero()
        columns[:, :, k] = jvp(tape, tangents={q: e})[r].numpy().reshape(envs, 2)
    a, b = values[0::2], values[1::2]
    expected = np.stack([np.stack([b, a], -1), np.stack([2 * a, -np.ones(envs)], -1)], 1)
    np.testing.assert_allclose(rows, expected)
    np.testing.assert_allclose(columns, expected)


# ---- custom gradients


@wp.func
def plain_sqrt(x: float):
    return wp.sqrt(x)


@wp.func
def safe_sqrt(x: float):
    return wp.sqrt(x)


@wp.func_grad(safe_sqrt)
def adj_safe_sqrt(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += 1.0 / (2.0 * wp.sqrt(x)) * adj_ret


@wp.kernel
def run_plain_sqrt(xs: wp.array(dtype=float), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = plain_sqrt(xs[i])


@wp.kernel
def run_safe_sqrt(xs: wp.array(dtype=float), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = safe_sqrt(xs[i])


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(run_plain_sqrt, [0.5, 0.35355338, np.inf]), (run_safe_sqrt, [0.5, 0.35355338, 0.0])],
)
def test_custom_gradient(kernel: Any, expected: list[float]) -> None:
    xs = floats(1.0, 2.0, 0.0)
    ys = wp.zeros_like(xs)
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=len(xs), inputs=[xs], outputs=[ys])
    close(ys, [1.0, 1.4142135, 0.0])
    tape.backward(grads={ys: wp.array(np.ones(len(xs)), dtype=wp.float32)})
    close(xs.grad, expected)
    close(jvp(tape, tangents={xs: ONES})[ys], expected)


@wp.kernel
def count_up(
    counter: wp.array(dtype=int), input: wp.array(dtype=float), output: wp.array(dtype=float)
):
    idx = wp.atomic_add(counter, 0, 1)
    output[idx] = wp.sqrt(input[idx])


@wp.func
def reversible_increment(
    buf: wp.array(dtype=int), buf_index: int, value: int, thread_values: wp.array(dtype=int),
    tid: int,
):  # fmt: skip
    next_index = wp.atomic_add(buf, buf_index, value)
    thread_values[tid] = next_index
    return next_index


@wp.func_replay(reversible_increment)
def replay_reversible_increment(
    buf: wp.array(dtype=int), buf_index: int, value: int, thread_values: wp.array(dtype=int),
    tid: int,
):  # fmt: skip
    return thread_values[tid]


@wp.kernel
def count_up_diff(
    counter: wp.array(dtype=int), thread_ids: wp.array(dtype=int), input: wp.array(dtype=float),
    output: wp.array(dtype=float),
):  # fmt: skip
    tid = wp.tid()
    idx = reversible_increment(counter, 0, 1, thread_ids, tid)
    output[idx] = wp.sqrt(input[idx])


@pytest.mark.parametrize("use_reversible_increment", [False, True])
@pytest.mark.host("the order of threads", only=("True",))
def test_index_from_a_counter(use_reversible_increment: bool) -> None:
    # The reference prints [4, 0, ...] without the replay function, and says why it is wrong.
    dim = 8
    input = wp.array(np.arange(1, dim + 1), dtype=wp.float32, requires_grad=True)
    counter = wp.zeros(1, dtype=wp.int32)
    thread_ids = wp.zeros(dim, dtype=wp.int32)
    output = wp.zeros(dim, dtype=wp.float32, requires_grad=True)
    tape = wp.Tape()
    with tape:
        if use_reversible_increment:
            wp.launch(count_up_diff, dim, inputs=[counter, thread_ids, input], outputs=[output])
        else:
            wp.launch(count_up, dim, inputs=[counter, input], outputs=[output])
    tape.backward(grads={output: wp.array(np.ones(dim), dtype=wp.float32)})
    expected = [0.5, 0.35355338, 0.28867513, 0.25, 0.2236068, 0.20412414, 0.18898225, 0.17677669]
    assert counter.numpy() == [8]
    assert thread_ids.numpy().tolist() == (list(range(8)) if use_reversible_increment else [0] * 8)
    close(input.grad, expected)
    close(jvp(tape, tangents={input: np.ones(dim, np.float32)})[output], expected)
    assert counter.numpy() == [8]


# ---- arrays that are overwritten


@wp.kernel
def square_kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    tid = wp.tid()
    y[tid] = x[tid] * x[tid]


@wp.kernel
def overwrite_kernel(z: wp.array(dtype=float), x: wp.array(dtype=float)):
    tid = wp.tid()
    x[tid] = z[tid]


@wp.kernel
def readwrite_kernel(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    tid = wp.tid()
    b[tid] = a[tid] * a[tid]
    a[tid] = 1.0


@wp.kernel
def loss_kernel(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    tid = wp.tid()
    wp.atomic_add(loss, 0, x[tid])


@pytest.mark.parametrize("overwrites", [None, "restore", "warn", "present"])
def test_overwrite_between_kernels(overwrites: Any, monkeypatch: Any) -> None:
    # The reference prints [-2, -4, -6] and says that it should be [2, 4, 6]. (Its loss is
    # that of `a`, by mistake: its numbers are those of the loss of `b`.)
    if overwrites is not None:
        monkeypatch.setattr(config, "overwrites", overwrites)
    a = floats(1.0, 2.0, 3.0)
    b = wp.zeros_like(a)
    c = floats(-1.0, -2.0, -3.0)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(square_kernel, a.shape, inputs=[a], outputs=[b])
        wp.launch(overwrite_kernel, c.shape, inputs=[c], outputs=[a])
        wp.launch(loss_kernel, b.shape, inputs=[b, loss])
    warns = pytest.warns(UserWarning, match="other engines")
    with warns if overwrites == "warn" else nullcontext():
        tape.backward(loss)
    close(a, [-1, -2, -3])
    close(a.grad, [-2, -4, -6] if overwrites == "present" else [2, 4, 6])
    close(c.grad, [0, 0, 0])
    if overwrites != "present":  # which keeps nothing
        close(jvp(tape, tangents={a: ONES})[b], [2, 4, 6])


@wp.kernel
def force_kernel(pos: wp.array(dtype=float), vel: wp.array(dtype=float),
                 force: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    force[i] = wp.sin(pos[i]) - 0.1 * vel[i]


@wp.kernel
def simulate_kernel(
    pos: wp.array(dtype=float), vel: wp.array(dtype=float), force: wp.array(dtype=float),
    next_pos: wp.array(dtype=float), next_vel: wp.array(dtype=float),
):  # fmt: skip
    i = wp.tid()
    v = vel[i] + force[i] * vel[i]
    next_vel[i] = v
    next_pos[i] = pos[i] + v * force[i]


def test_one_force_array_for_two_steps() -> None:
    """The reference calls this an error, and wrong: here it is the gradient of what ran."""

    def gradients(shared: bool) -> list[Any]:
        pos, vel, loss = floats(0.5, 1.5), floats(0.3, -0.7), floats(0.0)
        leaves = [pos, vel]
        force = wp.zeros_like(pos)
        with wp.Tape() as tape:
            for _ in range(2):
                force = force if shared else wp.zeros_like(pos)
                pos1, vel1 = wp.zeros_like(pos), wp.zeros_like(vel)
                wp.launch(force_kernel, 2, inputs=[pos, vel], outputs=[force])
                wp.launch(simulate_kernel, 2, [pos, vel, force], [pos1, vel1])
                pos, vel = pos1, vel1
            wp.launch(loss_kernel, 2, inputs=[pos, loss])
        tape.backward(loss)
        return [a.grad.numpy().tolist() for a in leaves]

    assert gradients(shared=True) == gradients(shared=False)


def test_overwrite_within_a_kernel() -> None:
    # The reference prints [2, 2, 2] and says that it should be this.
    a = floats(1.0, 2.0, 3.0)
    b = wp.zeros_like(a)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(readwrite_kernel, dim=a.shape, inputs=[a, b])
        wp.launch(loss_kernel, a.shape, inputs=[b, loss])
    both_modes(tape, loss, {a: [2, 4, 6]})


# ---- dynamic loops


@wp.kernel
def dynamic_loop_sum(x: wp.array(dtype=float), loss: wp.array(dtype=float), iters: int):
    sum = float(0.0)
    for i in range(iters):
        sum += x[i]
    wp.atomic_add(loss, 0, sum)


@wp.kernel
def dynamic_loop_mult(x: wp.array(dtype=float), loss: wp.array(dtype=float), iters: int):
    prod = float(1.0)
    for i in range(iters):
        prod *= x[i]
    wp.atomic_add(loss, 0, prod)


@wp.kernel
def dynamic_loop_prods(
    x: wp.array(dtype=float), prods: wp.array(dtype=float), loss: wp.array(dtype=float), iters: int
):
    for i in range(iters):
        prods[i + 1] = x[i] * prods[i]
    wp.atomic_add(loss, 0, prods[iters])


@wp.kernel
def dynamic_loop_mean(
    x: wp.array(dtype=float), weights: wp.array(dtype=float), loss: wp.array(dtype=float),
    iters: int,
):  # fmt: skip
    sum = float(0.0)
    norm = float(0.0)
    for i in range(iters):
        w = weights[i]
        norm += w
        sum += x[i] * w
    l = sum / norm
    wp.atomic_add(loss, 0, l)


@wp.func
def loop(x: wp.array(dtype=float), weights: wp.array(dtype=float), iters: int):
    sum = float(0.0)
    norm = float(0.0)
    for i in range(iters):
        w = weights[i]
        norm += w
        sum += x[i] * w
    return sum, norm


@wp.kernel
def dynamic_loop_function(
    x: wp.array(dtype=float), weights: wp.array(dtype=float), loss: wp.array(dtype=float),
    iters: int,
):  # fmt: skip
    sum, norm = loop(x, weights, iters)
    l = sum / norm
    wp.atomic_add(loss, 0, l)


THIRDS = [1 / 3] * 3


@pytest.mark.parametrize(
    ("kernel", "value", "more", "expected"),
    [
        (dynamic_loop_sum, 1.0, (), [1, 1, 1]),
        (dynamic_loop_mult, 2.0, (), [4, 4, 4]),  # the reference prints [32, 8, 2] (incorrect)
        (dynamic_loop_prods, 2.0, ((4, 1.0),), [4, 4, 4]),
        (dynamic_loop_mean, 1.0, ((3, 1.0),), THIRDS),  # [inf, inf, inf] (incorrect)
        (dynamic_loop_function, 1.0, ((3, 0.5),), THIRDS),
    ],
)
def test_dynamic_loops(kernel: Any, value: float, more: Any, expected: list[float]) -> None:
    iters = 3
    x = wp.full(shape=iters, value=value, dtype=float, requires_grad=True)
    others = [wp.full(shape=n, value=v, dtype=float, requires_grad=True) for n, v in more]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x, *others, loss, iters])
    both_modes(tape, loss, {x: expected})
