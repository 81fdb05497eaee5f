# ruff: noqa: F811
"""Native functions: the documented examples, replays, values and arrays, calls of them."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp
from tests.corpus.taped import floats, gradients, recorded, verdicts

# ---- the documented examples


@wp.func_native(
    """
    out[tid] = a * x[tid] + y[tid];
    """,
    """
    adj_a += x[tid] * adj_out[tid];
    adj_x[tid] += a * adj_out[tid];
    adj_y[tid] += adj_out[tid];
    """,
)
def saxpy(
    a: wp.float32, x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32),
    out: wp.array(dtype=wp.float32), tid: int,
):  # fmt: skip
    ...


@wp.kernel
def saxpy_kernel(
    a: wp.float32, x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32),
    out: wp.array(dtype=wp.float32),
):  # fmt: skip
    tid = wp.tid()
    saxpy(a, x, y, out, tid)


def test_saxpy() -> None:
    n = 128
    x, y = floats(np.arange(n)), floats(np.zeros(n))
    out = floats(np.arange(n))
    tape = gradients(saxpy_kernel, n, [2.0, x, y], [out])
    assert out.numpy().tolist() == [2.0 * k for k in range(n)]
    assert x.grad.numpy().tolist() == [2.0] * n
    assert y.grad.numpy().tolist() == [1.0] * n
    assert verdicts(tape) == {("x", "out"): "pass", ("y", "out"): "pass"}


@pytest.mark.parametrize("missing", ["x", "y"])
def test_gradients_that_are_not_there(missing) -> None:
    x, y = floats([1.0, 2.0], missing != "x"), floats([3.0, 4.0], missing != "y")
    out = floats([0.0, 0.0])
    gradients(saxpy_kernel, 2, [2.0, x, y], [out])
    if missing == "x":
        assert y.grad.numpy().tolist() == [1.0, 1.0]
    else:
        assert x.grad.numpy().tolist() == [2.0, 2.0]


@wp.func_native(
    """
    int next_index = atomicAdd(counter, 1);
    thread_values[tid] = next_index;
    """,
    replay_snippet="",
)
def reversible_increment(
    counter: wp.array(dtype=int), thread_values: wp.array(dtype=int), tid: int
): ...


@wp.kernel
def run_atomic_add(
    input: wp.array(dtype=float), counter: wp.array(dtype=int), thread_values: wp.array(dtype=int),
    output: wp.array(dtype=float),
):  # fmt: skip
    tid = wp.tid()
    reversible_increment(counter, thread_values, tid)
    idx = thread_values[tid]
    output[idx] = input[idx] ** 2.0


@pytest.mark.host("the order of threads")
def test_reversible_increment() -> None:
    n = 8
    counter, values = wp.zeros(1, dtype=int), wp.zeros(n, dtype=int)
    x, y = floats(np.arange(n)), floats(np.zeros(n))
    gradients(run_atomic_add, n, [x, counter, values], [y])
    assert y.numpy().tolist() == [k * k for k in range(n)]
    assert x.grad.numpy().tolist() == [2 * k for k in range(n)]
    assert counter.numpy().tolist() == [n] and values.numpy().tolist() == list(range(n))


@wp.func_native("float sq = x * x; return sq;", "adj_x += 2.f * x * adj_ret;")
def square(x: float) -> float: ...


@wp.func_native("double sq = x * x; return sq;", "adj_x += 2. * x * adj_ret_0;")
def square(x: wp.float64) -> wp.float64: ...


@wp.kernel
def square_kernel(input: wp.array(dtype=Any), output: wp.array(dtype=Any)):
    tid = wp.tid()
    x = input[tid]
    output[tid] = square(x)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_square(dtype) -> None:
    x = wp.array(np.arange(5.0), dtype=dtype, requires_grad=True)
    y = wp.zeros_like(x)
    tape = gradients(square_kernel, 5, [x, y], [])
    y.grad.fill_(1.0)
    tape.backward()
    assert y.numpy().tolist() == [0, 1, 4, 9, 16]
    assert x.grad.numpy().tolist() == [0, 2, 4, 6, 8]
    assert set(verdicts(tape).values()) == {"pass"}


# ---- replays


@wp.func_native(
    "y[tid] = powf(x[tid], 2.0);", "adj_x[tid] += 2.0 * adj_y[tid];", "y[tid] = x[tid];"
)
def square_into(x: wp.array(dtype=float), y: wp.array(dtype=float), tid: int): ...


@wp.kernel
def log_square(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    tid = wp.tid()
    square_into(x, y, tid)
    z[tid] = wp.log(y[tid])


def test_the_backward_pass_reads_what_the_replay_wrote() -> None:
    x, y = floats(1.0 + np.arange(8)), floats(np.zeros(8))
    z = floats(np.zeros(8))
    tape = recorded(log_square, 8, [x, y], [z])
    before = y.numpy()
    tape.backward(grads={z: wp.ones_like(z)})
    # log's derivative is taken at the replay's y = x: 1 / x, times the 2 of the adjoint
    np.testing.assert_allclose(x.grad.numpy(), 2.0 / (1.0 + np.arange(8)), rtol=1e-6)
    np.testing.assert_array_equal(y.numpy(), before)  # and is gone again


@wp.func_native(
    "int k = atomicAdd(&counter[0], 1); return x * float(k + 1);",
    "adj_x += float(seen[tid] + 1) * adj_ret;",
    "return x * float(seen[tid] + 1);",
)
def counted(
    x: float, counter: wp.array(dtype=int), seen: wp.array(dtype=int), tid: int
) -> float: ...


@wp.func_native("int k = wp::atomic_add(counter, 0, 1); return x * float(k + 1);")
def counted_without_adjoint(x: float, counter: wp.array(dtype=int)) -> float: ...


@wp.func_grad(counted_without_adjoint)
def adj_counted(x: float, counter: wp.array(dtype=int), adj_ret: float):
    wp.adjoint[x] += 10.0 * adj_ret


@wp.kernel
def count(
    x: wp.array(dtype=float), counter: wp.array(dtype=int), seen: wp.array(dtype=int),
    y: wp.array(dtype=float), z: wp.array(dtype=float),
):  # fmt: skip
    tid = wp.tid()
    a = counted(x[tid], counter, seen, tid)
    y[tid] = a * a
    b = counted_without_adjoint(x[tid], counter)
    z[tid] = b * b


@pytest.mark.host("the order of threads")
def test_results_come_from_the_replay_or_from_the_launch() -> None:
    x, y, z = floats([1.0, 2.0]), floats([0.0, 0.0]), floats([0.0, 0.0])
    counter, seen = wp.zeros(1, dtype=int), wp.array([0, 2], dtype=int)
    gradients(count, 2, [x, counter, seen], [y, z])
    assert counter.numpy().tolist() == [4]
    a, b = np.array([1.0, 6.0]), np.array([2.0, 8.0])
    np.testing.assert_allclose(y.numpy(), a * a)
    np.testing.assert_allclose(z.numpy(), b * b)
    want = 2 * a * np.array([1.0, 3.0]) + 2 * b * 10.0
    np.testing.assert_allclose(x.grad.numpy(), want)


# ---- values, rows and helpers


@wp.func_native(
    """
    vec3 d = b - a;
    float l = length(d) + dot(a, vec3(1.0f, 2.0f, 3.0f));
    return wp::mat33(m * l)[0][1] > 0.0f ? d * (l * m[1][2]) : -d / l;
    """
)
def vectors(a: wp.vec3, b: wp.vec3, m: wp.mat33) -> wp.vec3: ...


@wp.func_native("return mat22(x, 0.0f, 0.0f, x);", "adj_x += adj_ret(0, 0) + adj_ret(1, 1);")
def diagonal(x: float) -> wp.mat22: ...


@wp.func_native("return vec3d(x, 2.0 * x, x * x);",
                "adj_x += adj_ret[0] + 2.0 * adj_ret[1] + 2.0 * x * adj_ret[2];")  # fmt: skip
def curve(x: wp.float64) -> wp.vec3d: ...


@wp.func_native(
    """
    float total = 0.0f;
    for (int j = 0; j < a.shape[1]; ++j) total += a[i][j] * a(i, j) + wp::load(w, j);
    wp::store(wp::address(out, i), total);
    wp::atomic_add(sums, i, vec3(total));
    """,
    """
    for (int j = 0; j < a.shape[1]; ++j) {
        float g = adj_out[i] + adj_sums[i][0] + adj_sums[i][1] + adj_sums[i][2];
        adj_a[i][j] += 2.0f * a[i][j] * g;
        wp::atomic_add(adj_w, j, g);
    }
    adj_out[i] = 0.0f;
    """,
)
def rows(
    a: wp.array2d(dtype=float), w: wp.array(dtype=float), out: wp.array(dtype=float),
    sums: wp.array(dtype=wp.vec3), i: int,
): ...  # fmt: skip


@wp.kernel
def values(
    v: wp.array(dtype=wp.vec3), m: wp.mat33, out: wp.array(dtype=wp.vec3),
    x: wp.array(dtype=float), y: wp.array(dtype=float),
):  # fmt: skip
    out[0] = vectors(v[0], v[1], m)
    d = diagonal(x[0])
    y[0] = d[0, 0] * 2.0 + d[1, 1] * 3.0


@wp.kernel
def row_sums(
    a: wp.array2d(dtype=float), w: wp.array(dtype=float), out: wp.array(dtype=float),
    sums: wp.array(dtype=wp.vec3),
):  # fmt: skip
    i = wp.tid()
    rows(a, w, out, sums, i)


def test_vectors_and_matrices() -> None:
    v = wp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0]], dtype=wp.vec3)
    out, x, y = wp.zeros(1, dtype=wp.vec3), floats([4.0]), floats([0.0])
    m = np.arange(9.0).reshape(3, 3)
    gradients(values, 1, [v, wp.mat33(*m.ravel()), out, x], [y])
    d = np.array([1.0, 2.0, 2.0])
    np.testing.assert_allclose(out.numpy()[0], d * ((3.0 + 14.0) * 5.0))
    assert y.numpy().tolist() == [20.0] and x.grad.numpy().tolist() == [5.0]


@pytest.mark.parametrize("flat", [True, False])
def test_arrays_of_two_dimensions(flat) -> None:
    data = np.random.default_rng(1).random((3, 4)).astype(np.float32)
    a = wp.array(data if flat else data.T, dtype=float, requires_grad=True)
    a_view = a if flat else a.transpose()
    w, out = floats([1.0, 2.0, 3.0, 4.0]), floats([0.0] * 3)
    sums = wp.zeros(3, dtype=wp.vec3, requires_grad=True)
    tape = gradients(row_sums, 3, [a_view, w], [out, sums])
    total = (data**2).sum(axis=1) + 10.0
    np.testing.assert_allclose(out.numpy(), total, rtol=1e-6)
    np.testing.assert_allclose(sums.numpy(), np.tile(total[:, None], 3), rtol=1e-6)
    got = a.grad.numpy() if flat else a.grad.numpy().T
    np.testing.assert_allclose(got, 2 * data * 4, rtol=1e-6)
    np.testing.assert_allclose(w.grad.numpy(), [12.0] * 4, rtol=1e-6)
    found = verdicts(tape)
    assert found["a", "out"] == found["w", "sums"] == found["a", "sums"] == "pass"


# ---- nested, generic, called from custom gradients


@wp.func
def wave(x: Any):
    return wp.sin(square(x)) + square(square(x))


@wp.func
def by_hand(x: float):
    return x * x * x


@wp.func_grad(by_hand)
def adj_by_hand(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * square(x) * adj_ret


@wp.kernel
def nested(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    tid = wp.tid()
    total = x.dtype(0.0)
    for k in range(tid + 1):
        total += wave(x[k]) * total + square(x[k])
        if total > x.dtype(50.0):
            break
    y[tid] = total


@wp.kernel
def in_a_gradient(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    tid = wp.tid()
    y[tid] = by_hand(x[tid])


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_nested_in_loops(dtype) -> None:
    x = wp.array([0.3, 0.7, 1.1, -0.4], dtype=dtype, requires_grad=True)
    y = wp.zeros_like(x)
    tape = gradients(nested, 4, [x], [y])
    assert set(verdicts(tape).values()) == {"pass"}
    t = np.array([1.0, -2.0, 0.5, 0.25])
    got = jvp(tape, tangents={x: wp.array(t, dtype=dtype)})[y].numpy()
    again = wp.array(x.numpy(), dtype=dtype, requires_grad=True)
    w = np.array([0.5, 1.5, -1.0, 2.0])
    z = wp.zeros_like(again)
    back = recorded(nested, 4, [again], [z])
    back.backward(grads={z: wp.array(w, dtype=dtype)})
    np.testing.assert_allclose((got * w).sum(), (again.grad.numpy() * t).sum(), rtol=1e-5)


def test_called_in_a_custom_gradient() -> None:
    x, y = floats([1.0, 2.0]), floats([0.0, 0.0])
    gradients(in_a_gradient, 2, [x], [y])
    assert x.grad.numpy().tolist() == [3.0, 12.0]
