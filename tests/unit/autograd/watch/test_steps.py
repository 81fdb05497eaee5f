"""Gradients that are mixtures, and programs that move their arrays by them, or do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd.watch.accumulated import merged
from engine.autograd.watch.steps import along
from engine.optim import SGD, Adam
from tests.unit.autograd.watch.programs import (
    descend,
    facts,
    ones,
    square,
    stale,
    total,
    zeros,
)

N = 10
RATE = 0.01
Act = Callable[[Any, Any, int], None]


def backward(x: Any) -> Any:
    """A backward pass on a tape of its own, which adds to the gradient of x."""
    y = zeros(N)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [y])
    tape.backward(grads=ones(y))
    return tape


def run(act: Act) -> list[Any]:
    """What is stale in a loop of three steps, each of which acts on an array and its tape."""

    def program() -> None:
        x = wp.array(np.linspace(1.0, 2.0, N), dtype=float, requires_grad=True)
        for step in range(3):
            act(x, backward(x), step)

    return stale(facts(program))


def by_kernel(x: Any, tape: Any, step: int) -> None:
    wp.launch(descend, N, [x, x.grad])


def by_norm_and_kernel(x: Any, tape: Any, step: int) -> None:
    wp.launch(total, N, [x.grad], [zeros(1, grad=False)])  # a look at it, to print its size
    by_kernel(x, tape, step)


def by_adam(x: Any, tape: Any, step: int) -> None:
    Adam([x], lr=RATE).step([x.grad])


def by_sgd(x: Any, tape: Any, step: int) -> None:
    SGD([x], lr=RATE).step([x.grad])


def by_host(x: Any, tape: Any, step: int) -> None:
    x.assign(x.numpy() - RATE * x.grad.numpy())


def by_host_in_place(x: Any, tape: Any, step: int) -> None:
    x.numpy()[...] -= RATE * x.grad.numpy()


def by_signs(x: Any, tape: Any, step: int) -> None:
    x.assign(x.numpy() - RATE * np.sign(x.grad.numpy()))


def upwards(x: Any, tape: Any, step: int) -> None:
    x.assign(x.numpy() + RATE * x.grad.numpy())


def by_host_after_it_was_cleared(x: Any, tape: Any, step: int) -> None:
    gradient = x.grad.numpy().copy()
    if step == 2:
        tape.zero()
    x.assign(x.numpy() - RATE * gradient)


STEPS = [
    by_kernel, by_norm_and_kernel, by_adam, by_sgd, by_host, by_host_in_place, by_signs, upwards,
    by_host_after_it_was_cleared,
]  # fmt: skip


@pytest.mark.parametrize("act", STEPS)
@pytest.mark.host("arrays of NumPy that are views", only=("by_host_in_place",))
def test_a_step_uses_it(act: Act) -> None:
    (found,) = merged(run(act))
    assert (found.kind, found.array, found.used, found.passes) == ("values", "x", True, 2)


def printed_at_other_points(x: Any, tape: Any, step: int) -> None:
    x.grad.numpy()
    x.assign(np.random.default_rng(step).normal(size=N))


def measured_at_other_points(x: Any, tape: Any, step: int) -> None:
    wp.launch(total, N, [x.grad], [zeros(1, grad=False)])
    x.assign(np.random.default_rng(step).normal(size=N))


def compared_with_differences(x: Any, tape: Any, step: int) -> None:
    x.grad.numpy()
    moved = x.numpy().copy()
    moved[step] += 1e-3
    x.assign(moved)


@pytest.mark.parametrize(
    "act", [printed_at_other_points, measured_at_other_points, compared_with_differences]
)
def test_what_is_only_read_is_not_used(act: Act) -> None:
    (found,) = merged(run(act))
    assert (found.kind, found.used) == ("values", False)


def cleared(x: Any, tape: Any, step: int) -> None:
    by_kernel(x, tape, step)
    tape.zero()


def of_a_batch(x: Any, tape: Any, step: int) -> None:
    """Several losses add up at the same values, and one step is made of all."""
    backward(x)
    backward(x)
    by_kernel(x, tape, step)
    tape.zero()


def cleared_before_the_step(x: Any, tape: Any, step: int) -> None:
    by_kernel(x, tape, step)
    backward(x)  # adds to what belongs to the values before the step
    x.grad.zero_()
    backward(x)
    by_kernel(x, tape, step)
    x.grad.zero_()


@pytest.mark.parametrize("act", [cleared, of_a_batch, cleared_before_the_step])
def test_right_programs_stay_silent(act: Act) -> None:
    assert run(act) == []


def test_a_doubled_pass_and_a_step() -> None:
    def program(step: bool) -> list[Any]:
        def inner() -> None:
            x, y = wp.array(np.ones(N), dtype=float, requires_grad=True), zeros(N)
            with wp.Tape() as tape:
                wp.launch(square, N, [x], [y])
            tape.backward(grads=ones(y))
            tape.backward(grads=ones(y))
            x.grad.numpy()
            if step:
                wp.launch(descend, N, [x, x.grad])

        return merged(stale(facts(inner)))

    for step in (False, True):
        (found,) = program(step)
        assert (found.kind, found.used) == ("twice", step)


def test_a_single_number_moves_along_its_gradient_if_that_is_still_there() -> None:
    change, gradient = np.array([0.1]), np.array([2.0])
    assert along(change, gradient, lambda: True)
    assert not along(change, gradient, lambda: False)
    assert not along(0.0 * change, gradient, lambda: True)


def test_changes_along_a_gradient() -> None:
    rng = np.random.default_rng(5)
    gradient = rng.normal(size=12)
    gradient[3] = 0.0

    def there() -> bool:
        raise AssertionError("it is asked of a single number alone")

    assert along(-1e-3 * gradient, gradient, there)
    assert along(-1e300 * gradient, gradient, there)
    assert along(-np.sign(gradient) * rng.uniform(0.1, 1.0, 12), gradient, there)
    assert not along(rng.normal(size=12), gradient, there)
    assert not along(np.eye(12)[0], gradient, there)
    assert not along(np.eye(12)[3], gradient, there)  # where the gradient is zero
    assert not along(np.sign(gradient[:4]), gradient[:4], there)  # too few for signs
