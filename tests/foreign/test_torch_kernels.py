"""Calls of operators that `torch_kernel` made are checked, and told of, as launches."""

from __future__ import annotations

import pytest

import engine as wp
from engine.foreign import watching

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@wp.func
def product(x: float, w: float) -> float:
    return x * w


@wp.func_grad(product)
def half_of_product(x: float, w: float, adj_ret: float):
    wp.adjoint[x] += adj_ret * w
    wp.adjoint[w] += adj_ret * x * 0.5


@wp.kernel
def mix(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = product(x[i], w[i])


@wp.kernel
def scaled(
    x: wp.array(dtype=wp.vec3),
    s: float,
    n: wp.array(dtype=int),
    z: wp.array(dtype=float),
    y: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    z[i] = z[i] * s
    y[i] = x[i] * s * float(n[i]) * z[i]


def tensor(*shape: int) -> torch.Tensor:
    return torch.linspace(0.5, 2.0, 12)[: torch.Size(shape).numel()].reshape(shape).requires_grad_()


def checked(run) -> list:
    """The launches that are checked of what runs."""
    with watching() as watched:
        run()
    (result,) = watched.results()
    assert not result.unchecked
    return list(result.launches)


def wrong(launch) -> set:
    return {(p.input, p.output) for p in launch.pairs if p.verdict == "fail"}


@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_gradient_is_that_of_the_kernel(order: int) -> None:
    f = wp.torch_kernel(mix, order=order)
    (launch,) = checked(lambda: f(tensor(3), tensor(3)).sum().backward())
    assert launch.kernel == "mix" and launch.by_hand is None
    assert launch.site.file == __file__
    assert wrong(launch) == {("w", "y")}
    (blame,) = launch.blame
    assert blame.derivative == "half_of_product" and blame.span.file == __file__


def test_a_gradient_that_is_differentiated_is_no_operator_of_its_own() -> None:
    f = wp.torch_kernel(mix, order=2)

    def run() -> None:
        x, w = tensor(3), tensor(3)
        (g,) = torch.autograd.grad(f(x, w).sum(), x, create_graph=True)
        g.sum().backward()

    (launch,) = checked(run)
    assert launch.kernel == "mix" and ("w", "y") in wrong(launch)


def test_tangents_are_told_of_as_the_kernel() -> None:
    def run() -> None:
        f = wp.torch_kernel(mix, order=2, name="adtool_test::mix")  # made while it is watched
        with torch.autograd.forward_ad.dual_level():
            x = torch.autograd.forward_ad.make_dual(tensor(3), torch.ones(3))
            f(x, tensor(3)).sum().backward()

    (launch,) = checked(run)
    assert launch.kernel == "mix" and wrong(launch) == {("w", "y")}


def test_all_kinds_of_arguments() -> None:
    """Vectors, numbers, integers, an array that is changed, a tensor without a gradient."""
    f = wp.torch_kernel(scaled, num_outputs=2, in_out_argnames=["z"])
    n = torch.tensor([1, 2, 3], dtype=torch.int32)
    x, z = tensor(3, 3), tensor(3)
    (launch,) = checked(lambda: sum(t.sum() for t in f(x, 1.5, n, z)).backward())
    assert launch.kernel == "scaled" and not wrong(launch)
    assert {p.verdict for p in launch.pairs} == {"pass"}
    assert {("x", "y"), ("z", "y")} <= {(p.input, p.output) for p in launch.pairs}
    (launch,) = checked(lambda: sum(t.sum() for t in f(x, 1.5, n, z.detach())).backward())
    assert "z" not in {p.input for p in launch.pairs}


def test_it_is_chosen_by_the_name_of_the_kernel() -> None:
    f = wp.torch_kernel(mix)
    with watching(lambda name: name != "mix") as watched:
        f(tensor(3), tensor(3)).sum().backward()
    assert watched.names == ("mix",)
    assert [x for r in watched.results() for x in r.launches] == []
