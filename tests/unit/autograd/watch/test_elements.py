"""Launches that read and write parts of one array: which elements, and who wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from tests.unit.autograd.watch.programs import (
    facts,
    floats,
    ones,
    overwrites,
    put_row,
    square_row,
    twice_positive,
)


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    config.overwrites = "restore"


def rows(*values: float) -> Any:
    """A matrix with a gradient: a row for each value."""
    data = np.repeat(np.array(values, np.float32)[:, None], 3, 1)
    return wp.array(data, dtype=float, requires_grad=True)


def test_a_trajectory_in_one_array_overwrites_nothing() -> None:
    def program() -> None:
        x, y = rows(1, 0, 0, 0), rows(0, 0, 0, 0)
        with wp.Tape() as tape:
            for t in range(3):
                wp.launch(square_row, 3, [t, x], [y])
                wp.launch(put_row, 3, [t + 1, y[t]], [x])
            wp.launch(square_row, 3, [3, x], [y])
        tape.backward(grads={y: np.ones((4, 3), np.float32)})

    assert overwrites(facts(program), notes=True) == []


@pytest.mark.parametrize(("mode", "kind"), [("restore", "restored"), ("present", "wrong")])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (2, 0, 1)])
def test_the_row_that_was_read_and_who_wrote_it(order: Any, mode: Any, kind: str) -> None:
    def program() -> None:
        config.overwrites = mode
        x, y, z = rows(1, 2, 3), rows(0, 0, 0), floats(7, 8, 9)
        with wp.Tape() as tape:
            wp.launch(square_row, 3, [1, x], [y])
            for t in order:
                wp.launch(put_row, 3, [t, z], [x])
        tape.backward(grads={y: np.ones((3, 3), np.float32)})

    (f,) = overwrites(facts(program), notes=True)
    assert (f.kind, f.launch, f.by.launch) == (kind, 0, 1 + order.index(1))
    assert (f.first, f.last, f.count) == ((1, 0), (1, 2), 3)


def conditional(y: Any) -> Callable[[], None]:
    """Reads a row of x by a linear kernel where y is positive; then row 1 of x is overwritten."""

    def program() -> None:
        x, out = rows(1, 2), wp.array(y, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(twice_positive, (1, 3), [1, x], [out])
            wp.launch(put_row, 3, [1, floats(7, 8, 9)], [x])
        tape.backward(grads=ones(out))

    return program


def test_what_a_condition_keeps_from_being_read() -> None:
    assert overwrites(facts(conditional([[0.0, -1.0, 0.0]])), notes=True) == []
    (f,) = overwrites(facts(conditional([[0.0, -1.0, 3.0]])), notes=True)
    assert (f.kind, f.argument, f.by.name) == ("unneeded", "x", "put_row")
    assert (f.first, f.last, f.count) == ((1, 2), (1, 2), 1)
