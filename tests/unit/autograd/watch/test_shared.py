"""Arrays whose gradients are one memory, and programs that compute the same while watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Shared
from tests.unit.autograd.watch.programs import (
    facts,
    floats,
    ones,
    square,
    times,
    twice,
    zeros,
)


def shared(program: Callable[[], Any]) -> list[tuple[tuple[str, str], str]]:
    return [(f.arrays, f.of) for f in facts(program) if isinstance(f, Shared)]


def activations(asked: bool, turns: bool = False) -> Any:
    """y = 2 x and z = x * x share a gradient. asked: whether x has its own before the pass."""
    x, y, z, w = floats(1, 2, 3), zeros(), zeros(), zeros()
    y.grad = z.grad
    if asked:
        x.grad.zero_()
    with wp.Tape() as tape:
        wp.launch(twice, 3, [x], [y])
        wp.launch(square, 3, [y if turns else x], [z])
        if not turns:
            wp.launch(times, 3, [y, z], [w])
    tape.backward(grads=ones(z if turns else w))
    return x.grad.numpy().copy()


@pytest.mark.parametrize("asked", [False, True], ids=["lazy", "made"])
def test_activations_that_share_a_gradient(asked: bool) -> None:
    found: list[Any] = []
    assert shared(lambda: found.append(activations(asked))) == [(("y", "z"), "x")]
    np.testing.assert_array_equal(found[0], activations(asked))


def test_leaves_that_share_a_gradient() -> None:
    def program() -> None:
        x, y, w = floats(1, 2, 3), floats(4, 5, 6), zeros()
        y.grad = x.grad
        with wp.Tape() as tape:
            wp.launch(times, 3, [x, y], [w])
        tape.backward(grads=ones(w))
        found.append(x.grad.numpy().copy())

    found: list[Any] = []
    assert shared(program) == [(("x", "y"), "x")]
    program()
    np.testing.assert_array_equal(*found)


def test_leaves_whose_gradients_overlap_in_part() -> None:
    buffer = wp.zeros(5, dtype=float)

    def program() -> None:
        buffer.zero_()
        x, y, w = floats(1, 2, 3), floats(4, 5, 6), zeros()
        x.grad, y.grad = buffer[0:3], buffer[2:5]
        with wp.Tape() as tape:
            wp.launch(times, 3, [x, y], [w])
        tape.backward(grads=ones(w))

    assert [pair for pair, _ in shared(program)] == [("x", "y")]


def views() -> None:
    """Parts of one array, with parts of one gradient."""
    x, z, w = floats(*range(6)), zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(times, 3, [x[0:3], x[3:6]], [z])
        wp.launch(times, 3, [x[0:3], z], [w])
    tape.backward(grads=ones(w))


def parts() -> None:
    """Leaves with parts of one gradient that lie apart, in two passes that are added up."""
    flat = wp.zeros(6, dtype=float)
    x, y, w = floats(1, 2, 3), floats(4, 5, 6), zeros()
    x.grad, y.grad = flat[0:3], flat[3:6]
    for _ in range(2):
        w.zero_()
        with wp.Tape() as tape:
            wp.launch(times, 3, [x, y], [w])
        tape.backward(grads=ones(w))


@pytest.mark.parametrize(
    "program", [lambda: activations(False, turns=True), views, parts],
    ids=["turns", "views", "parts"],
)  # fmt: skip
def test_right_gradients_that_are_of_one_memory(program: Callable[[], Any]) -> None:
    assert shared(program) == []
