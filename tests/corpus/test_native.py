# ruff: noqa: F811
"""Native functions: the documented examples, values and arrays, replays, checks, mistakes."""

import warnings
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, jvp
from engine.frontend.native_access import access


def floats(data, grad=True):
    return wp.array(np.asarray(data, np.float32), dtype=float, requires_grad=grad)


def recorded(kernel, dim, inputs, outputs):
    with wp.Tape() as tape:
        wp.launch(kernel, dim, inputs=inputs, outputs=outputs)
    return tape


def gradients(kernel, dim, inputs, outputs):
    tape = recorded(kernel, dim, inputs, outputs)
    tape.backward(grads={o: wp.ones_like(o) for o in outputs})
    return tape


def verdicts(tape):
    (launch,) = check_tape(tape).launches
    return {(p.input, p.output): p.verdict for p in launch.pairs}


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


# ---- what checks say


def spoiled(factor):
    @wp.func_native(
        "float s = sinf(x); return expf(s * x);",
        f"float s = sinf(x); adj_x += {factor:f}f * expf(s * x) * (s + x * cosf(x)) * adj_ret;",
    )
    def curve(x: float) -> float: ...

    @wp.kernel
    def curves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = curve(x[i]) * 2.0

    return curves


@pytest.mark.parametrize("factor", [1.0, 1.01, 0.99, -1.0, 0.0, 2.0])
def test_wrong_adjoints_are_caught_in_float32(factor) -> None:
    x, y = floats([0.3, 0.9, -1.2, 1.6]), floats([0.0] * 4)
    tape = recorded(spoiled(factor), 4, [x], [y])
    result = check_tape(tape)
    assert verdicts(tape) == {("x", "y"): "pass" if factor == 1.0 else "fail"}
    (launch,) = result.launches
    assert [(name, s.file) for name, s in launch.culprits] == [("curve", __file__)]
    assert result.passed == (factor == 1.0)


@wp.func_native("return (x + 1.0e6f) - 1.0e6f;", "adj_x += adj_ret;")
def noisy(x: float) -> float: ...


@wp.kernel
def noise(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = noisy(x[i])


def test_noise_above_the_tolerance_is_inconclusive() -> None:
    x, y = floats([0.3, 0.9, -1.2]), floats([0.0] * 3)
    assert verdicts(recorded(noise, 3, [x], [y])) == {("x", "y"): "inconclusive"}


@wp.func_native("return a[int(10.0f * x)];", "(void)adj_ret;")
def picked(x: float, a: wp.array(dtype=float)) -> float: ...


@wp.kernel
def pick(x: wp.array(dtype=float), a: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = picked(x[i], a) + x[i]


def test_displaced_indices_stay_inside() -> None:
    x, a, y = floats([0.05, 0.29]), floats([1.0, 2.0, 3.0], False), floats([0.0, 0.0])
    assert verdicts(recorded(pick, 2, [x, a], [y]))["x", "y"] in ("pass", "inconclusive")


@wp.func_native("return 2.0f * x;")
def dead_end(x: float) -> float: ...


@wp.func_native("return i + 1;")
def counted_up(i: int) -> int: ...


@wp.kernel
def ends(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = dead_end(x[i]) + x[counted_up(i) - 1]


@wp.kernel
def indexes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[counted_up(i) - 1] = 3.0 * x[i]


def test_a_function_without_adjoint_says_that_gradients_end() -> None:
    x, y = floats([0.5, 1.5]), floats([0.0, 0.0])
    tape = recorded(ends, 2, [x], [y])
    with pytest.warns(UserWarning, match="native function 'dead_end'.*no adj_snippet"):
        tape.backward(grads={y: wp.ones_like(y)})
    assert x.grad.numpy().tolist() == [1.0, 1.0]
    (launch,) = check_tape(tape).launches
    assert [p.verdict for p in launch.pairs] == ["fail"]
    assert [name for name, _ in launch.stops] == ["dead_end"]
    with pytest.raises(wp.KernelError, match=r"E110.*no derivative in forward mode"):
        jvp(tape, tangents={x: wp.ones_like(x)})


def test_integers_need_no_adjoint() -> None:
    x, y = floats([0.5, 1.5]), floats([0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape = gradients(indexes, 2, [x], [y])
    assert x.grad.numpy().tolist() == [3.0, 3.0]
    assert verdicts(tape) == {("x", "y"): "pass"}  # in float64: nothing native is float


# ---- what a snippet does to its arrays


@pytest.mark.parametrize(
    ("text", "reads", "writes", "updates"),
    [
        ("out[i] = a * x[i] + y[i];", "xy", "o", ""),
        ("out[i] += x[idx[i]]; // y[i] = 1", "xk", "", "o"),
        ("out[i] = out[i - 1];", "o", "o", ""),
        ("float& r = x[i]; r = 2.0f;", "x", "x", ""),
        ("float* p = &x[i]; *p = 2.0f;", "x", "x", ""),
        ("wp::atomic_add(out, i, x[i]); y[i].c[0] = 2;", "x", "y", "o"),
        ("auto f = [&](float& v) { v = 1; }; f(x[i]);", "x", "x", ""),
        ("if (x[i] == y[i]) out[i]++;", "oxy", "o", ""),
        ('const char* s = "x[i] = 1"; int n = y.shape[0];', "", "", ""),
        ("other.x = 3; out[i][j] = 1.0f; out(i, j) -= x(i, j);", "x", "o", "o"),
        ("swap(x, y);", "xy", "xy", ""),
    ],
)
def test_accesses(text, reads, writes, updates) -> None:
    names = {"x": "x", "y": "y", "o": "out", "k": "idx"}
    found = access(text, names.values())
    assert found.reads == {names[c] for c in reads}
    assert found.writes == {names[c] for c in writes}
    assert found.updates == {names[c] for c in updates}


# ---- mistakes


def call(native, *args):
    if len(args) == 1:

        @wp.kernel
        def k(x: wp.array(dtype=float)):
            x[0] = native(x[0])
    else:

        @wp.kernel
        def k(x: wp.array(dtype=float)):
            native(x[0])

    wp.launch(k, 1, [wp.zeros(1)])


def test_errors_in_a_snippet_are_told_at_its_decorator() -> None:
    @wp.func_native(
        """
        float a = x * 2.0f;
        return b + a;
        """
    )
    def wrong(x: float) -> float: ...

    with pytest.raises(wp.CompilerError) as e:
        call(wrong, 1)
    (d,) = e.value.diagnostics
    assert d.code == "E304" and d.span.file == __file__
    assert d.span.line == wrong.func.__code__.co_firstlineno
    assert "wrong" in d.message and "b" in d.message
    assert "`return b + a;`" in d.help and d.help.startswith("correct line 2")
    assert any(".log" in note for note in d.notes)


def test_errors_in_an_adjoint_come_with_the_backward_pass() -> None:
    @wp.func_native("return 2.0f * x;", "adj_x += 2.0f * adj_y;")
    def twice(x: float) -> float: ...

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = twice(x[0])

    x, y = floats([1.0]), floats([0.0])
    tape = recorded(k, 1, [x], [y])
    with pytest.raises(wp.CompilerError, match=r"E304.*adj_twice.*adj_y"):
        tape.backward(grads={y: wp.ones_like(y)})


@wp.func_native("return x;")
def with_a_body(x: float) -> float:
    return x + 1.0


@wp.func_native("x;")
def returns_nothing(x: float) -> float: ...


@wp.func_native("return x;")
def two_results(x: float) -> tuple[float, float]: ...


@wp.func_native("return new_;")
def keyword(new: float) -> float: ...


@wp.func_native("return x;")
def documented(x: float) -> float:
    """Text, and a `return`, are no body."""
    return


@pytest.mark.parametrize(
    ("native", "code"),
    [(with_a_body, "E106"), (returns_nothing, "E109"), (two_results, "E103"), (keyword, "E103")],
)
def test_refusals(native, code) -> None:
    with pytest.raises(wp.KernelError) as e:
        call(native, 1)
    assert e.value.diagnostics[0].code == code and e.value.diagnostics[0].help
    assert e.value.diagnostics[0].span.file == __file__


def test_stubs_and_calls() -> None:
    assert "no body" in documented.__doc__
    call(documented, 1)
    with pytest.raises(wp.EngineError, match="E106"):
        documented(1.0)
    with pytest.raises(wp.KernelError, match="E103"):
        wp.func_native(3)
    with pytest.raises(wp.KernelError, match="E103"):
        wp.func_native("return x;")(3)
