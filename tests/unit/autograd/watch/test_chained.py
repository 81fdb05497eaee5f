"""Gradients that end between two tapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import engine as wp
from engine.autograd import Broken
from tests.unit.autograd.watch.programs import facts, floats, said, square, total, zeros


def chained(after: Callable[..., None], between: Callable[[Any], None] = lambda y: None) -> Any:
    """y = x * x on one tape, loss = sum(y) on another, which runs backward; then `after`."""

    def program() -> None:
        x, y, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(1)
        first, second = wp.Tape(), wp.Tape()
        with first:
            wp.launch(square, 3, [x], [y])
        between(y)
        with second:
            wp.launch(total, 3, [y], [loss])
        second.backward(loss)
        after(x, y, first)

    return program


def found(program: Callable[[], None]) -> list[Broken]:
    return [f for f in facts(program) if isinstance(f, Broken)]


def by_a_launch(x: Any, y: Any, first: Any) -> None:
    wp.launch(square, 3, [x.grad], [zeros(grad=False)])


@pytest.mark.parametrize(
    "read",
    [
        lambda x, y, first: x.grad.numpy(),
        lambda x, y, first: wp.clone(x.grad),
        by_a_launch,
    ],
)
def test_zeros_that_are_read_of_an_input_of_a_tape_that_never_ran(read: Any) -> None:
    (f,) = found(chained(read))
    assert (f.kind, f.name, f.inputs) == ("tape", "y", ("x",))
    assert said(f.site) == "second.backward(loss)"


@pytest.mark.parametrize("forget", ["reset", "gone"])
def test_the_first_tape_need_not_be_there_any_more(forget: str) -> None:
    def encode(x: Any) -> tuple[Any, Any]:
        y = zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        return y, tape if forget == "reset" else None

    def program() -> None:
        x, loss = floats(1.5, 2.5, 3.5), zeros(1)
        y, first = encode(x)
        if first is not None:
            first.reset()
        with wp.Tape() as second:
            wp.launch(total, 3, [y], [loss])
        second.backward(loss)
        x.grad.numpy()

    (f,) = found(program)
    assert (f.kind, f.name, f.inputs) == ("tape", "y", ("x",))


def handed_on(x: Any, y: Any, first: Any) -> None:
    first.backward(grads={y: y.grad})
    x.grad.numpy()


def handed_on_late(x: Any, y: Any, first: Any) -> None:
    x.grad.numpy()
    first.backward(grads={y: y.grad})


def by_hand(x: Any, y: Any, first: Any) -> None:
    x.grad.assign(2.0 * x.numpy() * y.grad.numpy())
    x.grad.numpy()


def trained_elsewhere(x: Any, y: Any, first: Any) -> None:
    loss = zeros(1)
    with wp.Tape() as tape:
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    tape.zero()
    x.grad.numpy()


@pytest.mark.parametrize(
    "after",
    [
        handed_on,
        handed_on_late,
        by_hand,
        trained_elsewhere,
        lambda x, y, first: None,  # nobody wants it
        lambda x, y, first: y.grad.numpy(),
        lambda x, y, first: x.numpy(),
    ],
)
def test_silent_where_it_is_handed_on_or_nobody_reads_it(after: Any) -> None:
    assert found(chained(after)) == []


def test_silent_where_a_tape_that_is_gone_had_trained_a_part_of_it() -> None:
    def train(x: Any) -> None:
        loss = zeros(1)
        with wp.Tape() as tape:
            wp.launch(total, 2, [x[1:]], [loss])
        tape.backward(loss)
        tape.zero()

    def program() -> None:
        x, y, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(1)
        train(x)
        first = wp.Tape()
        with first:
            wp.launch(square, 3, [x], [y])
        with wp.Tape() as second:
            wp.launch(total, 3, [y], [loss])
        second.backward(loss)
        x.grad.numpy()

    assert found(program) == []


def test_silent_where_the_array_was_cleared_in_between() -> None:
    assert found(chained(lambda x, y, first: x.grad.numpy(), lambda y: y.zero_())) == []


def test_a_meant_stop_is_none() -> None:
    def program() -> None:
        x, y, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(1)
        with wp.Tape():
            wp.launch(square, 3, [x], [y])
        y = wp.stop_gradient(y)
        with wp.Tape() as second:
            wp.launch(total, 3, [y], [loss])
        second.backward(loss)
        x.grad.numpy()

    assert found(program) == []


def by_way_of(between: Callable[[Any, Any], Any], own: bool = False, read: bool = True) -> Any:
    """A tape makes y; something off the tapes makes z of it; another tape goes on from z.

    own: the first tape also runs backward, from a loss of its own; else from what arrived at y.
    """

    def program() -> None:
        x, y, z, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(), zeros(1)
        with wp.Tape() as first:
            wp.launch(square, 3, [x], [y])
        z = between(y, z) or z
        with wp.Tape() as second:
            wp.launch(total, 3, [z], [loss])
        second.backward(loss)
        first.backward(grads={y: y.grad if not own else floats(1, 1, 1)})
        if read:
            x.grad.numpy()

    return program


def launched_between(y: Any, z: Any) -> None:
    wp.launch(square, 3, [y], [z])


@pytest.mark.parametrize(
    ("between", "kind", "line"),
    [
        (launched_between, "launch", "wp.launch(square, 3, [y], [z])"),
        (lambda y, z: wp.copy(z, y), "copy", "wp.copy(z, y)"),
        (lambda y, z: wp.clone(y), "copy", "wp.clone(y)"),
    ],
)
def test_what_is_made_off_the_tapes_between_two_ends_a_gradient(
    between: Any, kind: str, line: str
) -> None:
    (f,) = found(by_way_of(between))
    assert (f.kind, f.inputs) == (kind, ("x",)) and line in said(f.site)
    assert said(f.to) == "wp.launch(total, 3, [z], [loss])"


def test_silent_where_a_gradient_arrives_by_another_way_or_none_is_wanted() -> None:
    assert found(by_way_of(launched_between, own=True)) == []
    assert found(by_way_of(launched_between, read=False)) == []
    assert found(by_way_of(lambda y, z: y.detach())) == []
    assert found(by_way_of(lambda y, z: wp.copy(z, wp.stop_gradient(y)))) == []
