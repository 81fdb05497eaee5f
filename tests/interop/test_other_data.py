"""Programs that change the tensor behind an array: other data, other gradients, copies."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

import engine as wp

torch = pytest.importorskip("torch", reason="torch is not installed")


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def ones_without(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 1.0
    if x:
        y[i] = x[i]


def backward(x: Any, n: int = 4) -> Any:
    """Gives what runs the backward pass of a launch with `x`."""
    y = wp.zeros(n, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, n, [x], [y])
    return lambda: tape.backward(grads={y: wp.ones(n, dtype=float)})


GIVEN = {
    "array": wp.from_torch,
    "structure": lambda t: wp.from_torch(t, return_ctype=True),
    "tensor": lambda t: t,
}


@pytest.mark.parametrize("preset", [True, False])
@pytest.mark.parametrize("shape", [(2,), (), (2, 2), (4, 1), (6,)], ids=str)
@pytest.mark.parametrize("given", GIVEN)
def test_gradients_of_another_shape_are_refused(given: str, shape: Any, preset: bool) -> None:
    q = torch.arange(4.0, requires_grad=True)
    run = backward(GIVEN[given](q))
    q.data = torch.ones(shape)
    memory = torch.zeros(12)
    q.grad = memory[: q.numel()].view(shape) if preset else None
    with pytest.raises(wp.LaunchError, match="the tensor has got other data since") as raised:
        run()
    assert raised.value.diagnostics[0].code == "E206"
    assert not memory.any()


def test_tensors_of_arrays_with_other_data() -> None:
    a = wp.array(np.arange(4.0), dtype=float, requires_grad=True)
    t = wp.to_torch(a)
    run = backward(a)
    t.data = torch.ones(2)
    t.grad = None
    with pytest.raises(wp.LaunchError, match="the tensor has got other data since"):
        run()


def test_other_data_of_the_same_shape_share_the_gradient() -> None:
    q = torch.arange(4.0, requires_grad=True)
    run = backward(wp.from_torch(q))
    q.data = torch.ones(4)
    run()
    assert q.grad.tolist() == [0.0, 2.0, 4.0, 6.0]  # of what ran, on the old memory


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_of_structures_are_of_the_same_array(copied: Any) -> None:
    q = torch.arange(4.0, requires_grad=True)
    backward(copied(wp.from_torch(q, return_ctype=True)))()
    assert q.grad.tolist() == [0.0, 2.0, 4.0, 6.0]
    c = copied(wp.from_torch(torch.full((4,), 3.0), return_ctype=True))
    gc.collect()
    others = [torch.full((4,), 9.0) for _ in range(20)]
    y = wp.zeros(4, dtype=float)
    wp.launch(squares, 4, [c], [y])
    assert y.numpy().tolist() == [9.0] * 4 and len(others) == 20
    changed = copied(c)
    changed.shape[0] = 2  # no longer the array that it was made of
    assert bytes(changed) != bytes(c)
    with pytest.raises(TypeError, match="pickle the array"):
        pickle.dumps(c)


def test_structures_at_no_address_are_refused() -> None:
    c = wp.from_torch(torch.ones(4), return_ctype=True)
    c.data = 0
    with pytest.raises(wp.LaunchError, match="address 0") as raised:
        wp.launch(squares, 4, [c], [wp.zeros(4, dtype=float)])
    assert raised.value.diagnostics[0].code == "E202"
    empty = wp.from_torch(torch.ones(0), return_ctype=True)
    wp.launch(squares, 0, [empty], [empty])
    y = wp.zeros(4, dtype=float)
    wp.launch(ones_without, 4, [type(c)()], [y])  # all zeros is no array, as None is
    assert y.numpy().tolist() == [1.0] * 4


def test_signs_that_dlpack_does_not_tell_are_refused() -> None:
    t = torch.complex(torch.zeros(3), torch.ones(3)).conj().imag
    with pytest.raises(wp.LaunchError, match="signs changed") as raised:
        wp.from_dlpack(t)
    assert "resolve_neg" in raised.value.diagnostics[0].help
    assert wp.from_dlpack(t.resolve_neg()).numpy().tolist() == [-1.0] * 3


def test_gradients_that_do_not_fit_say_so() -> None:
    q = torch.arange(4.0, requires_grad=True)
    a = wp.from_torch(q)
    q.grad = torch.ones(4).to_sparse()
    with pytest.raises(wp.LaunchError, match="layout sparse_coo now"):
        _ = a.grad


@pytest.mark.parametrize("clear", ["clear_grad", "clear_gradient", "optimizer"])
def test_what_is_added_after_paddle_cleared_it_stays(clear: str) -> None:
    paddle = pytest.importorskip("paddle", reason="paddle is not installed")
    p = paddle.to_tensor(np.arange(4, dtype="float32"), stop_gradient=False)
    opt = paddle.optimizer.SGD(0.0, parameters=[p])
    (p * p).sum().backward()
    {"clear_grad": p.clear_grad, "clear_gradient": lambda: p.clear_gradient(True),
     "optimizer": opt.clear_grad}[clear]()  # fmt: skip
    backward(p)()
    assert p.grad.numpy().tolist() == [0.0, 2.0, 4.0, 6.0]
    (p * p).sum().backward()
    assert p.grad.numpy().tolist() == [0.0, 4.0, 8.0, 12.0]
