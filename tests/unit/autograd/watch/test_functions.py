"""Arrays that functions of record_func read in a backward pass after a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import engine as wp
from engine import config
from engine.autograd import Sought, Witness
from tests.unit.autograd.watch.programs import floats, said, square, total, zeros


@pytest.fixture(autouse=True)
def mode() -> Iterator[None]:
    before = config.overwrites
    config.overwrites = "present"
    yield
    config.overwrites = before


def lost(read: Callable[[Any, Any], Any], then: Callable[[Any], Any], off: bool = False) -> Any:
    """Of z = y * y, computed by the host, whose backward function reads what `read` does."""
    with wp.capturing(watcher=Witness()) as capture:
        x, y, z, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(), zeros(1)

        def back() -> None:
            read(y, z)

        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [x], [y])
            z.assign(y.numpy() ** 2)
            tape.record_func(back, arrays=[y, z])
            wp.launch(total, 3, [z], [loss])
            if not off:
                then(y)
        if off:
            then(y)
        tape.backward(loss)
    (sought,) = [f for f in capture.tapes[0].facts if isinstance(f, Sought)]
    (function,) = sought.functions
    return function.lost


def by_a_launch(y: Any) -> None:
    wp.launch(square, 2, [floats(7, 8)], [y])


def test_a_launch_of_the_tape_overwrote_what_the_function_reads() -> None:
    found = lost(lambda y, z: y.numpy(), by_a_launch)
    assert (found.kind, found.kernel, found.variable) == ("wrong", "back", "y")
    assert (found.by.name, found.by.launch) == ("square", 2)
    assert said(found.by.site).startswith("wp.launch(square, 2")
    assert (found.first, found.last, found.count) == ((0,), (1,), 2)


def test_the_host_did() -> None:
    found = lost(lambda y, z: y.numpy(), lambda y: y.fill_(9.0), off=True)
    assert (found.kind, found.variable, found.count) == ("outside", "y", 3)


def test_a_launch_reads_it() -> None:
    found = lost(lambda y, z: wp.launch(square, 3, [y], [z.grad]), by_a_launch)
    assert found is not None and found.variable == "y"


@pytest.mark.parametrize(
    ("read", "then"),
    [
        (lambda y, z: y.grad.numpy(), by_a_launch),
        (lambda y, z: z.numpy(), by_a_launch),
        (lambda y, z: y.numpy(), lambda y: None),
        (lambda y, z: y.numpy(), lambda y: y.numpy()),
    ],
)
def test_silent_where_the_function_does_not_read_it_or_it_is_the_same(read: Any, then: Any) -> None:
    assert lost(read, then) is None


def test_silent_where_the_tape_restores_it() -> None:
    config.overwrites = "restore"
    assert lost(lambda y, z: y.numpy(), by_a_launch) is None
