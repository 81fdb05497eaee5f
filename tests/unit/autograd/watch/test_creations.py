"""The places where arrays without a gradient were made that a tape computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Made, Witness
from tests.unit.autograd.watch.programs import floats, said, square, total, zeros


def buffer() -> Any:
    return wp.empty(3, dtype=float)


MAKERS: list[tuple[Callable[[], Any], str]] = [
    (buffer, "wp.empty(3, dtype=float)"),
    (lambda: wp.zeros(3), "wp.zeros(3)"),
    (lambda: wp.zeros_like(floats(1, 2, 3), requires_grad=False),
     "wp.zeros_like(floats(1, 2, 3), requires_grad=False)"),
    (lambda: wp.array(np.zeros(3), dtype=float), "wp.array(np.zeros(3), dtype=float)"),
    (lambda: wp.zeros((2, 3))[1], "wp.zeros((2, 3))"),
]  # fmt: skip


def made(middle: Any, reads: bool = True) -> list[Made]:
    """What is told of y = x * x, loss = sum(y), with this y."""
    with wp.capturing(watcher=Witness()) as capture:
        x, loss = floats(1.5, 2.5, 3.5), zeros(1)
        y = middle()
        with wp.Tape() as tape:
            for _ in range(2):
                wp.launch(square, 3, [x], [y])
                wp.launch(total, 3, [y if reads else x], [loss])
        tape.backward(loss)
    return [f for t in capture.tapes for f in t.facts if isinstance(f, Made)]


@pytest.mark.parametrize(("make", "text"), MAKERS)
def test_the_call_that_made_it(make: Any, text: str) -> None:
    (f,) = made(make)
    assert text in said(f.at)
    assert said(f.site).startswith("wp.launch(total")
    assert f.argument == "x"


def test_nothing_is_told_of_arrays_with_a_gradient_or_that_nobody_reads() -> None:
    assert made(zeros) == []
    assert made(buffer, reads=False) == []


def test_nothing_is_told_of_constants() -> None:
    with wp.capturing(watcher=Witness()) as capture:
        x, loss = wp.zeros(3), zeros(1)
        with wp.Tape() as tape:
            wp.launch(total, 3, [x], [loss])
        tape.backward(loss)
    assert not any(isinstance(f, Made) for t in capture.tapes for f in t.facts)
