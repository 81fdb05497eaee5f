"""`grad(f)(...)` in kernels: values, further derivatives in both modes, refusals."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, jvp

f64 = wp.float64
STEP = 1e-3


# ---- functions, each with the same in NumPy


@wp.func
def product(x: Any, y: Any):
    return x * x * y + wp.sin(x * y)


@wp.func
def quadratic(v: wp.vec3d, m: wp.mat33d, k: int):
    return wp.dot(v, m * v) * f64(k)


@wp.func
def two_results(x: f64):
    return x * x, wp.vec2d(x, x * x * x)


@wp.func
def horner(x: f64, y: f64, n: int):
    total = f64(0.0)
    for k in range(n):
        if total > f64(50.0):
            return total * y
        total = total * x + y / f64(k + 1)
    return total


@wp.func
def branches(x: f64, y: f64):
    if x > y:
        return wp.exp(y) * x
    z = x
    z *= y
    return z * z


@wp.func
def read(a: wp.array(dtype=f64), i: int, x: f64):
    return a[i] * x * x


@wp.func
def clipped(x: f64):
    return wp.sqrt(x)


@wp.func_grad(clipped)
def adj_clipped(x: f64, adj_ret: f64):
    if x > f64(0.0):
        wp.adjoint[x] += f64(0.5) / wp.sqrt(x) * adj_ret


@wp.func
def by_its_derivative(x: f64):
    return x * x * x


@wp.func_grad(by_its_derivative)
def adj_by_its_derivative(x: f64, adj_ret: f64):
    dx, _ = wp.grad(product)(x, f64(1.0))
    wp.adjoint[x] += dx * adj_ret


@wp.func_native("return x * x * x;", "adj_x += 3.0 * x * x * adj_ret;")
def cube(x: f64) -> f64: ...


@wp.struct
class Body:
    pos: wp.vec3d
    mass: f64
    tag: int
    weights: wp.array(dtype=f64)


@wp.func
def energy(b: Body, scale: Any):
    return b.mass * wp.dot(b.pos, b.pos) * scale * b.weights[b.tag]


@wp.func
def apply(f: wp.Function, x: Any):
    return wp.grad(f)(x) * x


@wp.func
def inertia(b: Body, f: wp.Function):
    return f(b.mass) * b.pos[1]


@wp.func
def times(x: Any, n: int):
    total = x
    for _ in range(n):
        if total > x * type(x)(10.0):
            break
        total = total * x + type(x)(1.0)
    return total


slope = wp.grad(clipped)


def as_numpy(name, x, y):
    """The values of `values` below, as functions of two numbers, in NumPy."""
    if name == "product":
        return x * x * y + np.sin(x * y)
    if name == "horner":
        total = 0.0
        for k in range(5):
            total = total * x + y / (k + 1)
        return total
    assert name == "branches"
    return np.exp(y) * x if x > y else (x * y) ** 2


@wp.kernel
def values(x: wp.array(dtype=f64), y: wp.array(dtype=f64), out: wp.array2d(dtype=f64)):
    i = wp.tid()
    a, b = wp.grad(product)(x[i], y[i])
    c, d, n = wp.grad(horner)(x[i], y[i], 5)
    e, f = wp.grad(branches)(x[i], y[i])
    out[i, 0] = a
    out[i, 1] = b
    out[i, 2] = c
    out[i, 3] = d + f64(n)
    out[i, 4] = e
    out[i, 5] = f


def differences(f, x, y):
    """Both partial derivatives, by central differences extrapolated once."""

    def slope(g):
        one, two = ((g(h) - g(-h)) / (2 * h) for h in (STEP, 2 * STEP))
        return (4 * one - two) / 3

    return slope(lambda h: f(x + h, y)), slope(lambda h: f(x, y + h))


X = np.array([0.3, 0.9, -1.2, 1.6])
Y = np.array([0.7, 0.4, 0.5, -0.8])


def doubles(data):
    return wp.array(np.asarray(data), dtype=f64, requires_grad=True)


def test_values() -> None:
    out = wp.zeros((4, 6), dtype=f64)
    wp.launch(values, 4, [doubles(X), doubles(Y)], [out])
    for k, name in enumerate(("product", "horner", "branches")):
        expected = [
            differences(lambda a, b: as_numpy(name, a, b), *at) for at in zip(X, Y, strict=True)
        ]
        np.testing.assert_allclose(out.numpy()[:, 2 * k : 2 * k + 2], expected, rtol=1e-8)


def checked(kernel, dim, inputs, out, rtol=1e-10):
    """The kernel's own gradient against differences, and forward mode against it."""
    with wp.Tape() as tape:
        wp.launch(kernel, dim, inputs, [out])
    (launch,) = check_tape(tape).launches
    assert {p.verdict for p in launch.pairs} == {"pass"}, launch.pairs
    rng = np.random.default_rng(1)
    arrays = [a for a in inputs if isinstance(a, wp.array) and a.requires_grad]
    w = rng.standard_normal(out.numpy().shape)
    tape.backward(grads={out: wp.array(w, dtype=out.dtype)})
    t = [rng.standard_normal(a.numpy().shape) for a in arrays]
    moved = jvp(
        tape, tangents={a: wp.array(d, dtype=a.dtype) for a, d in zip(arrays, t, strict=True)}
    )
    ahead = (moved[out].numpy() * w).sum()
    back = sum((d * a.grad.numpy()).sum() for a, d in zip(arrays, t, strict=True))
    np.testing.assert_allclose(ahead, back, rtol=rtol)


def test_derivatives_of_derivatives() -> None:
    out = wp.zeros((4, 6), dtype=f64, requires_grad=True)
    checked(values, 4, [doubles(X), doubles(Y)], out)


@wp.kernel
def compound(
    v: wp.array(dtype=wp.vec3d), m: wp.mat33d, w: wp.array(dtype=f64), out: wp.array(dtype=f64)
):
    i = wp.tid()
    dv, dm, dk = wp.grad(quadratic)(v[i], m, 2)
    body = Body()
    body.pos = v[i]
    body.mass = v[i][0]
    body.tag = 1
    body.weights = w
    db, ds = wp.grad(energy)(body, f64(3.0))
    out[0] = dv[0]
    out[1] = dm[0, 1]
    out[2] = f64(dk)
    out[3] = db.pos[2]
    out[4] = db.mass
    out[5] = f64(db.tag)
    out[6] = ds
    out[7] = wp.grad(two_results)(v[i][1])
    out[8] = wp.grad(read)(w, 0, v[i][2])[1]


def test_compound_arguments() -> None:
    p, data = np.array([1.0, 2.0, -1.5]), np.arange(9.0).reshape(3, 3) / 4
    m = wp.mat33d(*data.ravel())
    w = np.array([0.5, 2.5])
    out = doubles(np.zeros(9))
    v = wp.array([p], dtype=wp.vec3d, requires_grad=True)
    checked(compound, 1, [v, m, doubles(w)], out)
    expected = [
        2 * ((data + data.T) @ p)[0], 2 * p[0] * p[1], 0.0,
        2 * p[0] * p[2] * 3 * w[1], p @ p * 3 * w[1], 0.0, p[0] * (p @ p) * w[1],
        2 * p[1] + 1 + 3 * p[1] ** 2, 2 * w[0] * p[2],
    ]  # fmt: skip
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)


@wp.kernel
def builtins(x: wp.array(dtype=f64), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=f64)):
    s = x[0]
    out[0] = wp.grad(wp.sin)(s)
    dy, dx = wp.grad(wp.atan2)(s, x[1])
    out[1] = dy
    out[2] = dx
    db, de = wp.grad(wp.pow)(s, 3.0)
    out[3] = db
    out[4] = de
    out[5] = wp.grad(wp.length)(v[0])[1]
    out[6] = wp.grad(wp.grad(wp.exp))(s)
    out[7] = wp.grad(wp.smooth_normalize)(v[0], f64(0.5))[1]
    out[8] = wp.grad(wp.grad(two_results))(s)
    out[9] = apply(wp.sin, s) + apply(clipped, s)
    out[10] = slope(s)


def test_builtins_and_functions_that_are_passed() -> None:
    s, y = 0.7, -1.3
    v = np.array([1.0, -2.0, 0.5])
    out = doubles(np.zeros(11))
    points = wp.array([v], dtype=wp.vec3d, requires_grad=True)
    checked(builtins, 1, [doubles([s, y]), points], out)
    norm = np.sqrt(v @ v)
    got = out.numpy()
    np.testing.assert_allclose(
        got[[0, 1, 2, 3, 4, 5, 6, 8, 9, 10]],
        [
            np.cos(s), y / (s * s + y * y), -s / (s * s + y * y), 3 * s * s, s**3 * np.log(s),
            v[1] / norm, np.exp(s), 2 + 6 * s, s * np.cos(s) + np.sqrt(s) / 2, 0.5 / np.sqrt(s),
        ],
        rtol=1e-12,
    )  # fmt: skip


@wp.kernel
def in_loops(x: wp.array(dtype=Any), out: wp.array(dtype=Any)):
    i = wp.tid()
    total = x.dtype(0.0)
    for j in range(3):
        d, _ = wp.grad(times)(x[i] + x.dtype(j), 4)
        total += d * total + d
        if total > x.dtype(100.0):
            break
    out[i] = total


@pytest.mark.parametrize("dtype", [wp.float32, f64])
def test_in_loops_of_generic_kernels(dtype) -> None:
    x = wp.array([0.5, 0.9, 1.3], dtype=dtype, requires_grad=True)
    out = wp.zeros(3, dtype=dtype, requires_grad=True)
    checked(in_loops, 3, [x], out, 1e-10 if dtype is f64 else 1e-5)

    def slope(x):
        total, d = x, 1.0
        for _ in range(4):
            if total > x * 10.0:
                break
            total, d = total * x + 1.0, d * x + total
        return d

    expected = []
    for at in (0.5, 0.9, 1.3):
        total = 0.0
        for j in range(3):
            total += slope(at + j) * (total + 1.0)
            if total > 100.0:
                break
        expected.append(total)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5 if dtype is wp.float32 else 1e-12)


@wp.kernel
def mixed(v: wp.array(dtype=wp.vec3d), w: wp.array(dtype=f64), out: wp.array(dtype=f64)):
    body = Body()
    body.pos = v[0]
    body.mass = w[0]
    db = wp.grad(inertia)(body, cube)
    out[0] = db.mass
    out[1] = db.pos[1]
    out[2] = wp.grad(inertia)(body, clipped).mass
    out[3] = inertia(body, cube)


def test_structs_native_functions_and_functions_as_arguments() -> None:
    v, w, out = wp.array([[1.0, 2.0, 3.0]], dtype=wp.vec3d), doubles([4.0]), doubles(np.zeros(4))
    wp.launch(mixed, 1, [v, w], [out])
    assert out.numpy().tolist() == [96.0, 64.0, 0.5, 128.0]


@wp.kernel
def custom(x: wp.array(dtype=f64), out: wp.array(dtype=f64)):
    i = wp.tid()
    out[2 * i] = wp.grad(clipped)(x[i])
    out[2 * i + 1] = by_its_derivative(x[i])


def test_custom_gradients_count_and_can_use_it() -> None:
    x, out = doubles([4.0, 0.0]), doubles(np.zeros(4))
    with wp.Tape() as tape:
        wp.launch(custom, 2, [x], [out])
    tape.backward(grads={out: wp.array([0.0, 1.0, 0.0, 1.0], dtype=f64)})
    assert out.numpy().tolist() == [0.25, 64.0, 0.0, 0.0]  # zero where it would be infinite
    np.testing.assert_allclose(x.grad.numpy(), [8.0 + np.cos(4.0), 1.0])


@wp.kernel
def single(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    a, b = wp.grad(product)(x[i], 2.0)
    y[i] = a + b


def test_single_precision() -> None:
    x = wp.array(X, dtype=float, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(single, 4, [x], [y])
    (launch,) = check_tape(tape).launches
    assert [p.verdict for p in launch.pairs] == ["pass"]
    expected = 4 * X + 2 * np.cos(2 * X) + X * X + X * np.cos(2 * X)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)


@wp.kernel
def native(x: wp.array(dtype=f64), y: wp.array(dtype=f64)):
    i = wp.tid()
    y[i] = wp.grad(cube)(x[i]) + apply(cube, x[i]) + x[i]


def test_native_functions_have_no_second_derivative() -> None:
    x, y = doubles(X), doubles(X)
    with wp.Tape() as tape:
        wp.launch(native, 4, [x], [y])
    np.testing.assert_allclose(y.numpy(), 3 * X**2 + 3 * X**3 + X)
    with pytest.raises(wp.KernelError, match=r"E110.*`adj_cube`, the adj_snippet") as caught:
        tape.backward(grads={y: wp.ones_like(y)})
    assert caught.value.diagnostics[0].span.file == __file__
    (launch,) = check_tape(tape).launches
    assert [p.verdict for p in launch.pairs] == ["fail"] and launch.stops[0][0] == "adj_cube"
    with pytest.raises(wp.KernelError, match="E110"):
        jvp(tape, tangents={x: wp.ones_like(x)})


# ---- mistakes


@wp.func
def stores(a: wp.array(dtype=float), x: float):
    a[0] = x
    return x


@wp.func_native("return x;")
def without_adjoint(x: float) -> float: ...


@wp.func
def counts(n: int):
    return n + 1


@wp.func
def of_arrays(a: wp.array(dtype=float)):
    return a[0]


@wp.kernel
def writing(a: wp.array(dtype=float)):
    a[1] = wp.grad(stores)(a, 1.0)


@wp.kernel
def stopping(a: wp.array(dtype=float)):
    a[1] = wp.grad(without_adjoint)(a[0])


@wp.kernel
def counting(a: wp.array(dtype=float)):
    a[1] = float(wp.grad(counts)(3))


@wp.kernel
def by_arrays(a: wp.array(dtype=float)):
    a[1] = wp.grad(of_arrays)(a)


@wp.kernel
def native_twice(a: wp.array(dtype=f64)):
    a[1] = wp.grad(wp.grad(cube))(a[0])


@wp.kernel
def of_a_value(a: wp.array(dtype=float)):
    a[1] = wp.grad(a[0])(1.0)


@wp.kernel
def with_two(a: wp.array(dtype=float)):
    a[1] = wp.grad(product, product)(1.0)


@wp.kernel
def too_few(a: wp.array(dtype=float)):
    a[1] = wp.grad(product)(1.0)


@pytest.mark.parametrize(
    ("kernel", "code", "text"),
    [
        (writing, "E110", "`stores` writes memory"),
        (stopping, "E110", "`without_adjoint`, which has no adjoint"),
        (counting, "E110", "no result with a derivative"),
        (by_arrays, "E110", "no argument with a derivative"),
        (native_twice, "E110", "`cube`, which has no adjoint that can itself be differentiated"),
        (of_a_value, "E106", "is not a function"),
        (with_two, "E109", "takes one function"),
        (too_few, "E109", "takes 2 arguments"),
    ],
)
def test_refusals(kernel, code, text) -> None:
    with pytest.raises(wp.KernelError) as caught:
        wp.launch(kernel, 1, [wp.zeros(2, dtype=f64 if kernel is native_twice else float)])
    (d,) = caught.value.diagnostics
    assert d.code == code and text in d.message and d.help
    assert d.span is not None and d.span.file == __file__


def test_outside_of_kernels() -> None:
    with pytest.raises(wp.EngineError, match="E106"):
        wp.grad(product)(1.0, 2.0)
    with pytest.raises(wp.EngineError, match="E103"):
        wp.grad(3)
