"""SVD, eigenvalues and QR: factors, both ways of calling, and where values repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.builtins import decompose

RNG = np.random.default_rng(20240711)


def turned(*values: float) -> Any:
    """A matrix with these singular values."""
    u, v = (np.linalg.qr(RNG.normal(size=(3, 3)))[0] for _ in range(2))
    return (u * values) @ v.T


MATRICES = {
    "random": [RNG.normal(size=(3, 3)) for _ in range(40)],
    "graded": [turned(1, 1e-4, 1e-9) for _ in range(20)],
    "rotations": [np.linalg.qr(RNG.normal(size=(3, 3)))[0] for _ in range(20)],
    "near": [np.eye(3) + 1e-6 * RNG.normal(size=(3, 3)) for _ in range(20)],
    "rank 1": [np.outer(*RNG.normal(size=(2, 3))) for _ in range(20)],
    "rank 2": [turned(3, 1, 0) for _ in range(10)],
    "edges": [np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, -1, 0]),
              np.diag([0.0, 0, 1]), np.diag([-2.0, 3, 3]), np.diag([1e-20, 1, 1e20])],
    "tiny": [1e-30 * RNG.normal(size=(3, 3)) for _ in range(10)],
    "huge": [1e30 * RNG.normal(size=(3, 3)) for _ in range(10)],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", list(MATRICES))
def test_factors_multiply_to_the_matrix(kind: str, dtype: Any) -> None:
    """Residuals, orthogonality and order, within a few units in the last place."""
    bound = 12 * np.finfo(dtype).eps

    def orthogonal(q: Any) -> None:
        assert q.dtype == dtype
        wide = q.astype(float)
        assert np.abs(wide.T @ wide - np.eye(len(q))).max() <= bound

    def rebuilt(a: Any, *factors: Any) -> None:
        product = factors[0].astype(float)
        for f in factors[1:]:
            product = product @ (np.diag(f) if f.ndim == 1 else f).astype(float)
        assert np.abs(product - a).max() <= bound * np.abs(a).max()

    for wide in MATRICES[kind]:
        a = wide.astype(dtype)
        size = np.abs(a).max()
        p = decompose.svd3(a)
        u, s, v = p[:9].reshape(3, 3), p[9:12], p[12:].reshape(3, 3)
        orthogonal(u), orthogonal(v), rebuilt(a, u, s, v.T)
        assert np.linalg.det(u) > 0 and np.linalg.det(v) > 0
        assert s[0] >= s[1] * (1 - bound) >= abs(s[2]) * (1 - 2 * bound) >= 0
        expected = np.linalg.svd(a.astype(float))[1]
        np.testing.assert_allclose(np.abs(s), expected, rtol=0, atol=bound * size)

        p = decompose.svd2(a[:2, :2])
        u, s, v = p[:4].reshape(2, 2), p[4:6], p[6:].reshape(2, 2)
        orthogonal(u), orthogonal(v), rebuilt(a[:2, :2], u, s, v.T)
        assert s[0] >= s[1] * (1 - bound) >= 0

        symmetric = (a + a.T) / 2
        p = decompose.eig3(symmetric)
        q, d = p[:9].reshape(3, 3), p[9:]
        orthogonal(q), rebuilt(symmetric, q, d, q.T)
        assert np.linalg.det(q) > 0
        expected = np.linalg.eigvalsh(symmetric.astype(float))
        np.testing.assert_allclose(np.sort(d), expected, rtol=0, atol=bound * size)

        p = decompose.qr3(a)
        q, r = p[:9].reshape(3, 3), p[9:].reshape(3, 3)
        orthogonal(q), rebuilt(a, q, r)
        assert np.linalg.det(q) > 0 and r[0, 0] >= 0 and r[1, 1] >= 0 and not np.tril(r, -1).any()


def test_small_singular_values_keep_their_digits() -> None:
    """Columns of very different length: one-sided rotations do not mix their scales."""
    a = RNG.normal(size=(3, 3)) * [1.0, 1e-8, 1e-16]
    s = decompose.svd3(a)[9:12]
    q, r = np.linalg.qr(a)
    np.testing.assert_allclose(abs(np.prod(s)), abs(np.prod(np.diag(r))), rtol=1e-13)


@pytest.mark.parametrize("name", ["svd2", "svd3", "eig3", "qr3"])
def test_nan_and_inf_spread(name: str) -> None:
    n = int(name[-1])
    for bad in (np.nan, np.inf):
        a = np.eye(n)
        a[0, 1] = bad
        assert np.isnan(getattr(decompose, name)(a)).all()


Matrices = wp.array2d(dtype=wp.mat33)
Vectors = wp.array2d(dtype=wp.vec3)


@wp.kernel
def returned(x: wp.array(dtype=wp.mat33), m: Matrices, v: Vectors):
    i = wp.tid()
    U, s, V = wp.svd3(x[i])
    Q, d = wp.eig3(x[i])
    K, R = wp.qr3(x[i])
    m[i, 0] = U
    m[i, 1] = V
    m[i, 2] = Q
    m[i, 3] = K
    m[i, 4] = R
    v[i, 0] = s
    v[i, 1] = d


@wp.kernel
def set_inside(x: wp.array(dtype=wp.mat33), m: Matrices, v: Vectors):
    i = wp.tid()
    U = wp.mat33()
    V = wp.mat33()
    Q = wp.mat33()
    R = wp.mat33()
    s = wp.vec3()
    for k in range(3):  # the last pass counts
        a = x[i] + float(2 - k) * wp.identity(n=3, dtype=float)
        wp.svd3(a, U, s, V)
    m[i, 0] = U
    m[i, 1] = V
    v[i, 0] = s
    wp.eig3(x[i], Q, s)
    m[i, 2] = Q
    v[i, 1] = s
    wp.qr3(x[i], Q, R)
    m[i, 3] = Q
    m[i, 4] = R


@wp.kernel
def polar(x: wp.array(dtype=wp.mat33d), y: wp.array(dtype=wp.mat33d)):
    i = wp.tid()
    U, s, V = wp.svd3(x[i])
    y[i] = U * wp.transpose(V)


@wp.kernel
def polar_32(x: wp.array(dtype=wp.mat33), y: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    U, s, V = wp.svd3(x[i])
    y[i] = U * wp.transpose(V)


@wp.kernel
def polar_2(x: wp.array(dtype=wp.mat22d), y: wp.array(dtype=wp.mat22d)):
    i = wp.tid()
    U, s, V = wp.svd2(x[i])
    y[i] = U * wp.transpose(V)


@wp.kernel
def rebuilt_svd(x: wp.array(dtype=wp.mat33d), y: wp.array(dtype=wp.mat33d)):
    i = wp.tid()
    U, s, V = wp.svd3(x[i])
    y[i] = U * wp.diag(wp.cw_mul(s, s)) * wp.transpose(V)


@wp.kernel
def squared_eig(x: wp.array(dtype=wp.mat33d), y: wp.array(dtype=wp.mat33d)):
    i = wp.tid()
    Q, d = wp.eig3(x[i])
    y[i] = Q * wp.diag(wp.cw_mul(d, d)) * wp.transpose(Q)


@wp.kernel
def invariants(x: wp.array(dtype=wp.mat33d), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    Q, d = wp.eig3(x[i])
    U, s, V = wp.svd3(x[i])
    y[i] = wp.dot(d, d) + s[0] + s[1] + s[2]


@wp.kernel
def rebuilt_qr(x: wp.array(dtype=wp.mat33d), y: wp.array(dtype=wp.mat33d)):
    i = wp.tid()
    Q, R = wp.qr3(x[i])
    y[i] = Q * R + Q


@wp.kernel
def factors(x: wp.array(dtype=wp.mat33d), y: wp.array2d(dtype=wp.mat33d)):
    i = wp.tid()
    U, s, V = wp.svd3(x[i])
    Q, d = wp.eig3(x[i])
    K, R = wp.qr3(x[i])
    y[i, 0] = U
    y[i, 1] = V
    y[i, 2] = Q
    y[i, 3] = K
    y[i, 4] = R


@wp.kernel
def no_variable(x: wp.array(dtype=wp.mat33), y: wp.array(dtype=wp.mat33), z: Vectors):
    U = wp.mat33()
    wp.svd3(x[0], U, z[0, 0], wp.transpose(y[0]))


def test_both_ways_of_calling() -> None:
    x = wp.array(RNG.normal(size=(4, 3, 3)), dtype=wp.mat33)
    out = []
    for kernel in (returned, set_inside):
        m, v = wp.zeros((4, 5), dtype=wp.mat33), wp.zeros((4, 2), dtype=wp.vec3)
        wp.launch(kernel, dim=4, inputs=[x], outputs=[m, v])
        out.append((m.numpy(), v.numpy()))
    for a, b in zip(*out, strict=True):
        np.testing.assert_array_equal(a, b)
    a, (m, v) = x.numpy(), out[0]
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(m[:, 0] * v[:, 0, None] @ m[:, 1].transpose(0, 2, 1), a, **close)
    np.testing.assert_allclose(m[:, 3] @ m[:, 4], a, **close)


def test_factors_need_variables() -> None:
    with pytest.raises(wp.KernelError, match="is not a variable") as caught:
        x = wp.zeros(1, dtype=wp.mat33)
        wp.launch(no_variable, dim=1, inputs=[x, x, wp.zeros((1, 1), dtype=wp.vec3)])
    assert caught.value.diagnostics[0].code == "E106"


@wp.kernel
def into_elements(x: wp.array(dtype=wp.mat33), y: wp.array(dtype=wp.mat33)):
    wp.qr3(x[0], y[0], y[1])


def test_factors_may_be_elements() -> None:
    x = wp.array(RNG.normal(size=(1, 3, 3)), dtype=wp.mat33)
    y = wp.zeros(2, dtype=wp.mat33)
    wp.launch(into_elements, dim=1, inputs=[x], outputs=[y])
    q, r = y.numpy()
    np.testing.assert_allclose(q @ r, x.numpy()[0], atol=1e-6)
    np.testing.assert_allclose(q @ q.T, np.eye(3), atol=1e-6)


def test_on_the_host() -> None:
    q, r = wp.qr3(wp.mat33d(2.0, 0.0, 0.0, 0.0, 3.0, 1.0, 0.0, 0.0, -4.0))
    np.testing.assert_allclose(np.asarray(q), np.eye(3), atol=1e-15)
    np.testing.assert_allclose(np.asarray(r), [[2, 0, 0], [0, 3, 1], [0, 0, -4]], atol=1e-15)
    vectors, values = wp.mat33d(), wp.vec3d()
    assert wp.eig3(wp.diag(wp.vec3d(2.0, 3.0, 1.0)), vectors, values) is None
    assert vectors == wp.mat33d(np.eye(3)) and values == wp.vec3d(2.0, 3.0, 1.0)


def gradient(kernel: Any, x: Any, g: Any, kind: Any = wp.mat33d, result: Any = None) -> Any:
    """The adjoint of a kernel of one matrix, for cotangent g. result: its type if another."""
    given = wp.array(x[None], dtype=kind, requires_grad=True)
    y = wp.zeros(1, dtype=result or kind, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[given], outputs=[y])
    tape.backward(grads={y: wp.array(np.asarray(g)[None], dtype=result or kind)})
    return given.grad.numpy()[0]


def differences(f: Callable[[Any], Any], x: Any, g: Any) -> Any:
    out = np.empty_like(x)
    h = 1e-6
    for at in np.ndindex(x.shape):
        ends = []
        for step in (h, -h):
            moved = x.copy()
            moved[at] += step
            ends.append(np.sum(f(moved) * g))
        out[at] = (ends[0] - ends[1]) / (2 * h)
    return out


def rotation_of(a: Any) -> Any:
    u, _, vt = np.linalg.svd(a)
    if np.linalg.det(u @ vt) < 0:
        u[:, -1] *= -1
    return u @ vt


ALIKE = {
    "identity": np.eye(3),
    "scaled rotation": 2.5 * rotation_of(RNG.normal(size=(3, 3))),
    "two alike": rotation_of(RNG.normal(size=(3, 3))) @ np.diag([2.0, 2.0, 0.7]),
    "nearly alike": np.eye(3) + 1e-9 * RNG.normal(size=(3, 3)),
    "close": np.eye(3) + 1e-5 * RNG.normal(size=(3, 3)),
    "reflection": turned(3, 2, 0.5) @ np.diag([1.0, 1, -1]),
}


@pytest.mark.parametrize("name", list(ALIKE))
def test_a_rotation_has_its_derivative_where_values_repeat(name: str) -> None:
    x = ALIKE[name]
    g = RNG.normal(size=(3, 3))
    expected = differences(rotation_of, x, g)
    np.testing.assert_allclose(gradient(polar, x, g), expected, rtol=1e-7, atol=1e-8)
    got = gradient(polar_32, x.astype(np.float32), g.astype(np.float32), wp.mat33)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_plane_rotation_too() -> None:
    g = RNG.normal(size=(2, 2))
    for x in (np.eye(2), 3 * rotation_of(RNG.normal(size=(2, 2))), RNG.normal(size=(2, 2))):
        if np.linalg.det(x) > 0:
            expected = differences(rotation_of, x, g)
            np.testing.assert_allclose(
                gradient(polar_2, x, g, wp.mat22d), expected, rtol=1e-7, atol=1e-8
            )


def test_functions_of_the_values_where_they_nearly_repeat() -> None:
    g = RNG.normal(size=(3, 3))
    for gap in (1.0, 1e-2, 1e-4):
        x = turned(2 + 2 * gap, 2 + gap, 1.5)
        if np.linalg.det(x) < 0:
            x[0] *= -1

        def through_svd(a: Any) -> Any:
            u, s, vt = np.linalg.svd(a)
            return u * s**2 @ vt

        got, expected = gradient(rebuilt_svd, x, g), differences(through_svd, x, g)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)
        x = x + x.T
        got = gradient(squared_eig, x, g)
        expected = differences(lambda a: ((a + a.T) / 2) @ ((a + a.T) / 2), x, g)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)


def test_symmetric_functions_of_eigenvalues_are_exact_where_they_repeat() -> None:
    """|A|^2 of the symmetric part, and the sum of singular values, at multiples of 1."""
    got = gradient(invariants, 3 * np.eye(3), 1.0, result=wp.float64)
    np.testing.assert_allclose(got, 7 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    "x",
    [np.zeros((3, 3)), np.eye(3), np.ones((3, 3)), np.diag([1.0, 0, 0]), np.diag([2.0, 2, 0]),
     np.diag([0.0, 0, 1])],
)  # fmt: skip
def test_all_gradients_are_finite(x: Any) -> None:
    given = wp.array(x[None], dtype=wp.mat33d, requires_grad=True)
    y = wp.zeros((1, 5), dtype=wp.mat33d, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(factors, dim=1, inputs=[given], outputs=[y])
    tape.backward(grads={y: wp.array(RNG.normal(size=(1, 5, 3, 3)), dtype=wp.mat33d)})
    assert np.isfinite(given.grad.numpy()).all()


@pytest.mark.parametrize("kernel", [rebuilt_qr])
def test_qr_of_a_singular_matrix(kernel: Any) -> None:
    """Two independent columns are enough: nothing is divided by the last entry of R."""
    x = np.array([[1.0, 2, 3], [0, 1, 1], [2, 1, 3]])  # the last column is the sum of the others
    g = RNG.normal(size=(3, 3))

    def q_of(a: Any) -> Any:
        q, r = np.linalg.qr(a)
        q = q * np.where(np.diag(r) < 0, -1, 1)
        q[:, 2] = np.cross(q[:, 0], q[:, 1])
        return q

    expected = differences(lambda a: a + q_of(a), x, g)
    np.testing.assert_allclose(gradient(kernel, x, g), expected, rtol=1e-6, atol=1e-8)


def test_random_matrices_pass_the_check() -> None:
    x = wp.array(RNG.normal(size=(6, 3, 3)), dtype=wp.mat33d, requires_grad=True)
    y = wp.zeros((6, 5), dtype=wp.mat33d, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(factors, dim=6, inputs=[x], outputs=[y])
    wp.autograd.gradcheck_tape(tape, show_summary=False)
    v, g = RNG.normal(size=(6, 3, 3)), RNG.normal(size=(6, 5, 3, 3))
    moved = np.asarray(wp.autograd.jvp(tape, tangents={x: v})[y])
    tape.backward(grads={y: wp.array(g, dtype=wp.mat33d)})
    np.testing.assert_allclose(np.sum(moved * g), np.sum(x.grad.numpy() * v), rtol=1e-9)


@pytest.mark.parametrize("name", list(ALIKE))
def test_forward_mode_where_values_repeat(name: str) -> None:
    x, v = ALIKE[name], RNG.normal(size=(3, 3))
    given = wp.array(x[None], dtype=wp.mat33d, requires_grad=True)
    y = wp.zeros(1, dtype=wp.mat33d, requires_grad=True)
    moved = wp.autograd.jvp(polar, 1, [given], [y], tangents={given: v[None]})
    h = 1e-6
    expected = (rotation_of(x + h * v) - rotation_of(x - h * v)) / (2 * h)
    # Factors that nearly belong to one value turn fast, and their turning cancels.
    close = 1e-5 if name == "nearly alike" else 1e-8
    np.testing.assert_allclose(np.asarray(moved[y])[0], expected, atol=close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_order_of_eigenvalues(dtype: type) -> None:
    """Diagonal matrices keep their order; others have that of the rotations."""
    cases = [
        (np.diag([1.0, 2.0, 3.0]), [1, 2, 3]),
        (np.diag([2.0, 1.0, 3.0]), [2, 1, 3]),
        ([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]], [3, 1, 5]),
        ([[2.0, 0.0, 1.0], [0.0, 7.0, 0.0], [1.0, 0.0, 2.0]], [1, 7, 3]),
        ([[5.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]], [5, 3, 1]),
    ]
    for a, expected in cases:
        p = decompose.eig3(np.asarray(a, dtype))
        np.testing.assert_allclose(p[9:], expected, rtol=1e-6)
