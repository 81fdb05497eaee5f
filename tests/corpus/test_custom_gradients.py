"""Gradients and replays of the user's own: the documented examples, arrays, nesting, generics."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from tests.unit.frontend import shared_functions as shared


def gradients(kernel, dim, inputs, outputs, seeds=None):
    """Runs a kernel on a tape and back; ones are the cotangents where none are given."""
    with wp.Tape() as tape:
        wp.launch(kernel, dim, inputs=inputs, outputs=outputs)
    grads = seeds or {o: wp.ones_like(o) for o in outputs if o.requires_grad}
    tape.backward(grads=grads)
    return tape


def floats(data):
    return wp.array(np.asarray(data, np.float32), dtype=float, requires_grad=True)


# ---- example 1: a gradient that stays finite


@wp.func
def bare_sqrt(x: float):
    return wp.sqrt(x)


@wp.func
def safe_sqrt(x: float):
    return wp.sqrt(x)


@wp.func_grad(safe_sqrt)
def adj_safe_sqrt(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += 1.0 / (2.0 * wp.sqrt(x)) * adj_ret


@wp.kernel
def run_bare_sqrt(xs: wp.array(dtype=float), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = bare_sqrt(xs[i])


@wp.kernel
def run_safe_sqrt(xs: wp.array(dtype=float), output: wp.array(dtype=float)):
    i = wp.tid()
    output[i] = safe_sqrt(xs[i])


@pytest.mark.parametrize(("kernel", "at_zero"), [(run_bare_sqrt, np.inf), (run_safe_sqrt, 0.0)])
def test_safe_sqrt(kernel, at_zero) -> None:
    xs = floats([1.0, 2.0, 0.0])
    ys = wp.zeros_like(xs)
    gradients(kernel, 3, [xs], [ys])
    np.testing.assert_array_equal(ys.numpy(), np.float32([1.0, 1.4142135, 0.0]))
    np.testing.assert_array_equal(xs.grad.numpy(), np.float32([0.5, 0.35355338, at_zero]))


# ---- example 2: indices that the backward pass cannot count again


@wp.kernel
def plain_increment(
    counter: wp.array(dtype=int), input: wp.array(dtype=float), output: wp.array(dtype=float)
):
    idx = wp.atomic_add(counter, 0, 1)
    output[idx] = wp.sqrt(input[idx])


@wp.func
def reversible_increment(
    buf: wp.array(dtype=int), at: int, value: int, thread_values: wp.array(dtype=int), tid: int
):
    next_index = wp.atomic_add(buf, at, value)
    thread_values[tid] = next_index
    return next_index


@wp.func_replay(reversible_increment)
def replay_reversible_increment(
    buf: wp.array(dtype=int), at: int, value: int, thread_values: wp.array(dtype=int), tid: int
):
    return thread_values[tid]


@wp.kernel
def replayed_increment(
    counter: wp.array(dtype=int), thread_ids: wp.array(dtype=int),
    input: wp.array(dtype=float), output: wp.array(dtype=float),
):  # fmt: skip
    tid = wp.tid()
    idx = reversible_increment(counter, 0, 1, thread_ids, tid)
    output[idx] = wp.sqrt(input[idx])


@pytest.mark.parametrize("replayed", [True, False])
@pytest.mark.host("the order of threads", only=("True",))
def test_reversible_increment(replayed) -> None:
    """The reference prints [4, 0, ...] without a replay: here both are right."""
    x = floats(np.arange(1, 9))
    counter, ids = wp.zeros(1, dtype=int), wp.zeros(8, dtype=int)
    output = wp.zeros(8, dtype=float, requires_grad=True)
    inputs = [counter, ids, x] if replayed else [counter, x]
    with wp.Tape() as tape:
        wp.launch(replayed_increment if replayed else plain_increment, 8, inputs, [output])
    assert counter.numpy().tolist() == [8]
    assert ids.numpy().tolist() == (list(range(8)) if replayed else [0] * 8)
    np.testing.assert_array_equal(output.numpy(), np.sqrt(x.numpy()))
    ids.fill_(3)  # what the replay reads is what it was in the launch
    tape.backward(grads={output: wp.ones_like(output)})
    expected = [0.5, 0.35355338, 0.28867513, 0.25, 0.2236068, 0.20412414, 0.18898225, 0.17677669]
    np.testing.assert_array_equal(x.grad.numpy(), np.float32(expected))
    assert counter.numpy().tolist() == [8]  # nothing is counted again


@wp.func
def tripled(x: float):
    return 3.0 * x


@wp.func_replay(tripled)
def replay_tripled(x: float):
    return x


@wp.func
def tripled_by_hand(x: float):
    return 3.0 * x


@wp.func_grad(tripled_by_hand)
def adj_tripled_by_hand(x: float, adj_ret: float):
    wp.adjoint[x] += 5.0 * adj_ret


@wp.func_replay(tripled_by_hand)
def replay_tripled_by_hand(x: float):
    return x


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    a = tripled(x[0])
    b = tripled_by_hand(x[0])
    y[0] = a * a
    z[0] = b * b


def test_the_backward_pass_goes_on_with_the_values_of_the_replay() -> None:
    x, y, z = floats([2.0]), floats([0.0]), floats([0.0])
    gradients(squares, 1, [x], [y, z])
    assert (y.numpy()[0], z.numpy()[0]) == (36.0, 36.0)
    # 2 a and 2 b with a = b = x; then 3 from the function, 5 by hand
    assert x.grad.numpy().tolist() == [2 * 2 * 3 + 2 * 2 * 5]


# ---- gradients of arrays


@wp.func
def sigmoid(x: float):
    return 1.0 / (1.0 + wp.exp(-x))


@wp.func_grad(sigmoid)
def adj_sigmoid(x: float, adj: float):
    wp.adjoint[x] += adj * sigmoid(x) * (1.0 - sigmoid(x))


@wp.func
def store_sigmoid(i: int, xs: wp.array(dtype=Any), ys: wp.array(dtype=Any)):
    ys[i] = xs.dtype(1.0) / (xs.dtype(1.0) + wp.exp(-xs[i]))


@wp.func_grad(store_sigmoid)
def adj_store_sigmoid(i: int, xs: wp.array(dtype=Any), ys: wp.array(dtype=Any)):
    one = xs.dtype(1.0)
    wp.atomic_add(wp.adjoint[xs], i, ys[i] * (one - ys[i]) * wp.adjoint[ys][i])
    wp.adjoint[ys][i] = ys.dtype(0.0)


@wp.kernel
def eval_sigmoid(xs: wp.array(dtype=Any), ys: wp.array(dtype=Any)):
    i = wp.tid()
    store_sigmoid(i, xs, ys)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_a_function_without_results(dtype) -> None:
    data = np.array([1.0, 2.0, 3.0, 4.0])
    xs = wp.array(data, dtype=dtype, requires_grad=True)
    ys = wp.zeros_like(xs)
    tape = gradients(eval_sigmoid, 4, [xs], [ys])
    s = 1 / (1 + np.exp(-data))
    np.testing.assert_allclose(xs.grad.numpy(), s * (1 - s), rtol=1e-5)
    assert ys.grad.numpy().tolist() == [0.0] * 4  # consumed
    result = check_tape(tape)
    assert result.passed and result.checked == 1


def test_gradients_that_are_not_there() -> None:
    xs = wp.array([1.0, 2.0], dtype=float)
    ys = wp.zeros(2, dtype=float, requires_grad=True)
    gradients(eval_sigmoid, 2, [xs], [ys])
    assert ys.grad.numpy().tolist() == [0.0, 0.0]


@wp.func
def gemm(
    m: int, n: int, p: int, ta: bool, tb: bool,
    a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float),
):  # fmt: skip
    """c += a b; either may be given transposed."""
    for i in range(m):
        for j in range(n):
            total = float(0.0)
            for k in range(p):
                x = i * p + k
                if ta:
                    x = k * m + i
                y = k * n + j
                if tb:
                    y = j * p + k
                total += a[x] * b[y]
            c[i * n + j] += total


@wp.func_grad(gemm)
def adj_gemm(
    m: int, n: int, p: int, ta: bool, tb: bool,
    a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float),
):  # fmt: skip
    if not ta and not tb:
        gemm(m, p, n, False, True, wp.adjoint[c], b, wp.adjoint[a])
        gemm(p, n, m, True, False, a, wp.adjoint[c], wp.adjoint[b])


@wp.kernel
def multiply(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    gemm(2, 3, 4, False, False, a, b, c)


@pytest.mark.parametrize("with_b", [True, False])
def test_gradient_arrays_are_passed_on(with_b) -> None:
    rng = np.random.default_rng(3)
    data, other, w = rng.random((2, 4)), rng.random((4, 3)), rng.random((2, 3))
    a, b = floats(data.ravel()), floats(other.ravel())
    b.requires_grad = with_b
    c = wp.zeros(6, dtype=float, requires_grad=True)
    tape = gradients(multiply, 1, [a, b], [c], {c: w.ravel()})
    np.testing.assert_allclose(c.numpy(), (data @ other).ravel(), rtol=1e-6)
    np.testing.assert_allclose(a.grad.numpy(), (w @ other.T).ravel(), rtol=1e-6)
    if with_b:
        np.testing.assert_allclose(b.grad.numpy(), (data.T @ w).ravel(), rtol=1e-6)
    assert check_tape(tape).passed


@wp.func
def gathered(x: wp.array(dtype=float), i: int, scale: float):
    return scale * (x[i] + x[i + 1])


@wp.func_grad(gathered)
def adj_gathered(x: wp.array(dtype=float), i: int, scale: float, adj_ret: float):
    wp.adjoint[x][i] += scale * adj_ret
    wp.adjoint[x][i + 1] += scale * adj_ret
    wp.adjoint[scale] += adj_ret * (x[i] + x[i + 1])


@wp.func
def gathered_wrong(x: wp.array(dtype=float), i: int, scale: float):
    return scale * (x[i] + x[i + 1])


@wp.func_grad(gathered_wrong)
def adj_gathered_wrong(x: wp.array(dtype=float), i: int, scale: float, adj_ret: float):
    wp.adjoint[x][i] += scale * adj_ret
    wp.adjoint[scale] += adj_ret * (x[i] + x[i + 1])


def gather(f):
    @wp.kernel
    def gather(x: wp.array(dtype=float), s: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        total = float(0.0)
        for k in range(i + 1):
            total += wp.sin(f(x, k, s[k]))
        y[i] = total

    return gather


@pytest.mark.parametrize(("f", "right"), [(gathered, True), (gathered_wrong, False)])
def test_checks_see_gradients_of_arrays(f, right) -> None:
    rng = np.random.default_rng(5)
    x, s = floats(rng.random(5)), floats(rng.random(4))
    y = wp.zeros(4, dtype=float, requires_grad=True)
    tape = gradients(gather(f), 4, [x, s], [y])
    (launch,) = check_tape(tape).launches
    assert {(p.input, p.verdict) for p in launch.pairs} == {
        ("x", "pass" if right else "fail"), ("s", "pass"),
    }  # fmt: skip


# ---- nested, from another module


@wp.func
def outer(x: float):
    return safe_sqrt(x) * sigmoid(shared.cubed(x))


@wp.kernel
def run_outer(xs: wp.array(dtype=float), ys: wp.array(dtype=float)):
    i = wp.tid()
    ys[i] = outer(xs[i])


def test_nested_and_from_another_module() -> None:
    xs = floats([0.3, 0.7, 1.1])
    ys = wp.zeros_like(xs)
    tape = gradients(run_outer, 3, [xs], [ys])
    (launch,) = check_tape(tape).launches
    assert [p.verdict for p in launch.pairs] == ["pass"]
    assert {name for name, _ in launch.culprits} == {"safe_sqrt", "sigmoid", "cubed"}


@wp.func
def _late(a: float):
    return a


@wp.kernel
def _uses_late(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = _late(x[i])


def _late_gradient() -> float:
    x = wp.array([1.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(_uses_late, dim=1, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones_like(y)})
    return float(x.grad.numpy()[0])


@pytest.mark.cold("the gradient is given once")
def test_custom_gradient_given_after_a_launch() -> None:
    assert _late_gradient() == 1.0

    @wp.func_grad(_late)
    def adj_late(a: float, g: float):
        wp.adjoint[a] += 7.0 * g

    assert _late_gradient() == 7.0


# ---- an assignment in place of a sum


@wp.func
def _product(a: float, b: float):
    return a * b


@wp.func_grad(_product)
def _adj_product(a: float, b: float, adj_ret: float):
    wp.adjoint[a] = b * adj_ret
    wp.adjoint[b] = a * adj_ret


@wp.func
def _twice(x: wp.array(dtype=float), i: int):
    return 2.0 * x[i]


@wp.func_grad(_twice)
def _adj_twice(x: wp.array(dtype=float), i: int, adj_ret: float):
    wp.adjoint[x][i] = 2.0 * adj_ret


@wp.kernel
def _products(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    for _ in range(2):
        y[i] += _product(v, v)


@wp.kernel
def _twices(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = _twice(x, i) + _twice(x, i)


@pytest.mark.parametrize(
    ("kernel", "found"),
    [(_products, 12.0), (_twices, 2.0)],  # the derivative of the second is 4
    ids=["a number's starts at zero in each call", "an array's has what other calls added"],
)
def test_an_adjoint_that_is_assigned(kernel, found) -> None:
    x, y = floats([3.0]), floats([0.0])
    gradients(kernel, 1, [x], [y])
    assert x.grad.numpy()[0] == found
