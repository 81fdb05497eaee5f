"""Gradients that are mixtures, and programs that move their arrays by them, or do not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd.watch.steps import step_of
from engine.optim import SGD, Adam
from tests.unit.autograd.watch.programs import (
    F,
    descend,
    facts,
    merged,
    ones,
    square,
    stale,
    total,
    zeros,
)

N = 10
RATE = 0.01
Act = Callable[[Any, Any, int], None]


def backward(x: Any, weights: Any = None) -> Any:
    """A backward pass on a tape of its own, which adds to the gradient of x."""
    y = zeros(x.size)
    with wp.Tape() as tape:
        wp.launch(square, x.size, [x], [y])
    tape.backward(grads=ones(y) if weights is None else {y: weights})
    return tape


START = np.linspace(-2.0, 1.5, N)


def run(act: Act, start: Any = START, steps: int = 4) -> list[Any]:
    """What is stale in a loop of steps, each of which acts on an array and its tape."""

    def program() -> None:
        x = wp.array(start, dtype=float, requires_grad=True)
        for step in range(steps):
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


def by_host_after_it_was_cleared(x: Any, tape: Any, step: int) -> None:
    gradient = x.grad.numpy().copy()
    if step == 3:
        tape.zero()
    x.assign(x.numpy() - RATE * gradient)


def numpys(rule: Callable[[Any, dict[str, Any], int], Any]) -> Act:
    """Steps of an optimizer that is written in NumPy. rule: gives the step, up to the rate."""
    state: dict[str, Any] = {}

    def act(x: Any, tape: Any, step: int) -> None:
        if step == 0:
            state.clear()
        x.assign(x.numpy() - RATE * rule(x.grad.numpy().astype(np.float64), state, step + 1))

    act.__name__ = rule.__name__
    return act


def adam_in_numpy(g: Any, state: dict[str, Any], t: int) -> Any:
    m = state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * g
    v = state["v"] = 0.999 * state.get("v", 0.0) + 0.001 * g * g
    return m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


def rmsprop_in_numpy(g: Any, state: dict[str, Any], t: int) -> Any:
    v = state["v"] = 0.99 * state.get("v", 0.0) + 0.01 * g * g
    return g / (np.sqrt(v) + 1e-8)


def adagrad_in_numpy(g: Any, state: dict[str, Any], t: int) -> Any:
    v = state["v"] = state.get("v", 0.0) + g * g
    return g / (np.sqrt(v) + 1e-8)


def clipped(g: Any, state: dict[str, Any], t: int) -> Any:
    return np.clip(g, -3.0, 3.0)


IN_NUMPY = [numpys(f) for f in (adam_in_numpy, rmsprop_in_numpy, adagrad_in_numpy, clipped)]
STEPS = [
    by_kernel, by_norm_and_kernel, by_adam, by_sgd, by_host, by_host_in_place, by_signs,
    by_host_after_it_was_cleared, *IN_NUMPY,
]  # fmt: skip


@pytest.mark.parametrize("act", STEPS)
@pytest.mark.host("arrays of NumPy that are views", only=("by_host_in_place",))
def test_a_step_uses_it(act: Act) -> None:
    (found,) = merged(run(act))
    assert (found.kind, found.array, found.used, found.passes) == ("values", "x", True, 3)


@pytest.mark.parametrize("rate", [-0.2, 0.2])
def test_uphill_and_downhill(rate: float) -> None:
    """Of a loss whose gradient turns; the rate changes from step to step."""

    def program() -> None:
        x = wp.array(START, dtype=float, requires_grad=True)
        for step in range(4):
            backward(x, np.linspace(0.2, 2.0, N).astype(np.float32))
            x.assign(x.numpy() + rate * 0.7**step * x.grad.numpy())

    (found,) = merged(stale(facts(program)))
    assert (found.kind, found.array, found.used, found.passes) == ("values", "x", True, 3)


def printed_at_other_points(x: Any, tape: Any, step: int) -> None:
    x.grad.numpy()
    x.assign(np.random.default_rng(step).normal(size=x.size))


def measured_at_other_points(x: Any, tape: Any, step: int) -> None:
    wp.launch(total, x.size, [x.grad], [zeros(1, grad=False)])
    x.assign(np.random.default_rng(step).normal(size=x.size))


def compared_with_differences(x: Any, tape: Any, step: int) -> None:
    x.grad.numpy()
    moved = x.numpy().copy()
    moved[step % x.size] += 1e-3
    x.assign(moved)


def filled(x: Any, tape: Any, step: int) -> None:
    x.grad.numpy()
    x.assign(np.full(x.size, float(step)))


def along_a_line(x: Any, tape: Any, step: int) -> None:
    """Towards the minimum: each change is a multiple of the gradient, and all signs agree."""
    x.grad.numpy()
    x.assign(START[: x.size] * (1.0 - 0.1 * (step + 1)))


def away_on_a_line(x: Any, tape: Any, step: int) -> None:
    x.grad.numpy()
    x.assign(START[: x.size] * float(step + 2))


def ten_times_as_far(x: Any, tape: Any, step: int) -> None:
    x.grad.numpy()
    x.assign(x.numpy() * 10.0)


def shrinking_at_rates(x: Any, tape: Any, step: int) -> None:
    """What loses its energy at different rates goes downhill, but not by its gradient."""
    x.grad.numpy()
    x.assign(x.numpy() * np.tile([0.9, 0.5, 0.97], x.size)[: x.size])


FIXED = [
    printed_at_other_points, measured_at_other_points, compared_with_differences, filled,
    along_a_line, away_on_a_line, ten_times_as_far, shrinking_at_rates,
]  # fmt: skip


@pytest.mark.parametrize("steps", [3, 8])
@pytest.mark.parametrize("size", [1, 4, N])
@pytest.mark.parametrize("act", FIXED)
def test_what_is_only_read_is_not_used(act: Act, size: int, steps: int) -> None:
    found = merged(run(act, START[:size], steps))
    assert found and {(f.kind, f.used) for f in found} == {("values", False)}


@pytest.mark.parametrize("act", [filled, printed_at_other_points])
def test_equal_numbers_at_the_start(act: Act) -> None:
    for size in (1, 4, N):
        (found,) = merged(run(act, np.full(size, 3.0), 6))
        assert (found.kind, found.used) == ("values", False)


def test_two_numbers_at_one_rate() -> None:
    (found,) = merged(run(by_host, START[:2]))
    assert (found.kind, found.used) == ("values", True)
    (found,) = merged(run(by_host, START[:1]))
    assert (found.kind, found.used) == ("values", False)


@pytest.mark.parametrize(
    ("last", "used"),
    [
        ("step", True), ("step and pass", False), ("uphill", False), ("random", False),
        ("shrinks", False), ("nothing", False),
    ],
)  # fmt: skip
def test_one_step_at_the_end(last: str, used: bool) -> None:
    """Of a doubled pass, whose gradient turns away from the array itself."""

    def program() -> None:
        x = wp.array(START[:4], dtype=float, requires_grad=True)
        y = zeros(4)
        with wp.Tape() as tape:
            wp.launch(square, 4, [x], [y])
        weights = {y: np.array([1, 2, 3, 4], np.float32)}
        tape.backward(grads=weights)
        tape.backward(grads=weights)
        g = x.grad.numpy().copy()
        by = {
            "uphill": RATE * g, "random": np.random.default_rng(1).normal(size=4),
            "shrinks": -RATE * x.numpy(), "nothing": 0.0 * g,
        }  # fmt: skip
        x.assign(x.numpy() + by.get(last, -RATE * g))
        if last == "step and pass":
            backward(x)
            x.grad.numpy()
        alive.append(x)

    alive: list[Any] = []
    found = merged(stale(facts(program)))
    assert any(f.used for f in found) is used and "twice" in {f.kind for f in found}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("act", [by_signs, IN_NUMPY[0]])
def test_too_few_numbers_are_no_evidence(act: Act, size: int) -> None:
    (found,) = merged(run(act, START[:size]))
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


@wp.kernel
def leave(b: F, g: F, h: float, x: F):
    """A step that starts from other values than those of the array that it writes."""
    i = wp.tid()
    x[i] = b[i] - h * g[i]


def around(x: Any, rng: np.random.Generator, times: int = 3) -> None:
    """Sums up gradients at points around the values of an array, and leaves these."""
    start = x.numpy().copy()
    for _ in range(times):
        x.assign(start + 0.1 * rng.normal(size=x.size))
        backward(x)
    x.assign(start)


def smoothed(step: Act, clear: bool = True) -> Callable[[], None]:
    """Steps along the mean of gradients at several points."""

    def program() -> None:
        x = wp.array(START, dtype=float, requires_grad=True)
        rng = np.random.default_rng(3)
        for number in range(3):
            if clear:
                x.grad.zero_()
            around(x, rng)
            step(x, None, number)

    return program


def heun() -> None:
    """Each step is a trial and a correction, along the sum of the gradients of both points."""
    x = wp.array(START, dtype=float, requires_grad=True)
    for _ in range(3):
        b = wp.clone(x)
        x.grad.zero_()
        backward(x)
        wp.launch(leave, N, [b, x.grad, RATE], [x])
        backward(x)
        wp.launch(leave, N, [b, x.grad, RATE / 2], [x])


def two_points_in_numpy() -> None:
    """Each step is along the sum of the gradients at a point and at the one that it starts from."""
    x = wp.array(START, dtype=float, requires_grad=True)
    for number in range(4):
        x.grad.zero_()
        backward(x)
        x.assign(x.numpy() + np.random.default_rng(number).normal(size=N))
        backward(x)
        by_host(x, None, number)


@pytest.mark.parametrize(
    "program", [*map(smoothed, [by_kernel, by_adam, by_sgd, by_host]), heun, two_points_in_numpy]
)
def test_sums_that_no_step_has_used_before_are_no_errors(program: Callable[[], None]) -> None:
    found = merged(stale(facts(program)))
    assert found and {(f.kind, f.used) for f in found} == {("values", False)}


@pytest.mark.parametrize("act", [by_kernel, by_adam, by_sgd])
def test_sums_over_several_steps_are(act: Act) -> None:
    assert [f.used for f in merged(stale(facts(smoothed(act, clear=False))))] == [True]


def test_a_gradient_that_one_step_has_used_and_the_next_step() -> None:
    """The pass that adds to it need not be the last one before the step."""

    def program() -> None:
        x = wp.array(START, dtype=float, requires_grad=True)
        backward(x)
        by_kernel(x, None, 0)
        around(x, np.random.default_rng(3), times=2)
        by_kernel(x, None, 1)

    assert any(f.used for f in stale(facts(program)))


def chosen_before(rng: np.random.Generator, n: int, steps: int, target: Any) -> list[Any]:
    """Points that no gradient has chosen: at random, on a line, or on one through a target."""
    kind = rng.integers(6)
    if kind > 3:
        start, far = rng.normal(size=n), rng.choice([0.05, 0.1, 0.3])
        return list(start + far * np.arange(steps)[:, None] * (target - start))
    if kind == 0:
        return list(rng.normal(size=(steps, n)))
    if kind == 1:
        return list(rng.normal() + rng.normal(size=n) * rng.uniform(0.1, 2.0, (steps, 1)))
    if kind == 2:
        return list(rng.normal(size=n) + np.arange(steps)[:, None] * rng.normal(size=n))
    return list(np.cumsum(0.1 * rng.normal(size=(steps, n)), 0))


def test_points_that_were_chosen_before_are_no_steps() -> None:
    """Of quadratic losses, at whose points a step towards the minimum is likely."""
    rng = np.random.default_rng(11)
    for _ in range(3000):
        n = int(rng.integers(1, 25))
        scale, target = rng.uniform(0.5, 2.0, n) ** int(rng.integers(2)), rng.normal(size=n)
        points = chosen_before(rng, n, 8, target)
        gradient, before = np.zeros(n), None
        for x, following in itertools.pairwise(points):
            gradient = gradient + 2.0 * scale * (x - target)
            step = step_of((following - x).astype(np.float32).astype(float), gradient)
            assert step is None or before is None or not step.confirms(before), (n, points)
            before = step


def test_steps_of_the_host_are_confirmed_by_the_next() -> None:
    rng = np.random.default_rng(7)
    for n in range(3, 30):
        x, target = rng.normal(size=n), rng.normal(size=n)
        gradient, before, confirmed = np.zeros(n), None, 0
        for _ in range(4):
            gradient = gradient + 2.0 * (x - target)
            change = -1e-2 * gradient
            x = x + change
            step = step_of(change, gradient)
            assert step is not None and step.kind == "multiple"
            confirmed += before is not None and step.confirms(before)
            before = step
        assert confirmed == 3


def test_a_change_as_a_step() -> None:
    rng = np.random.default_rng(5)
    gradient = rng.normal(size=12)
    gradient[3] = 0.0

    def kind(change: Any, g: Any = gradient) -> str | None:
        found = step_of(change, g)
        return None if found is None else found.kind

    assert kind(-1e-3 * gradient) == "multiple"
    assert kind(-1e300 * gradient) == "multiple"
    assert kind(np.sign(gradient)) == "signs"
    assert kind(-np.clip(gradient, -0.5, 0.5)) == "signs"
    assert kind(-np.sign(gradient) * rng.uniform(0.6, 1.0, 12)) == "signs"
    assert kind(-np.sign(gradient) * rng.uniform(0.1, 1.0, 12)) is None
    assert kind(rng.normal(size=12)) is None
    assert kind(0.0 * gradient) is None
    assert kind(np.eye(12)[0]) is None
    assert kind(np.eye(12)[3]) is None  # where the gradient is zero
    assert kind(np.sign(gradient[:4]), gradient[:4]) is None  # too few for signs
    assert kind(np.sign(abs(gradient)), abs(gradient)) is None  # all of one sign
    assert kind(2.0 * np.ones(12), np.ones(12)) is None  # nothing tells one number from another
    assert kind(np.array([2.0]), np.array([2.0])) is None
