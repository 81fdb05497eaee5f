"""Solvers of linear systems: NumPy's solution is the oracle, for values and for gradients."""

import numpy as np
import pytest

import engine as wp
from engine.optim import linear
from engine.optim.linear import LinearOperator, aslinearoperator, preconditioner

RNG = np.random.default_rng(5)
SYMMETRIC = [linear.cg, linear.cr]
GENERAL = [linear.bicgstab, linear.gmres]


def system(n, symmetric, dtype=wp.float64):
    a = RNG.standard_normal((n, n))
    a = a @ a.T + n * np.eye(n) if symmetric else a + 2 * n * np.eye(n)
    a *= np.linspace(0.5, 2.0, n)[:, None] * np.linspace(0.5, 2.0, n)[None, :]
    return wp.array(a, dtype=dtype), wp.array(RNG.standard_normal(n), dtype=dtype)


@pytest.mark.parametrize("solve", SYMMETRIC + GENERAL)
@pytest.mark.parametrize("kind", [wp.float32, wp.float64])
@pytest.mark.parametrize("ptype", ["id", "diag", "diag_abs"])
def test_solutions(solve, kind, ptype) -> None:
    A, b = system(20, solve in SYMMETRIC, kind)
    x = wp.zeros_like(b)
    told = []
    M = preconditioner(A, ptype)
    tol = 1e-5 if kind is wp.float32 else 1e-11
    count, residual, needed = solve(A, b, x, tol=tol, M=M, maxiter=200, check_every=2,
                                    callback=lambda *a: told.append(a))  # fmt: skip
    want = np.linalg.solve(A.numpy().astype(float), b.numpy().astype(float))
    np.testing.assert_allclose(x.numpy(), want, rtol=0, atol=20 * tol)
    assert residual <= needed == pytest.approx(tol * np.linalg.norm(b.numpy()))
    assert told[0][0] == 0
    assert told[-1] == (count, residual, needed)
    again, *_ = solve(A, b, x, tol=2 * tol, M=M)
    assert again == 0


@pytest.mark.parametrize("solve", GENERAL)
def test_preconditioners_on_the_left(solve) -> None:
    A, b = system(12, False)
    x = wp.zeros_like(b)
    solve(A, b, x, tol=1e-10, M=preconditioner(A), is_left_preconditioner=True, maxiter=100)
    np.testing.assert_allclose(A.numpy() @ x.numpy(), b.numpy(), atol=1e-8)


@pytest.mark.parametrize("solve", SYMMETRIC)
def test_restarts(solve) -> None:
    A, b = system(15, True)
    x = wp.zeros_like(b)
    told = []
    count, *_ = solve(
        A, b, x, tol=1e-10, restart=4, maxiter=300, callback=lambda k, *_: told.append(k)
    )
    assert count % 4 == 0
    assert all(k % 4 == 0 for k in told)
    np.testing.assert_allclose(A.numpy() @ x.numpy(), b.numpy(), atol=1e-8)
    with pytest.raises(TypeError, match="restart is an integer"):
        solve(A, b, x, restart=1.5)
    with pytest.raises(ValueError, match="restart is positive"):
        solve(A, b, x, restart=0)


@wp.kernel
def springs(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3), z: wp.array(dtype=wp.vec3),
            alpha: float, beta: float):  # fmt: skip
    i = wp.tid()
    v = 3.0 * x[i]
    if i > 0:
        v -= x[i - 1]
    if i + 1 < x.shape[0]:
        v -= x[i + 1]
    z[i] = alpha * v + beta * y[i]


def spring_operator(n, **kw):
    def product(x, y, z, alpha, beta):
        wp.launch(springs, n, inputs=[x, y, z, alpha, beta])

    return LinearOperator((3 * n, 3 * n), wp.vec3, "cpu", product, **kw)


def spring_matrix(n):
    return np.kron(3 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1), np.eye(3))


@pytest.mark.parametrize("solve", SYMMETRIC + GENERAL)
def test_an_operator_of_vectors(solve) -> None:
    op = spring_operator(8)
    b = wp.array(RNG.standard_normal((8, 3)), dtype=wp.vec3)
    x = wp.zeros_like(b)
    solve(op, b, x, tol=1e-6, maxiter=100, check_every=1)
    want = np.linalg.solve(spring_matrix(8), b.numpy().ravel().astype(float))
    np.testing.assert_allclose(x.numpy().ravel(), want, atol=1e-5)
    assert aslinearoperator(op) is op
    assert (op.scalar_type, op.batch_count) == (wp.float32, 1)


@pytest.mark.parametrize("solve", SYMMETRIC + GENERAL)
def test_batches_are_solved_apart(solve) -> None:
    blocks = [
        system(n, solve in SYMMETRIC)[0].numpy() * s for n, s in ((3, 1.0), (5, 1e3), (4, 1e-2))
    ]
    whole = np.zeros((14, 14))
    for block, at in zip(blocks, (0, 3, 8), strict=True):
        whole[at : at + len(block), at : at + len(block)] = block
    whole[12:, 12:] = np.eye(2)
    A = aslinearoperator(wp.array(whole), wp.array([0, 3, 8, 12], dtype=int))
    b, x = wp.array(RNG.standard_normal(14)), wp.zeros(14, dtype=wp.float64)
    x.fill_(0.5)
    _, residual, needed = solve(A, b, x, tol=1e-9, maxiter=400, check_every=1)
    assert residual <= needed
    want = np.linalg.solve(whole[:12, :12], b.numpy()[:12])
    np.testing.assert_allclose(x.numpy()[:12], want, rtol=1e-6)
    assert (x.numpy()[12:] == 0.5).all()


@pytest.mark.parametrize("solve", SYMMETRIC + GENERAL)
def test_gradients_are_those_of_the_solution(solve) -> None:
    A, b = system(6, solve in SYMMETRIC)
    A.requires_grad = b.requires_grad = True
    x = wp.zeros(6, dtype=wp.float64, requires_grad=True)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        scaled = wp.map(wp.mul, b, wp.array(np.arange(1.0, 7.0)))
        solve(A, scaled, x, tol=1e-12, maxiter=300)
        wp.utils.array_inner(x, x, out=loss)
        x.zero_()  # what is written afterwards changes nothing
    tape.backward(loss)
    matrix, scale = A.numpy(), np.arange(1.0, 7.0)
    solution = np.linalg.solve(matrix, b.numpy() * scale)
    slope = np.linalg.solve(matrix.T, 2 * solution)
    np.testing.assert_allclose(b.grad.numpy(), slope * scale, rtol=1e-8)
    np.testing.assert_allclose(A.grad.numpy(), -np.outer(slope, solution), rtol=1e-8, atol=1e-12)


def test_gradients_through_an_operator() -> None:
    b = wp.array(RNG.standard_normal((5, 3)), dtype=wp.vec3, requires_grad=True)
    x = wp.zeros(5, dtype=wp.vec3, requires_grad=True)
    seed = RNG.standard_normal((5, 3)).astype(np.float32)
    with pytest.warns(UserWarning, match="gradients flow to b"), wp.Tape() as tape:
        linear.cg(spring_operator(5), b, x, tol=1e-7, maxiter=100)
    tape.backward(grads={x: seed})
    want = np.linalg.solve(spring_matrix(5), seed.ravel().astype(float))
    np.testing.assert_allclose(b.grad.numpy().ravel(), want, atol=1e-5)
    with wp.Tape(), pytest.raises(wp.LaunchError, match=r"E110.*transpose"):
        linear.gmres(spring_operator(5), b, x)


def test_functors_and_arrays_of_results() -> None:
    A, b = system(5, True)
    x, y = wp.zeros_like(b), wp.zeros_like(b)
    solver = linear.cg(A, b, x, tol=1e-10, run=False)
    assert isinstance(solver, linear.CG)
    solver()
    solver(x=y)
    np.testing.assert_array_equal(x.numpy(), y.numpy())
    count, residual, needed = linear.CR(A, b, wp.zeros_like(b), 1e-10)(check_every=0, maxiter=50)
    assert residual.numpy()[0] <= needed.numpy()[0]
    assert count.numpy()[0] > 0


def test_refusals() -> None:
    A, b = system(4, True)
    x = wp.zeros_like(b)
    for call, match in [
        (
            lambda: linear.cg(A, b, wp.zeros(3, dtype=wp.float64)),
            r"shape \(4, 4\) does not fit",
        ),
        (lambda: linear.cg(A, b, wp.zeros(4, dtype=float)), "one type, got float64 and float32"),
        (lambda: linear.cg([[1.0]], b, x), "or a LinearOperator, got list"),
        (lambda: linear.cg(A, b, [0.0]), "x is an array, got list"),
        (lambda: preconditioner(A, "magic"), "no preconditioner 'magic'"),
        (lambda: preconditioner(spring_operator(3)), "a LinearOperator has no diagonal"),
        (lambda: LinearOperator((1, 1), int, "cpu", print), "is of floats"),
        (lambda: LinearOperator((1, 1), float, "cpu", 3), "matvec is a function"),
    ]:
        with pytest.raises(RuntimeError, match=match):
            call()
    assert not x.numpy().any()


@pytest.mark.parametrize("solve", [linear.cg, linear.cr, linear.bicgstab, linear.gmres])
def test_systems_without_unknowns(solve) -> None:
    A, b, x = (wp.zeros(s, dtype=wp.float64, requires_grad=True) for s in ((0, 0), 0, 0))
    with wp.Tape() as tape:
        steps, residual, _ = solve(A, b, x)
    tape.backward(grads={x: wp.zeros_like(x)})
    assert (steps, residual, b.grad.shape) == (0, 0.0, (0,))


def test_in_a_captured_graph() -> None:
    A, b = system(4, True)
    x = wp.zeros_like(b)
    with wp.ScopedCapture() as capture:
        count, residual, needed = linear.cg(A, b, x, tol=1e-11, maxiter=40, check_every=0)
        with pytest.raises(wp.LaunchError, match="E213"):
            linear.cg(A, b, x)
    for k in (1.0, 2.0):
        b.fill_(k)
        wp.capture_launch(capture.graph)
        np.testing.assert_allclose(x.numpy(), np.linalg.solve(A.numpy(), np.full(4, k)), rtol=1e-9)
    assert count.numpy()[0] > 0
    assert residual.numpy()[0] <= needed.numpy()[0]


@pytest.mark.parametrize("solve", SYMMETRIC + GENERAL)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        *((name, v) for name in ("tol", "atol") for v in (-1e-6, float("nan"), "x", True)),
        *((name, v) for name in ("maxiter", "check_every") for v in (2.5, -1, "x", float("inf"))),
        ("callback", 3),
        ("M", "diag"),
    ],
)
def test_options_that_mean_nothing(solve, option, value) -> None:
    A, b = system(2, True)
    x = wp.full(2, 7.0, dtype=wp.float64)
    with pytest.raises(wp.LaunchError, match=r"E20[26]") as error:
        solve(A, b, x, **{option: value})
    assert option in str(error.value) or option == "M"
    assert error.value.diagnostics[0].span.file == __file__
    assert x.numpy().tolist() == [7.0, 7.0]


def test_a_whole_float_is_a_number_of_steps() -> None:
    A, b = system(6, True)
    x, y = wp.zeros_like(b), wp.zeros_like(b)
    assert linear.cg(A, b, x, maxiter=2.0)[0] == linear.cg(A, b, y, maxiter=2)[0] == 2
    assert x.numpy().tolist() == y.numpy().tolist()
