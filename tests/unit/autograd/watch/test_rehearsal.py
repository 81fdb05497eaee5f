"""Tapes that never run backward: what a pass would restore is told all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import engine as wp
from engine import config
from tests.unit.autograd.watch.programs import (
    facts,
    floats,
    ones,
    said,
    square,
    square_in_place,
    twice,
    zeros,
)

KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    KEPT.clear()
    config.overwrites = "restore"


def program(then: Callable[[Any, Any], Any], after: Callable[[Any, Any], Any] | None = None) -> Any:
    """y = x * x, and something to x, on a tape that the program keeps."""

    def run() -> None:
        x, y = floats(1, 2, 3), zeros()
        tape = wp.Tape()
        KEPT.append((tape, x, y))
        with tape:
            wp.launch(square, 3, [x], [y])
            then(x, y)
        if after is not None:
            after(x, tape)

    return run


def by_a_launch(x: Any, y: Any) -> None:
    wp.launch(twice, 3, [floats(5, 6, 7)], [x])


def test_what_the_tape_overwrote() -> None:
    (f,) = facts(program(by_a_launch))
    assert (f.kind, f.launch, f.by.name, f.by.launch) == ("restored", 0, "twice", 1)
    assert (f.gradients, f.nbytes, f.count) == (("x",), 12, 3)
    assert said(f.site) == "wp.launch(square, 3, [x], [y])"
    ((_, x, y),) = KEPT
    assert x.list() == [10, 12, 14] and x.grad.list() == [0, 0, 0] == y.grad.list()


def test_a_launch_that_overwrites_what_it_reads() -> None:
    (f,) = facts(program(lambda x, y: wp.launch(square_in_place, 3, [y])))
    assert (f.kind, f.kernel, f.gradients) == ("within", "square_in_place", ("x",))


def test_what_nothing_needs_is_a_note() -> None:
    def then(x: Any, y: Any) -> None:
        z = zeros()
        wp.launch(twice, 3, [y], [z])
        y.zero_()

    (f,) = facts(program(then))
    assert (f.kind, f.kernel, f.by.name) == ("unneeded", "twice", "zero_")


@pytest.mark.parametrize(
    "after",
    [
        lambda x, tape: x.zero_(),  # the arrays may serve something else now
        lambda x, tape: x.numpy().fill(0.0),
    ],
)
def test_a_write_after_the_tape_is_not_told(after: Any) -> None:
    assert facts(program(lambda x, y: None, after)) == []


@pytest.mark.parametrize(
    "after",
    [
        lambda x, tape: KEPT.clear(),  # dropped
        lambda x, tape: tape.reset(),
    ],
)
def test_a_tape_that_cannot_run_any_more_is_not_looked_at(after: Any) -> None:
    assert facts(program(by_a_launch, after)) == []


def test_a_pass_that_would_be_refused_is_not_told() -> None:
    config.overwrites = "error"
    assert facts(program(by_a_launch)) == []


def test_a_tape_that_did_run_is_told_of_once() -> None:
    def after(x: Any, tape: Any) -> None:
        ((_, _, y),) = KEPT
        tape.backward(grads=ones(y))

    (f,) = facts(program(by_a_launch, after))
    assert (f.kind, f.launches) == ("restored", 1)
