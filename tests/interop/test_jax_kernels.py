"""`jax_kernel`: values and derivatives of kernels inside JAX, beside the same functions in jnp."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import LaunchError, TapeError

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy
RNG = np.random.default_rng(11)


@wp.kernel
def curve(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * s * x[i]


def curve_jnp(x, s):
    return jnp.sin(x) * s * x


@wp.kernel
def matmul(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    s = float(0.0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@wp.kernel
def sincos(x: wp.array(dtype=float), n: wp.array(dtype=int), s: wp.array(dtype=float),
           c: wp.array(dtype=float), m: wp.array(dtype=int)):  # fmt: skip
    i = wp.tid()
    s[i] = wp.sin(x[i]) * float(n[i])
    c[i] = wp.cos(x[i])
    m[i] = n[i] + 1


@wp.kernel
def gather(table: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = table[index[i]] * table[index[i]]


@wp.kernel
def total(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(y, i, x[i, j] * x[i, j])


@wp.kernel
def decay(z: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    for _k in range(3):
        z[i] = wp.exp(-z[i]) * x[i] + z[i] * z[i]
    y[i] = z[i] * x[i]


def decay_jnp(z, x):
    for _ in range(3):
        z = jnp.exp(-z) * x + z * z
    return z, z * x


@wp.kernel
def rotate(p: wp.array(dtype=wp.vec3), m: wp.array(dtype=wp.mat33), axis: wp.vec3,
           q: wp.array(dtype=wp.vec3)):  # fmt: skip
    i = wp.tid()
    q[i] = m[i] * p[i] + wp.cross(axis, p[i])


@wp.kernel
def identity3(d: wp.array(dtype=wp.mat33)):
    d[wp.tid()] = wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0)


@wp.kernel
def thrice(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] + x[i] + x[i]


@wp.kernel
def clash(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[0] = x[wp.tid()]


@wp.struct
class Line:
    slope: float
    offset: wp.vec2


@wp.kernel
def on_line(x: wp.array(dtype=float), line: Line, y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i] = line.offset + wp.vec2(x[i], x[i] * line.slope)


def f32(*shape):
    return jnp.asarray(RNG.uniform(0.2, 1.4, shape), jnp.float32)


def close(a, b, tol=2e-5):
    a, b = jax.tree.leaves(a), jax.tree.leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def kernel(k, **settings):
    return wp.jax_kernel(k, enable_backward=True, **settings)


# ---- values


def test_it_returns_a_list_alone_and_in_jit():
    x = f32(7)
    f = wp.jax_kernel(curve)
    assert isinstance(f(x, 2.0), list)
    close(f(x, 2.0), [curve_jnp(x, 2.0)])
    close(jax.jit(lambda x: f(x, -1.5)[0])(x), curve_jnp(x, -1.5))
    close(jax.jit(f, static_argnums=1)(x, 0.5), [curve_jnp(x, 0.5)])
    assert wp.jax_kernel(curve) is f


def test_grid_of_a_call_and_of_the_function():
    a, b = f32(3, 2), f32(2, 5)
    f = wp.jax_kernel(matmul)
    close(f(a, b, launch_dims=(3, 5))[0], a @ b)
    close(wp.jax_kernel(matmul, launch_dims=[3, 5])(a, b)[0], a @ b)
    close(f(a, b, launch_dims=(2, 2), output_dims=(3, 5))[0][:2, :2], (a @ b)[:2, :2])
    # What no thread writes is zero.
    assert not f(a, b, launch_dims=(2, 2), output_dims=(3, 5))[0][2].any()


def test_output_dimensions_in_either_convention():
    d = wp.jax_kernel(identity3)
    expected = jnp.broadcast_to(jnp.diag(jnp.asarray([1.0, 2.0, 3.0])), (4, 3, 3))
    close(d(launch_dims=4)[0], expected)
    close(d(launch_dims=4, output_dims=4)[0], expected)
    close(d(launch_dims=(4,), output_dims={"d": (4, 3, 3)})[0], expected)
    close(jax.jit(lambda: d(launch_dims=4, output_dims=[4])[0])(), expected)
    f = wp.jax_kernel(sincos, num_outputs=3)
    x, n = f32(4), jnp.arange(4)
    s, c, m = f(x, n, output_dims={"s": 5, "c": 4, "m": 6})
    assert (s.shape, c.shape, m.shape) == ((5,), (4,), (6,))


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                  "float16", "bfloat16", "float32"])  # fmt: skip
def test_dtypes(name):
    x = jnp.asarray([0, 1, 1, 0], name)
    if name == "bool":
        f = wp.jax_kernel(wp.overload(thrice, [wp.array(dtype=wp.int32)] * 2))
        with pytest.raises(LaunchError, match="E202"):
            f(x)
        return
    (y,) = wp.jax_kernel(thrice)(x)
    assert y.dtype == x.dtype
    close(y, x + x + x)


def test_dtypes_of_64_bits():
    with jax.enable_x64(True):
        for name in ("int64", "uint64", "float64"):
            x = jnp.asarray([0, 1, 2], name)
            (y,) = jax.jit(wp.jax_kernel(thrice))(x)
            assert y.dtype == x.dtype
            close(y, 3 * x)
    with pytest.raises(LaunchError, match="jax_enable_x64"):
        wp.jax_kernel(wp.overload(thrice, [wp.array(dtype=wp.float64)] * 2))(f32(3))


def test_vectors_of_a_generic_kernel():
    x = f32(4, 3)
    close(wp.jax_kernel(wp.overload(thrice, [wp.array(dtype=wp.vec3)] * 2))(x)[0], 3 * x)
    close(wp.jax_kernel(thrice)(x)[0], 3 * x)


def test_no_elements():
    (y,) = kernel(curve)(jnp.zeros(0, jnp.float32), 1.0)
    assert y.shape == (0,)
    g = jax.grad(lambda x: kernel(curve)(x, 1.0)[0].sum())(jnp.zeros(0, jnp.float32))
    assert g.shape == (0,)
    (y,) = wp.jax_kernel(matmul)(jnp.zeros((2, 0)), jnp.zeros((0, 3)), launch_dims=(2, 3))
    assert y.shape == (2, 3) and not y.any()


def test_static_structs_and_vectors():
    line = Line()
    line.slope, line.offset = 2.0, wp.vec2(1.0, -1.0)
    x = f32(5)
    f = kernel(on_line)
    expected = jnp.stack([1 + x, 2 * x - 1], -1)
    close(f(x, line)[0], expected)
    line.slope = 3.0  # another value is another program
    close(f(x, line)[0][:, 1], 3 * x - 1)
    p, m = f32(4, 3), f32(4, 3, 3)
    for axis in (wp.vec3(1.0, 2.0, 3.0), np.asarray([1.0, 2.0, 3.0], np.float32), (1.0, 2.0, 3.0)):
        (q,) = kernel(rotate)(p, m, axis)
        close(q, jnp.einsum("nij,nj->ni", m, p) + jnp.cross(jnp.asarray([1.0, 2.0, 3.0]), p))


def test_inputs_that_are_outputs_are_not_changed():
    z, x = f32(6), f32(6)
    before = np.array(z)
    f = kernel(decay, num_outputs=2, in_out_argnames=["z"])
    close(f(z, x), list(decay_jnp(z, x)))
    close(jax.jit(f)(z, x), list(decay_jnp(z, x)))
    assert np.array_equal(before, np.asarray(z))


# ---- derivatives


def check(f, reference, *args, order=2):
    """All first derivatives, with random directions; of second order both ways and mixed."""
    tangents = tuple(f32(*a.shape) for a in args)
    cotangents = jax.tree.map(lambda o: f32(*o.shape), f(*args))

    def first(g):
        values = jax.jvp(g, args, tangents)
        return values, jax.vjp(g, *args)[1](cotangents), jax.linearize(g, *args)[1](*tangents)

    close(first(f), jax.jit(first, static_argnums=0)(reference))
    close(jax.jit(first, static_argnums=0)(f), first(reference))
    if order < 2:
        return

    def loss(g):
        def value(*args):
            parts = zip(jax.tree.leaves(g(*args)), jax.tree.leaves(cotangents), strict=True)
            return sum((jnp.tanh(o) * c).sum() for o, c in parts)

        return value

    every = tuple(range(len(args)))

    @jax.jit
    def seconds(*args):
        modes = (jax.jacfwd, jax.jacrev)
        made = [a(b(loss(f), every), every)(*args) for a in modes for b in modes]
        return made, [jax.hessian(loss(reference), every)(*args)] * 4

    close(*seconds(*args), 2e-4)


def test_derivatives_of_one_kernel():
    f = kernel(curve)
    check(lambda x: f(x, 2.0)[0], lambda x: curve_jnp(x, 2.0), f32(4))


def test_derivatives_by_a_scalar_that_jax_computes():
    f = kernel(curve)
    check(lambda x, s: f(x, s * s)[0], lambda x, s: curve_jnp(x, s * s), f32(4), f32())


def test_derivatives_by_a_vector_that_jax_computes():
    f = kernel(rotate)

    def reference(p, m, a):
        return jnp.einsum("nij,nj->ni", m, p) + jnp.cross(a, p)

    check(lambda *args: f(*args)[0], reference, f32(2, 3), f32(2, 3, 3), f32(3), order=1)


def test_derivatives_of_a_product_with_a_loop():
    f = kernel(matmul, launch_dims=(2, 2))
    check(lambda a, b: f(a, b)[0], lambda a, b: a @ b, f32(2, 3), f32(3, 2), order=1)


def test_derivatives_of_a_kernel_that_overwrites():
    f = kernel(decay, num_outputs=2, in_out_argnames="z")
    check(lambda z, x: tuple(f(z, x)), decay_jnp, f32(3), f32(3))


def test_derivatives_of_sums_of_threads():
    f = kernel(total, launch_dims=(2, 3), output_dims=2)
    check(lambda x: f(x)[0], lambda x: (x * x).sum(1), f32(2, 3))


def test_third_order():
    f = kernel(curve)
    x = jnp.float32(0.7)

    def one(g):
        return lambda x: g(x[None])[0]

    g, r = one(lambda x: f(x, 1.5)[0]), one(lambda x: curve_jnp(x, 1.5))
    expected = jax.grad(jax.grad(jax.grad(r)))(x)
    close(jax.grad(jax.grad(jax.grad(g)))(x), expected, 1e-4)
    close(jax.jacfwd(jax.grad(jax.jacfwd(g)))(x), expected, 1e-4)


def test_integers_and_outputs_that_are_not_used():
    f = kernel(sincos, num_outputs=3)
    x, n = f32(5), jnp.arange(5)
    s, c, m = f(x, n)
    close((s, c, m), (jnp.sin(x) * n, jnp.cos(x), n + 1))
    close(jax.grad(lambda x: f(x, n)[1].sum())(x), -jnp.sin(x))
    assert not jax.grad(lambda x: f(x, n)[2].sum().astype(jnp.float32) * 1.0)(x).any()
    _, pull = jax.vjp(lambda x, n: f(x, n)[0], x, n)
    to_x, to_n = pull(jnp.ones(5))
    close(to_x, jnp.cos(x) * n)
    assert to_n.dtype == jax.dtypes.float0
    out, tangents = jax.jvp(lambda x: f(x, n), (x,), (jnp.ones(5),))
    assert tangents[2].dtype == jax.dtypes.float0
    close(tangents[1], -jnp.sin(x))


def test_only_what_is_asked_for_is_differentiated():
    f = kernel(gather, launch_dims=6)
    table, index = f32(4), jnp.asarray([0, 1, 1, 3, 3, 3])
    expected = jax.grad(lambda t: (t[index] ** 2).sum())(table)
    close(jax.grad(lambda t: f(t, index)[0].sum())(table), expected)


def test_half_precision():
    f = kernel(wp.overload(thrice, [wp.array(dtype=wp.float16)] * 2))
    x = jnp.asarray([0.5, 1.0], jnp.float16)
    g = jax.grad(lambda x: f(x)[0].sum())(x)
    assert g.dtype == jnp.float16
    close(g, jnp.full(2, 3, jnp.float16))


def test_inside_of_control_flow():
    f = kernel(curve)
    x = f32(4)

    def chain(step):
        def run(x):
            y, _ = jax.lax.scan(lambda c, _: (step(c), None), x, None, length=3)
            y = jax.lax.cond(y.sum() > 0, step, lambda y: y, y)
            return jax.checkpoint(step)(y).sum()

        return run

    close(jax.jit(jax.grad(chain(lambda x: f(x, 1.5)[0])))(x),
          jax.grad(chain(lambda x: curve_jnp(x, 1.5)))(x))  # fmt: skip

    def loop(step):
        def body(c):
            return (c[0] + 1, step(c[1]))

        return lambda x: jax.lax.while_loop(lambda c: c[0] < 3, body, (0, x))[1]

    close(jax.jvp(loop(lambda x: f(x, 1.5)[0]), (x,), (x,)),
          jax.jvp(loop(lambda x: curve_jnp(x, 1.5)), (x,), (x,)))  # fmt: skip


def test_without_enable_backward_it_has_no_derivative():
    f = wp.jax_kernel(curve)
    with pytest.raises(LaunchError, match="enable_backward=True"):
        jax.grad(lambda x: f(x, 1.0)[0].sum())(f32(3))
    with pytest.raises(LaunchError, match="E401"):
        jax.jvp(lambda x: f(x, 1.0)[0], (f32(3),), (f32(3),))


def test_a_gradient_that_no_order_of_threads_has():
    f = kernel(clash, output_dims=1)
    with pytest.raises(TapeError, match="E407"):
        jax.grad(lambda x: f(x)[0].sum())(f32(3))


# ---- batches

METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]


@pytest.mark.parametrize("method", METHODS)
def test_vmap(method):
    f = kernel(matmul, launch_dims=(3, 4), vmap_method=method)

    def g(a, b):
        return f(a, b)[0]

    a, b = f32(5, 3, 2), f32(5, 2, 4)
    close(jax.vmap(g)(a, b), a @ b)
    close(jax.vmap(g, (0, None))(a, b[0]), a @ b[0])
    close(jax.vmap(g, (None, 0))(a[0], b), a[0] @ b)
    close(jax.vmap(g, (2, 0), 1)(jnp.moveaxis(a, 0, 2), b), jnp.moveaxis(a @ b, 0, 1))

    def twice(h):
        return jax.vmap(jax.vmap(h, (None, 0)), (0, None))

    close(twice(g)(a, b), jnp.einsum("xij,yjk->xyik", a, b))


# A batch of six is one launch, one of three a launch for each.
@pytest.mark.parametrize("method, size", [*((m, 3) for m in METHODS), ("broadcast_all", 6)])
def test_derivatives_of_batches_and_batches_of_derivatives(method, size):
    f = kernel(decay, num_outputs=2, in_out_argnames=["z"], vmap_method=method)
    g, r = lambda z, x: tuple(f(z, x)), decay_jnp
    z, x = f32(size, 4), f32(4)

    def both(h):
        def loss(z, x):
            return sum((o * o).sum() for o in jax.vmap(h, (0, None))(z, x))

        def one(z, x):
            return sum((o * o).sum() for o in h(z, x))

        return [
            jax.vmap(h, (0, None))(z, x),
            jax.vmap(h, (None, 0))(x, z),
            jax.grad(loss, (0, 1))(z, x),
            jax.vmap(jax.grad(one, (0, 1)), (0, None))(z, x),
            jax.vmap(jax.grad(one, (0, 1)), (None, 0))(x, z),
            jax.jvp(loss, (z, x), (z, x)),
            jax.jacrev(one)(z[0], x),
            jax.hessian(one, (0, 1))(z[0], x),
            jax.grad(lambda x: jax.vmap(jax.grad(one, 1), (0, None))(z, x).sum())(x),
        ]

    close(jax.jit(lambda: both(g))(), jax.jit(lambda: both(r))(), 1e-3)


def test_a_batch_does_not_reach_into_its_neighbours():
    f = kernel(gather, vmap_method="broadcast_all")
    table, index = f32(7, 4), jnp.asarray(RNG.integers(0, 4, (7, 5)), jnp.int32)
    g, r = lambda t, i: f(t, i, launch_dims=5)[0], lambda t, i: t[i] ** 2
    close(jax.vmap(g)(table, index), jax.vmap(r)(table, index))
    close(jax.vmap(g, (None, 0))(table[0], index), jax.vmap(r, (None, 0))(table[0], index))


@wp.kernel
def checked(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.expect_eq(x.shape[0], 2)
    y[i] = x[i] * float(x.shape[0])


def test_a_kernel_that_has_no_form_for_batches():
    x = f32(6, 2)
    close(jax.vmap(lambda x: wp.jax_kernel(checked)(x)[0])(x), 2 * x)


def test_vmap_without_a_method():
    for method in (None, "legacy_vectorized"):
        f = wp.jax_kernel(curve, vmap_method=method)
        with pytest.raises(NotImplementedError, match="vmap_method"):
            jax.vmap(lambda x: f(x, 1.0)[0])(f32(2, 3))
    f = wp.jax_kernel(curve, vmap_method=None)
    (y,) = jax.vmap(lambda x: f(x, 1.0, vmap_method="sequential"))(f32(2, 3))
    assert y.shape == (2, 3)
    with pytest.raises(ValueError, match="vmap_method"):
        wp.jax_kernel(curve, vmap_method="all_at_once")


@wp.func
def positive(x: float):
    return x * x


@wp.func_grad(positive)
def adj_positive(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * wp.max(adj_ret, 0.0)


@wp.kernel
def positives(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = positive(x[i])


@pytest.mark.cold("a warning that is given once")
def test_forward_mode_of_a_gradient_that_is_not_linear_is_told_of():
    f, x = wp.jax_kernel(positives, enable_backward=True), f32(3)
    assert not np.any(jax.jit(jax.grad(lambda x: -f(x)[0].sum()))(x))  # nothing is said of this
    with pytest.warns(UserWarning, match="gradient `adj_positive` of `positive`") as told:
        _, moved = jax.jvp(lambda x: f(x)[0], (x,), (x,))
    assert len(told) == 1
    close(moved, 2 * x * x)
