"""Optimizers of PyTorch that move arrays of the engine by gradients that are mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.foreign import watching
from tests.unit.autograd.watch.programs import facts, merged, ones, square, stale, zeros

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


class Own(torch.optim.Optimizer):
    """An optimizer of a program: sign steps."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p -= group["lr"] * torch.sign(p.grad)


OPTIMIZERS = [
    *(getattr(torch.optim, n) for n in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam")),
    Own,
]
Loop = Callable[[Any, Any, Any], None]


def shared(x: Any, optimizer: Any, t: Any) -> None:
    """The tensor and its gradient are the memory of the array."""
    optimizer.step()


def copied(x: Any, optimizer: Any, t: Any) -> None:
    t.grad = torch.tensor(x.grad.numpy().copy(), dtype=t.dtype)
    optimizer.step()
    x.assign(t.detach().numpy())


def only_read(x: Any, optimizer: Any, t: Any) -> None:
    assert t.grad is not None
    x.assign(torch.randn(x.size).numpy())


def other_parameter(x: Any, optimizer: Any, t: Any) -> None:
    """An optimizer of something else runs meanwhile."""
    w = torch.ones(x.size, requires_grad=True)
    (w * w).sum().backward()
    torch.optim.Adam([w], lr=0.1).step()
    only_read(x, optimizer, t)


def not_taken_over(x: Any, optimizer: Any, t: Any) -> None:
    """The optimizer gets the gradient; the array gets other values."""
    u = torch.zeros(x.size, requires_grad=True)
    u.grad = torch.tensor(x.grad.numpy().copy())
    torch.optim.SGD([u], lr=0.5).step()
    x.assign(torch.randn(x.size).numpy())


def cleared(x: Any, optimizer: Any, t: Any) -> None:
    optimizer.step()
    x.grad.zero_()


def run(loop: Loop, make: Any, size: int, dtype: Any = None) -> list[Any]:
    """What is stale in a program of three steps."""

    def program() -> None:
        x = wp.array(np.linspace(1.0, 2.0, size), dtype=float, requires_grad=True)
        t = wp.to_torch(x)
        if dtype is not None:
            t = torch.tensor(x.numpy().copy(), dtype=dtype, requires_grad=True)
        optimizer = make([t], lr=0.01)
        for _ in range(3):
            y = zeros(size)
            with wp.Tape() as tape:
                wp.launch(square, size, [x], [y])
            tape.backward(grads=ones(y))
            loop(x, optimizer, t)

    with watching():
        return merged(stale(facts(program)))


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_step_uses_the_mixture(make: Any, size: int) -> None:
    (found,) = run(shared, make, size)
    assert (found.kind, found.array, found.used, found.passes) == ("values", "x", True, 2)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", OPTIMIZERS[:2])
def test_so_does_a_step_of_copies(make: Any, dtype: Any, size: int) -> None:
    (found,) = run(copied, make, size, dtype)
    assert (found.kind, found.array, found.used) == ("values", "x", True)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("loop", [only_read, other_parameter, not_taken_over])
def test_no_step_does_not(loop: Loop, size: int) -> None:
    (found,) = run(loop, torch.optim.SGD, size)
    assert (found.kind, found.used) == ("values", False)


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_cleared_gradients_are_right(make: Any) -> None:
    assert run(cleared, make, 4) == []


@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_sums_at_several_points(make: Any, size: int, clear: bool) -> None:
    """A step along gradients of two points is meant; one along those of earlier steps is not."""

    def program() -> None:
        x = wp.array(np.linspace(1.0, 2.0, size), dtype=float, requires_grad=True)
        p = wp.to_torch(x)
        optimizer = make([p], lr=0.01)
        for _ in range(3):
            start = p.detach().clone()
            if clear:
                x.grad.zero_()
            for shift in (0.1, -0.1):
                with torch.no_grad():
                    p.copy_(start + shift)
                y = zeros(size)
                with wp.Tape() as tape:
                    wp.launch(square, size, [x], [y])
                tape.backward(grads=ones(y))
            with torch.no_grad():
                p.copy_(start)
            optimizer.step()

    with watching():
        found = merged(stale(facts(program)))
    assert [(f.kind, f.used) for f in found] == [("values", not clear)]
