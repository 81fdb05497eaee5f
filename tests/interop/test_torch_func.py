"""Operators under `torch.func`, forward mode, compiled graphs, and all of these at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import engine as wp

torch = pytest.importorskip("torch", reason="torch is not installed")
fwd = pytest.importorskip("torch.autograd.forward_ad", reason="torch is not installed")

pytestmark = [
    pytest.mark.filterwarnings("ignore:The .*vmap.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*lru_cache.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not:UserWarning"),
]
F64 = torch.float64


@wp.kernel
def cubes(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


@wp.kernel
def two(
    x: wp.array(dtype=wp.float64), k: wp.array(dtype=int),
    y: wp.array(dtype=wp.float64), n: wp.array(dtype=int),
):  # fmt: skip
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.float64(k[i])
    n[i] = k[i] + 1


def dual(f: Any, x: Any) -> Any:
    with fwd.dual_level():
        return fwd.unpack_dual(f(fwd.make_dual(x, torch.cos(x)))).tangent


fn = torch.func
TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda f, x: f(x),
    "vmap": lambda f, x: torch.vmap(f)(torch.stack([x, 2 * x])),
    "grad": lambda f, x: fn.grad(lambda t: f(t).sum())(x),
    "jvp": lambda f, x: fn.jvp(f, (x,), (torch.cos(x),))[1],
    "vjp": lambda f, x: fn.vjp(f, x)[1](torch.cos(x))[0],
    "jacrev": lambda f, x: fn.jacrev(f)(x),
    "jacfwd": lambda f, x: fn.jacfwd(f)(x),
    "hessian": lambda f, x: fn.hessian(lambda t: f(t).sum())(x),
    "grad of vmap": lambda f, x: fn.grad(lambda t: torch.vmap(f)(torch.stack([t, t])).sum())(x),
    "vmap of grad": lambda f, x: torch.vmap(fn.grad(lambda t: f(t).sum()))(torch.stack([x, 2 * x])),
    "jvp of vmap": lambda f, x: fn.jvp(torch.vmap(f), (x[None],), (torch.cos(x)[None],))[1],
    "vmap of vmap": lambda f, x: torch.vmap(torch.vmap(f))(x.expand(2, 2, 3)),
    "forward mode": dual,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_give_what_they_give_for_functions_of_torch(name: str) -> None:
    op = wp.torch_kernel(cubes, order=2)
    x = torch.tensor([0.5, -1.5, 2.0], dtype=F64)
    want = TRANSFORMS[name](lambda t: t * t * t, x)
    torch.testing.assert_close(TRANSFORMS[name](op, x), want)
    torch._dynamo.reset()
    got = torch.compile(lambda t: TRANSFORMS[name](op, t))(x)
    torch.testing.assert_close(got, want)  # a tangent that is lost in a graph would be zero


@pytest.mark.parametrize("name", ["grad", "jvp", "forward mode"])
def test_one_graph_is_refused_where_it_cannot_hold_the_derivative(name: str) -> None:
    op = wp.torch_kernel(cubes, order=2)
    torch._dynamo.reset()
    run = torch.compile(lambda t: TRANSFORMS[name](op, t), fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="torch_kernel"):
        run(torch.ones(3, dtype=F64))


@pytest.mark.parametrize("name", ["itself", "vmap"])
def test_one_graph_holds_the_operator_and_batches(name: str) -> None:
    op = wp.torch_kernel(cubes, order=2)
    torch._dynamo.reset()
    x = torch.tensor([0.5, -1.5, 2.0], dtype=F64)
    got = torch.compile(lambda t: TRANSFORMS[name](op, t), fullgraph=True)(x)
    torch.testing.assert_close(got, TRANSFORMS[name](lambda t: t * t * t, x))


def test_batches_of_nothing() -> None:
    op, pair = wp.torch_kernel(cubes, order=2), wp.torch_kernel(two, num_outputs=2)
    none = torch.zeros(3, 0, dtype=F64)
    assert torch.vmap(op, in_dims=1)(none).shape == (0, 3)
    assert torch.vmap(op, in_dims=-1)(none).shape == (0, 3)
    assert torch.vmap(fn.grad(lambda t: op(t).sum()))(none.T).shape == (0, 3)
    y, n = torch.vmap(pair, in_dims=(0, None))(none.T, torch.ones(3, dtype=torch.int32))
    assert (y.shape, n.shape, n.dtype) == ((0, 3), (0, 3), torch.int32)


def test_results_without_gradients_beside_those_with() -> None:
    op = wp.torch_kernel(two, num_outputs=2, order=2)
    k = torch.arange(3, dtype=torch.int32)
    x = torch.tensor([0.5, -1.5, 2.0], dtype=F64)
    (_, n), (dy, _) = fn.jvp(lambda t: op(t, k), (x,), (torch.ones_like(x),))
    torch.testing.assert_close(dy, torch.cos(x) * k)
    assert n.tolist() == [1, 2, 3]
    torch.testing.assert_close(
        fn.hessian(lambda t: op(t, k)[0].sum())(x), torch.diag(-torch.sin(x) * k)
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_one_derivative_too_many_says_how_many_there_are(order: int) -> None:
    op = wp.torch_kernel(cubes, order=order)
    y = op(x := torch.ones(3, dtype=F64, requires_grad=True)).sum()
    for left in range(order, 0, -1):
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        assert g.tolist() == [{3: 6.0, 2: 6.0, 1: 3.0}[order - left + 1]] * 3
        y = g.sum()
    with pytest.raises(wp.TapeError, match="E401") as e:
        torch.autograd.grad(y, x, create_graph=True)
    assert f"order={order + 1}" in str(e.value)
