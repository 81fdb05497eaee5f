"""Features of PyTorch alone: C structures, parameters, modes, functions with gradients, names."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.interop import gradients

torch = pytest.importorskip("torch", reason="torch is not installed")


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def total(x: wp.array(dtype=wp.bfloat16), y: wp.array(dtype=float)):
    wp.atomic_add(y, 0, float(x[wp.tid()]))


def test_names_are_those_of_warp() -> None:
    import engine.torch

    for name in engine.torch.__all__:
        if name != "dtype_is_compatible":
            assert getattr(wp, name) is getattr(engine.torch, name)
    assert wp.torch is engine.torch
    assert wp.device_from_torch(torch.device("cpu")) == wp.get_device("cpu")
    assert wp.device_to_torch() == "cpu"
    assert wp.dtype_from_torch(torch.bfloat16) is wp.bfloat16
    assert wp.dtype_to_torch(wp.uint32) is torch.int32
    assert engine.torch.dtype_is_compatible(torch.bool, wp.uint8)
    assert engine.torch.dtype_is_compatible(torch.float32, wp.vec3)
    assert not engine.torch.dtype_is_compatible(torch.float32, wp.int32)
    for call, error in [
        (lambda: wp.dtype_from_torch(torch.complex64), TypeError),
        (lambda: wp.dtype_to_torch(wp.vec3), TypeError),
        (lambda: wp.device_from_torch("cuda:0"), RuntimeError),
        (wp.stream_from_torch, RuntimeError),
        (wp.stream_to_torch, RuntimeError),
    ]:
        with pytest.raises(wp.LaunchError) as e:
            call()
        assert isinstance(e.value, error)


@pytest.mark.parametrize("grad", [False, True])
def test_structures_are_arguments_that_keep_memory_alive(grad: bool) -> None:
    t = torch.full((1000,), 3.0, requires_grad=grad)
    made = wp.from_torch(t, return_ctype=True)
    assert (made.data, made.ndim, made.shape[0], made.strides[0]) == (t.data_ptr(), 1, 1000, 4)
    assert made.grad == (t.grad.data_ptr() if grad else 0)
    if not grad:
        del t
    gc.collect()
    y = wp.zeros(1000, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=1000, inputs=[made], outputs=[y])
    assert (y.numpy() == 9.0).all()
    tape.backward(grads={y: torch.ones(1000)})
    if grad:
        assert (t.grad == 6.0).all()
    pair = torch.ones(4, 3)[:, :2]
    assert wp.from_torch(pair, dtype=wp.vec2, return_ctype=True).strides[0] == 12
    with pytest.raises(wp.LaunchError, match=r"E203.*expects array\(dtype=float32"):
        wp.launch(square, dim=1, inputs=[wp.from_torch(pair, return_ctype=True)], outputs=[y])


def test_a_tensor_that_gets_other_memory_leaves_the_array_its_own() -> None:
    t = torch.ones(1000)
    a = wp.from_torch(t)
    t.data = torch.zeros(5)
    assert a.numpy().sum() == 1000.0


def test_layouts_of_gradients() -> None:
    t = torch.zeros(4, 3).T.requires_grad_()
    a = wp.from_torch(t)
    assert a.grad.strides == a.strides == (4, 12)
    expanded = torch.zeros(1, 3).expand(4, 3)
    assert wp.from_torch(expanded).strides == (0, 4)
    with pytest.raises(wp.LaunchError, match="elements that overlap"):
        wp.launch(square, dim=4, inputs=[wp.zeros(4)], outputs=[expanded[:, 0]])


def test_bfloat16_both_ways() -> None:
    t = torch.tensor([1.0, 2.5, -3.0], dtype=torch.bfloat16, requires_grad=True)
    a = wp.from_torch(t)
    y = wp.zeros(1, dtype=float)
    wp.launch(total, dim=3, inputs=[t], outputs=[y])
    assert y.numpy()[0] == 0.5
    back = wp.to_torch(a)
    assert back.dtype is torch.bfloat16
    assert back.grad.data_ptr() == t.grad.data_ptr()
    assert torch.equal(back.detach(), t.detach())


def test_modes_mean_nothing_and_parameters_are_tensors() -> None:
    p = torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        assert wp.from_torch(p).requires_grad
    with torch.inference_mode():
        made = torch.zeros(3)
        assert not wp.from_torch(made).requires_grad
        wp.from_torch(p).grad.fill_(2.0)
    assert (p.grad == 2.0).all()

    class Own(torch.Tensor):
        pass

    own = torch.zeros(3).as_subclass(Own)
    wp.launch(square, dim=3, inputs=[p], outputs=[own])
    assert (own == 1.0).all()


def test_a_gradient_that_is_given() -> None:
    t, g = torch.ones(3), torch.full((3,), 2.0)
    a = wp.from_torch(t, grad=g)
    assert a.requires_grad
    assert a.grad.ptr == g.data_ptr()
    assert t.grad is None
    b = wp.from_torch(t, grad=wp.zeros(3, dtype=float))
    assert b.grad.numpy().tolist() == [0.0] * 3
    assert wp.from_torch(t, requires_grad=True, retain_grad=True).retain_grad
    with pytest.raises(wp.LaunchError, match="requires_grad is False"):
        wp.from_torch(t, grad=g, requires_grad=False)
    assert not wp.from_torch(torch.ones(3, requires_grad=True), requires_grad=False).requires_grad


def test_a_tensor_that_has_another_type_now() -> None:
    """As the parameters of a module after `module.double()`."""
    layer = torch.nn.Linear(2, 1)
    a = wp.from_torch(layer.weight)
    before = a.numpy().copy()
    assert a.grad.numpy().tolist() == [[0.0, 0.0]]
    layer.double()
    with pytest.raises(wp.LaunchError, match=r"E202.*has another type now") as e:
        a.grad  # noqa: B018
    assert "make the array again" in e.value.diagnostics[0].help
    assert (a.numpy() == before).all()
    assert wp.from_torch(layer.weight).grad.dtype is wp.float64


def test_a_backward_pass_of_pytorch_is_seen() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a = wp.from_torch(x)
    x.grad = None
    (x * 3.0).sum().backward()
    assert a.grad.numpy().tolist() == [3.0, 3.0]
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=2, inputs=[a], outputs=[y])
    tape.backward(grads={y: torch.ones(2)})
    assert x.grad.tolist() == [5.0, 7.0]


class Squares(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x = wp.from_torch(x.detach(), requires_grad=True)
        ctx.y = wp.zeros(len(x), dtype=float, requires_grad=True)
        wp.launch(square, dim=len(x), inputs=[ctx.x], outputs=[ctx.y])
        return wp.to_torch(ctx.y)

    @staticmethod
    def backward(ctx: Any, cotangent: Any) -> Any:
        ctx.y.grad = wp.from_torch(cotangent.contiguous())
        wp.launch(square, dim=ctx.x.size, inputs=[ctx.x], outputs=[ctx.y],
                  adj_inputs=[ctx.x.grad], adj_outputs=[ctx.y.grad], adjoint=True)  # fmt: skip
        return wp.to_torch(ctx.x.grad)


def test_a_function_of_pytorch() -> None:
    """What `to_torch` gave becomes a computed tensor: its gradient is PyTorch's affair then."""
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = Squares.apply(x)
    (y * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2.0, -40.0, 600.0]


def test_nothing_is_kept_of_tensors_that_are_gone() -> None:
    a = wp.zeros(3, dtype=float, requires_grad=True)
    t = wp.to_torch(a)
    gc.collect()  # what other tests left
    before = len(gradients._shared)
    kept = [wp.to_torch(a) for _ in range(20)]
    assert {g.grad.data_ptr() for g in kept} == {a.grad.ptr}
    gone = [weakref.ref(g) for g in kept]
    del kept
    gc.collect()
    assert not any(g() is not None for g in gone)
    assert len(gradients._shared) == before
    del a, t
    gc.collect()
    assert len(gradients._shared) < before


def test_fields_of_structs_are_arrays() -> None:
    @wp.struct
    class State:
        x: wp.array(dtype=float)

    s = State()
    with pytest.raises(wp.LaunchError, match="E202") as e:
        s.x = torch.zeros(3)
    assert "from_torch" in e.value.diagnostics[0].help
    s.x = wp.from_torch(torch.ones(3))
    assert s.x.numpy().tolist() == [1.0] * 3


def test_numbers_and_vectors_come_from_tensors() -> None:
    assert list(wp.vec3(torch.tensor([1.0, 2.0, 3.0]))) == [1.0, 2.0, 3.0]
    a = wp.zeros((2, 3), dtype=float)
    a[0] = torch.tensor([1.0, 2.0, 3.0], requires_grad=True).detach()
    a[1, 2] = torch.tensor(5.0)
    assert np.array_equal(a.numpy(), [[1, 2, 3], [0, 0, 5]])


def test_the_cotangent_of_a_sum_is_one_number_for_all() -> None:
    """PyTorch expands it: it can be read as it is, and what is added to a gradient has a copy."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x = wp.from_torch(x.detach(), requires_grad=True)
            ctx.y = wp.zeros(3, dtype=float, requires_grad=True)
            wp.launch(square, dim=3, inputs=[ctx.x], outputs=[ctx.y])
            return wp.to_torch(ctx.y, requires_grad=False)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            assert grad.stride() == (0,)
            ctx.y.grad = wp.from_torch(grad)
            wp.launch(square, dim=3, inputs=[ctx.x], outputs=[ctx.y],
                      adj_inputs=[ctx.x.grad], adj_outputs=[ctx.y.grad], adjoint=True)  # fmt: skip
            return wp.to_torch(ctx.x.grad)

    x = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, -4.0, 1.0]

    a, y = wp.array([1.0, 2.0, 3.0], dtype=float), wp.zeros(3, dtype=float)
    one = wp.from_torch(torch.ones(1).expand(3))
    with pytest.raises(wp.LaunchError, match=r"E206.*two elements lie in one place"):
        wp.launch(square, 3, [a], [y], adj_inputs=[one], adj_outputs=[wp.ones(3)], adjoint=True)
    gradient = wp.zeros(3, dtype=float)
    wp.launch(square, 3, [a], [y], adj_inputs=[gradient], adj_outputs=[one], adjoint=True)
    assert gradient.numpy().tolist() == [2.0, 4.0, 6.0]


def test_read_only_memory_is_told_as_such_and_not_as_steps() -> None:
    for x in (np.broadcast_to(np.float32(1), 3), np.frombuffer(b"1234" * 6, np.float32)):
        with pytest.raises(wp.LaunchError, match=r"E206.*read-only"):
            wp.to_torch(wp.array(x, copy=False))
