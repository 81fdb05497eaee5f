"""Tapes that are recorded once and run backward at other inputs: what was not computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.autograd.watch.detectors.overwrites import Overwrites
from tests.unit.autograd.watch.programs import (
    add,
    facts,
    floats,
    ones,
    overwrites,
    quiet,
    said,
    square,
    square_in_place,
    stale,
    times,
    total,
    twice,
    zeros,
)

MOVES: dict[str, Callable[[Any], None]] = {
    "assign": lambda x: x.assign(x.numpy() * 0.9),
    "numpy": lambda x: np.multiply(x.numpy(), 0.9, out=x.numpy()),
    "slice": lambda x: x[1:].fill_(0.7),
}


def chain(again: Callable[[list[Callable[[], None]]], None], move: Any, passes: int = 3) -> None:
    """z = (x * x)**2 and its sum, evaluated again as `again` has it."""
    x, y, z, loss = floats(1, 2, 3), zeros(), zeros(), zeros(1)
    launches = [
        lambda: wp.launch(square, 3, [x], [y]),  # first
        lambda: wp.launch(square, 3, [y], [z]),  # second
        lambda: wp.launch(total, 3, [z], [loss]),  # third
    ]
    with wp.Tape() as tape:
        for run in launches:
            run()
    tape.backward(loss)
    for _ in range(passes):
        move(x)
        loss.zero_()
        again(launches)
        tape.zero()
        tape.backward(loss)


def everything(launches: list[Callable[[], None]]) -> None:
    for run in launches:
        run()


@pytest.mark.parametrize("move", MOVES.values(), ids=list(MOVES))
def test_everything_was_computed_again(move: Any) -> None:
    assert facts(lambda: chain(everything, move)) == []


@pytest.mark.parametrize("move", MOVES.values(), ids=list(MOVES))
@pytest.mark.parametrize("left_out", [[0], [0, 1], [0, 1, 2]])
@pytest.mark.host("arrays of NumPy that are views", only=("numpy",))
def test_what_was_left_out_is_named(left_out: list[int], move: Any) -> None:
    def again(launches: list[Callable[[], None]]) -> None:
        everything([f for k, f in enumerate(launches) if k not in left_out])

    (f,) = facts(lambda: chain(again, move))
    assert (f.kind, f.array, f.by.name, f.by.launch) == ("recompute", "y", "square", 0)
    assert said(f.by.site).endswith("# first") and f.passes == 3


@pytest.mark.parametrize("left_out", [[1], [2], [1, 2]])
def test_what_no_adjoint_reads_needs_not_be_computed(left_out: list[int]) -> None:
    def again(launches: list[Callable[[], None]]) -> None:
        everything([f for k, f in enumerate(launches) if k not in left_out])

    assert facts(lambda: chain(again, MOVES["assign"])) == []


def test_inputs_that_did_not_change() -> None:
    assert facts(lambda: chain(lambda _: None, lambda x: x.assign(x.numpy()))) == []


def test_a_tape_that_is_linear_in_what_changed() -> None:
    def program() -> None:
        x, w, y = floats(1, 2, 3), floats(4, 5, 6, grad=False), zeros()
        with wp.Tape() as tape:
            wp.launch(times, 3, [x, w], [y])
            wp.launch(twice, 3, [y], [zeros()])
        for _ in range(3):
            tape.zero()
            tape.backward(grads=ones(y))
            x.assign(x.numpy() - 0.1)

    assert facts(program) == []


def test_before_the_first_pass_too() -> None:
    def program(again: bool) -> Callable[[], None]:
        def run() -> None:
            x, y, z = floats(1, 2, 3), zeros(), zeros()

            def forward() -> None:
                wp.launch(square, 3, [x], [y])
                wp.launch(square, 3, [y], [z])

            with wp.Tape() as tape:
                forward()
            x.assign([4.0, 5.0, 6.0])
            if again:
                forward()
            tape.backward(grads=ones(z))

        return run

    assert facts(program(True)) == []
    (f,) = overwrites(facts(program(False)))
    assert (f.kind, f.variable) == ("outside", "x")


def test_a_result_that_was_written_by_hand() -> None:
    def program() -> None:
        x, y, z = floats(1, 2, 3), zeros(), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            wp.launch(square, 3, [y], [z])
        tape.backward(grads=ones(z))
        tape.zero()
        y.fill_(5.0)
        tape.backward(grads=ones(z))

    (f,) = facts(program)
    assert (f.kind, f.array, f.by.name) == ("recompute", "y", "square")


def test_what_the_tape_saved_itself() -> None:
    def program() -> None:
        x, y, z = floats(1, 2, 3), zeros(), zeros()
        with wp.Tape() as tape:
            wp.copy(y, x)
            wp.launch(square_in_place, 3, [y])
            wp.launch(times, 3, [x, y], [z])
        tape.backward(grads=ones(z))
        x.assign([4.0, 5.0, 6.0])
        tape.zero()
        with quiet():
            tape.backward(grads=ones(z))

    (f,) = stale(facts(program))
    assert f.kind == "saved" and "changed outside of the tape" in f.text


def test_accumulators_are_cleared_off_the_tape() -> None:
    def program() -> None:
        x, y, z, loss = floats(1, 2, 3), zeros(), zeros(), zeros(1)

        def forward() -> None:
            wp.launch(add, 3, [x], [y])
            wp.launch(square, 3, [y], [z])
            wp.launch(total, 3, [z], [loss])

        with wp.Tape() as tape:
            forward()
        for _ in range(3):
            tape.zero()
            tape.backward(loss)
            x.assign(x.numpy() * 0.9)
            y.zero_()
            loss.zero_()
            forward()

    assert facts(program) == []


def test_present_values_of_what_the_tape_overwrites_are_said_once() -> None:
    def program() -> None:
        config.overwrites = "present"
        try:
            x, y, z = floats(1, 2, 3), zeros(), zeros()
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
                wp.launch(square, 3, [y], [z])
                y.zero_()
            for _ in range(3):
                tape.zero()
                tape.backward(grads=ones(z))
        finally:
            config.overwrites = "restore"

    (f,) = facts(program)
    assert (f.kind, f.launch, f.launches) == ("wrong", 1, 3)


def test_memory_of_a_tape_that_is_not_run_again_is_given_back() -> None:
    witness = wp.autograd.Witness()
    with wp.capturing(watcher=witness):
        for _ in range(3):
            chain(everything, MOVES["assign"], 1)
    (found,) = (d for d in witness._program.listeners("began") if isinstance(d, Overwrites))
    held = [known.recomputed for known in found._tapes.values()]
    assert sum(r is not None and r._replay is not None for r in held) == 1
