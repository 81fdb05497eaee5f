"""Kernels as operators of PyTorch: against PyTorch's own operations, and its own checks."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import engine as wp

torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = pytest.mark.filterwarnings(
    "ignore:The .*vmap.*:UserWarning", "ignore:.*torch.jit.*:DeprecationWarning"
)
F64 = torch.float64
# `opcheck` of some versions of PyTorch reads gradients of tensors that are not leaves.
TORCH_ITSELF = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a")


@wp.kernel
def cubes(x: wp.array(dtype=wp.float64), a: wp.float64, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i] * a


@wp.kernel
def many(
    x: wp.array(dtype=wp.vec3d),
    m: wp.array(dtype=wp.mat22d),
    k: wp.array(dtype=int),
    v: wp.vec2d,
    flag: bool,
    n: int,
    y: wp.array(dtype=wp.vec2d),
    e: wp.array(dtype=wp.float64),
    c: wp.array(dtype=int),
):
    i = wp.tid()
    p = x[k[i]]
    q = wp.vec2d(p[0], p[1] * p[2])
    if flag:
        q = q + v
    y[i] = m[i] * q
    wp.atomic_add(e, 0, wp.dot(q, q) * wp.length(q))
    c[i] = k[i] + n


@wp.kernel
def in_place(
    w: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)
):
    i = wp.tid()
    for _ in range(3):
        x[i] = x[i] * x[i] + w[i]
    y[i] = wp.sin(x[i])


@wp.kernel
def halves(x: wp.array(dtype=wp.float16), b: wp.array(dtype=wp.bfloat16),
           y: wp.array(dtype=wp.float16), z: wp.array(dtype=wp.bfloat16)):  # fmt: skip
    i = wp.tid()
    y[i] = x[i] * x[i]
    z[i] = b[i] * wp.bfloat16(3.0)


def doubles(*shape: int, seed: int = 1, scale: float = 1.0) -> Any:
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(size=shape) * scale, dtype=F64, requires_grad=True)


def reference_many(x: Any, m: Any, k: Any) -> tuple[Any, Any]:
    p = x[k.long()]
    q = torch.stack([p[:, 0], p[:, 1] * p[:, 2]], 1) + torch.tensor([0.5, -0.25], dtype=F64)
    return (m @ q.unsqueeze(-1)).squeeze(-1), (q.norm(dim=1) ** 3).sum().reshape(1)


def reference_in_place(w: Any, x: Any) -> tuple[Any, Any]:
    for _ in range(3):
        x = x * x + w
    return x, x.sin()


def same(a: Any, b: Any, rtol: float = 1e-12) -> None:
    torch.testing.assert_close(a, b, rtol=rtol, atol=1e-13)


@pytest.fixture(scope="module")
def cubic() -> Any:
    return wp.torch_kernel(cubes, order=2)


@pytest.fixture(scope="module")
def of_many() -> Any:
    return wp.torch_kernel(many, num_outputs=3, output_dims={"e": 1}, order=2)


@pytest.fixture(scope="module")
def of_in_place() -> Any:
    return wp.torch_kernel(in_place, num_outputs=2, in_out_argnames=["x"], order=2)


K = torch.tensor([0, 2, 4, 4], dtype=torch.int32)


def call_many(op: Any) -> Any:
    return lambda x, m: op(x, m, K, wp.vec2d(0.5, -0.25), True, 7, launch_dims=4)[:2]


# ---- values and gradients


def test_several_outputs_vectors_matrices_and_numbers(of_many: Any) -> None:
    x, m = doubles(5, 3), doubles(4, 2, 2, seed=2)
    y, e, c = of_many(x, m, K, (0.5, -0.25), True, 7, launch_dims=4)
    want = reference_many(x, m, K)
    same((y, e), want)
    assert c.tolist() == [7, 9, 11, 11] and not c.requires_grad
    weight = doubles(4, 2, seed=3)
    for loss, other in (((y * weight).sum(), (want[0] * weight).sum()), (e, want[1])):
        found = torch.autograd.grad(loss.sum(), (x, m), retain_graph=True, allow_unused=True)
        right = torch.autograd.grad(other.sum(), (x, m), retain_graph=True, allow_unused=True)
        same(found[0], right[0])
        same(found[1], torch.zeros_like(m) if right[1] is None else right[1])


@TORCH_ITSELF
def test_all_checks_of_torch_hold_for_vectors_and_matrices(of_many: Any) -> None:
    x, m = doubles(5, 3), doubles(4, 2, 2, seed=2)
    call = call_many(of_many)
    assert torch.autograd.gradcheck(call, (x, m), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(call, (x, m), check_fwd_over_rev=True)
    args = (x, m, K, [0.5, -0.25], True, 7, [4], [4, 1, 4])
    assert set(torch.library.opcheck(of_many.op, args).values()) == {"SUCCESS"}


@TORCH_ITSELF
def test_what_a_kernel_overwrites_is_exact_and_the_argument_stays(of_in_place: Any) -> None:
    w, x = doubles(4, scale=0.3), doubles(4, seed=2, scale=0.5)
    before = x.detach().clone()
    found, right = of_in_place(w, x), reference_in_place(w, x)
    same(found, right)
    assert torch.equal(x, before)
    seeds = [doubles(4, seed=3).detach(), doubles(4, seed=4).detach()]
    same(torch.autograd.grad(found, (w, x), seeds), torch.autograd.grad(right, (w, x), seeds))
    assert torch.autograd.gradcheck(of_in_place, (w, x), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(of_in_place, (w, x), check_fwd_over_rev=True)
    args = (w, x, [4], [4])
    assert set(torch.library.opcheck(of_in_place.op, args).values()) == {"SUCCESS"}


def test_one_tensor_as_two_arguments(of_in_place: Any) -> None:
    x = doubles(4, scale=0.4)
    found = torch.autograd.grad(of_in_place(x, x)[1].sum(), x)
    same(found, torch.autograd.grad(reference_in_place(x, x)[1].sum(), x))


def test_a_third_derivative_is_there_where_it_is_asked_for() -> None:
    op, x = wp.torch_kernel(cubes, order=3), doubles(3)
    y = op(x, 2.0).sum()
    for right in (6 * x**2, 12 * x, torch.full_like(x, 12.0)):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        same(y, right)
        y = y.sum()


def test_half_precision_and_bfloat16() -> None:
    op = wp.torch_kernel(halves, num_outputs=2)
    x = torch.tensor([1.0, -2.5], dtype=torch.float16, requires_grad=True)
    b = torch.tensor([0.5, 4.0], dtype=torch.bfloat16, requires_grad=True)
    y, z = op(x, b)
    same((y, z), (x * x, b * 3))
    (y.float().sum() + z.float().sum()).backward()
    assert x.grad.tolist() == [2.0, -5.0] and b.grad.tolist() == [3.0, 3.0]
    assert x.grad.dtype is torch.float16 and b.grad.dtype is torch.bfloat16


# ---- what tensors there are


def test_layouts_of_tensors_and_cotangents(cubic: Any) -> None:
    base = doubles(4, 6)
    for x in (base[:, 2], base[1, ::2], base.flip(0)[:, 0], base[0, :1].expand(5)):
        (found,) = torch.autograd.grad(cubic(x, 2.0).sum(), base)  # a cotangent of stride 0
        (right,) = torch.autograd.grad((2 * x**3).sum(), base)
        same(found, right)
    x = base[:, 2]
    seeds = doubles(4, 3, seed=2).detach()[:, 1]
    same(torch.autograd.grad(cubic(x, 2.0), base, seeds),
         torch.autograd.grad(2 * x**3, base, seeds))  # fmt: skip


def test_components_that_do_not_lie_in_one_piece(of_many: Any) -> None:
    x, m = doubles(3, 5), doubles(2, 2, 4, seed=2)
    turned = x.t(), m.permute(2, 1, 0)
    found, right = call_many(of_many)(*turned), reference_many(*turned, K)
    same(found, right)
    same(torch.autograd.grad(found[0].sum() + found[1].sum(), (x, m)),
         torch.autograd.grad(right[0].sum() + right[1].sum(), (x, m)))  # fmt: skip


def test_the_shape_of_outputs(of_many: Any, cubic: Any) -> None:
    x = doubles(3)
    assert cubic(x, 2.0, launch_dims=(3, 1)).shape == (3,)  # that of the first array
    assert cubic(x, 2.0, output_dims=5).tolist()[3:] == [0.0, 0.0]  # what nobody writes
    shapes = {"y": (4, 2), "e": 1, "c": 4}  # with the axes of components, and without
    m = doubles(4, 2, 2, seed=2)
    y, _, _ = of_many(doubles(5, 3), m, K, (0.5, -0.25), True, 7, launch_dims=4, output_dims=shapes)
    assert y.shape == (4, 2)


def test_nothing(cubic: Any) -> None:
    x = doubles(0)
    y = cubic(x, 2.0)
    y.sum().backward()
    assert y.shape == (0,) and x.grad.shape == (0,)


def test_tensors_that_need_no_gradient(cubic: Any, of_in_place: Any) -> None:
    x = doubles(3)
    assert not cubic(x.detach(), 1.0).requires_grad
    with torch.no_grad():
        assert not cubic(x, 1.0).requires_grad
    with torch.inference_mode():
        assert not cubic(x, 1.0).requires_grad
    w = x.detach()
    (found,) = torch.autograd.grad(of_in_place(w, x)[0].sum(), x)
    same(found, torch.autograd.grad(reference_in_place(w, x)[0].sum(), x)[0])


# ---- the ways in which PyTorch differentiates


def test_transforms_of_functions(cubic: Any, of_in_place: Any) -> None:
    x = doubles(3).detach()
    f = lambda x: cubic(x, 2.0)  # noqa: E731
    func = torch.func
    same(func.grad(lambda x: f(x).sum())(x), 6 * x**2)
    same(func.vjp(f, x)[1](x)[0], 6 * x**3)
    same(func.jvp(f, (x,), (x,))[1], 6 * x**3)
    same(func.jacrev(f)(x), torch.diag(6 * x**2))
    same(func.jacfwd(f)(x), torch.diag(6 * x**2))
    same(func.hessian(lambda x: f(x).sum())(x), torch.diag(12 * x))
    batch = torch.stack([x, 2 * x])
    same(func.vmap(f)(batch), 2 * batch**3)
    same(func.vmap(f, in_dims=1, out_dims=1)(batch.t()), 2 * batch.t() ** 3)
    same(func.vmap(func.grad(lambda x: f(x).sum()))(batch), 6 * batch**2)
    same(func.vmap(of_in_place, in_dims=(None, 0))(x, batch),
         func.vmap(reference_in_place, in_dims=(None, 0))(x, batch))  # fmt: skip


def test_checkpoints_hooks_and_repeated_backward(cubic: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    x = doubles(3)
    kept = checkpoint(lambda x: cubic(x, 2.0), x, use_reentrant=False)
    same(torch.autograd.grad(kept.sum(), x)[0], 6 * x**2)
    handle = x.register_hook(lambda g: 2 * g)
    y = cubic(x, 2.0)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    handle.remove()
    same(x.grad, 24 * x.detach() ** 2)


def test_threads(cubic: Any) -> None:
    wrong: list[int] = []

    def work(k: int) -> None:
        x = torch.full((1000,), float(k), dtype=F64, requires_grad=True)
        for _ in range(5):
            cubic(x, 1.0).sum().backward()
        if not torch.equal(x.grad, torch.full_like(x, 15.0 * k * k)):
            wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_it_stays_off_an_active_tape(cubic: Any) -> None:
    with wp.Tape() as tape:
        cubic(doubles(3), 1.0).sum().backward()
    assert tape.records == []


# ---- names


def test_same_code_is_one_operator_and_other_code_another() -> None:
    def made(factor: float) -> Any:
        @wp.kernel
        def scaled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = x[i] * factor

        return wp.torch_kernel(scaled)

    two, three, again = made(2.0), made(3.0), made(2.0)
    assert two.op is again.op and two.op is not three.op
    x = torch.ones(2)
    assert two(x).tolist() == [2.0, 2.0] and three(x).tolist() == [3.0, 3.0]
    assert made(2.0).op.name().startswith("engine::")


# ---- what is refused, and where


@wp.kernel
def writes_input(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = y[i]
    y[i] = 1.0


@wp.kernel
def generic(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i]


@wp.struct
class Pair:
    a: float


@wp.kernel
def of_struct(p: Pair, y: wp.array(dtype=float)):
    y[0] = p.a


MAKING = [
    (lambda: wp.torch_kernel(print), "E202", "takes a kernel"),
    (lambda: wp.torch_kernel(generic), "E202", "overload(kernel, [types])"),
    (lambda: wp.torch_kernel(of_struct), "E202", "parameters of their own"),
    (lambda: wp.torch_kernel(writes_input), "E202", "in_out_argnames=['x']"),
    (lambda: wp.torch_kernel(writes_input, num_outputs=3), "E201", "num_outputs=3"),
    (lambda: wp.torch_kernel(writes_input, num_outputs=0), "E201", "num_outputs=0"),
    (lambda: wp.torch_kernel(cubes, in_out_argnames=["a"]), "E202", "no array parameter 'a'"),
    (lambda: wp.torch_kernel(cubes, order=0), "E202", "order=0"),
    (lambda: wp.torch_kernel(cubes, output_dims={"q": 1}), "E202", "no output 'q'"),
    (lambda: wp.torch_kernel(cubes, output_dims=(2, 2)), "E203", "1 dimensions"),
    (lambda: wp.torch_kernel(cubes, launch_dims=-1), "E205", "non-negative"),
]
CALLS = [
    (lambda op, x: op(x), "E201", "expected 2 (x, a), got 1"),
    (lambda op, x: op(x, 1.0, x), "E201", "outputs are made, and not passed"),
    (lambda op, x: op(a=1.0), "E201", "it lacks 'x'"),
    (lambda op, x: op(x, b=1.0), "E201", "it has no 'b'"),
    (lambda op, x: op(x, 1.0, a=1.0), "E201", "'a' is given twice"),
    (lambda op, x: op(x, a=1.0, y=x), "E201", "outputs are made, and not passed"),
    (lambda op, x: op(x.numpy(), 1.0), "E202", "pass a tensor"),
    (lambda op, x: op(x.float(), 1.0), "E202", ".to(torch.float64)"),
    (lambda op, x: op(x.to_sparse(), 1.0), "E202", ".to_dense()"),
    (lambda op, x: op(x.reshape(2, 1), 1.0), "E203", "shape (2, 1)"),
    (lambda op, x: op(x, x[0]), "E202", "'a' expects float64"),
    (lambda op, x: op(x, 1.0, launch_dims="q"), "E205", "must be integers"),
]


@pytest.mark.parametrize(("make", "code", "text"), MAKING)
def test_kernels_that_make_no_operator(make: Any, code: str, text: str) -> None:
    with pytest.raises(wp.LaunchError) as raised:
        make()
    told(raised.value, code, text)


@pytest.mark.parametrize(("call", "code", "text"), CALLS)
def test_calls_that_do_not_fit(cubic: Any, call: Any, code: str, text: str) -> None:
    with pytest.raises(wp.LaunchError) as raised:
        call(cubic, torch.ones(2, dtype=F64))
    told(raised.value, code, text)


def test_a_second_derivative_that_nobody_asked_for() -> None:
    op, x = wp.torch_kernel(cubes), doubles(2)
    (g,) = torch.autograd.grad(op(x, 1.0).sum(), x, create_graph=True)
    with pytest.raises(wp.TapeError) as raised:
        g.sum().backward()
    told(raised.value, "E401", "order=2")


def test_a_kernel_without_backward_says_so() -> None:
    @wp.kernel(enable_backward=False)
    def still(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i]

    y = wp.torch_kernel(still)(torch.ones(2, requires_grad=True))
    with pytest.raises(wp.TapeError) as raised:
        y.sum().backward()
    told(raised.value, "E401", "enable_backward is False")


def test_a_name_that_other_code_has() -> None:
    wp.torch_kernel(cubes, name="engine_tests::mine")
    with pytest.raises(wp.LaunchError) as raised:
        wp.torch_kernel(in_place, num_outputs=2, in_out_argnames="x", name="engine_tests::mine")
    told(raised.value, "E202", "belongs to the operator of another kernel")


def test_an_assertion_in_a_kernel_arrives_at_the_call() -> None:
    @wp.kernel(module="unique", module_options={"mode": "debug"})
    def strict(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        assert x[i] > 0.0
        y[i] = x[i]

    op = wp.torch_kernel(strict)
    assert op(torch.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(wp.LaunchError) as raised:
        op(-torch.ones(2))
    told(raised.value, "E210", "assert")


def told(error: Any, code: str, text: str) -> None:
    """It has a code, says what is wrong, and points to this file."""
    (first, *_) = error.diagnostics
    shown = str(error)
    assert first.code == code and text in shown, shown
    assert __file__ in shown, shown


# ---- compiled graphs


def test_arguments_by_name(cubic: Any) -> None:
    x = doubles(4)
    for y in (cubic(x, a=2.0), cubic(x=x, a=2.0), cubic(a=2.0, x=x, launch_dims=4)):
        same(y, cubic(x, 2.0))
        same(torch.autograd.grad(y.sum(), x), (6 * x.detach() ** 2,))


def test_forward_and_backward_in_one_compiled_graph(of_in_place: Any) -> None:
    def by_name(w: Any, x: Any) -> Any:
        return of_in_place(x=x, w=w)

    def loss(f: Any, w: Any, x: Any) -> Any:
        return (f(2 * w, x)[1] * 3).sum()

    w, x = doubles(4, scale=0.3), doubles(4, seed=2, scale=0.5)
    compiled = torch.compile(lambda w, x: loss(by_name, w, x), fullgraph=True)
    value = compiled(w, x)
    same(value, loss(of_in_place, w, x))
    same(value, loss(reference_in_place, w, x))
    same(torch.autograd.grad(value, (w, x)),
         torch.autograd.grad(loss(reference_in_place, w, x), (w, x)))  # fmt: skip


@pytest.mark.parametrize("nth", [0, 1])
@pytest.mark.parametrize("outer", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("inner", ["jacfwd", "jacrev"])
def test_second_derivatives_of_one_input_of_several(nth: int, outer: str, inner: str) -> None:
    """Inputs that no gradient is asked of have no tangents, either."""
    op = wp.torch_kernel(in_place, num_outputs=2, in_out_argnames=["x"], order=2)
    given = [doubles(3, seed=k, scale=0.5).detach() for k in (1, 2)]

    def loss(f: Any, t: Any) -> Any:
        args = [t if k == nth else x for k, x in enumerate(given)]
        y, z = f(*args)
        return (y * z).sum()

    def twice(f: Any) -> Any:
        first = getattr(torch.func, inner)(lambda t: loss(f, t))
        return getattr(torch.func, outer)(first)(given[nth])

    torch.testing.assert_close(twice(op), twice(reference_in_place))


@wp.func
def positive(x: wp.float64):
    return x * x


@wp.func_grad(positive)
def adj_positive(x: wp.float64, adj_ret: wp.float64):
    wp.adjoint[x] += wp.float64(2.0) * x * wp.max(adj_ret, wp.float64(0.0))


@wp.kernel
def positives(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = positive(x[i])


@pytest.mark.cold("a warning that is given once")
def test_forward_mode_of_a_gradient_that_is_not_linear_is_told_of() -> None:
    op, x = wp.torch_kernel(positives, order=2), doubles(3)
    (back,) = torch.autograd.grad(-op(x).sum(), x)
    assert not back.any()  # nothing is said of this
    with pytest.warns(UserWarning, match="gradient `adj_positive` of `positive`"):
        _, moved = torch.func.jvp(op, (x.detach(),), (x.detach(),))
    same(moved, 2 * x.detach() ** 2)
    torch.func.jvp(op, (x.detach(),), (x.detach(),))  # once
