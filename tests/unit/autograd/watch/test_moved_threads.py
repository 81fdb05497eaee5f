"""With several recording threads, the number of a tape does not identify it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import engine as wp
from engine.autograd.watch.moved import Enough, Mover
from tests.unit.autograd.watch.programs import floats, ones, square, zeros


def step(x: Any) -> None:
    y = zeros()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    tape.backward(grads=ones(y))


def quiet_step(x: Any) -> None:
    try:
        step(x)
    except Enough:
        pass


def workers(number: int) -> Callable[[], None]:
    """All are alive while the first tape is recorded."""

    def program() -> None:
        all_there = threading.Barrier(number)
        done = threading.Barrier(number)

        def work() -> None:
            all_there.wait()
            quiet_step(floats(1, 2, 3))
            done.wait()

        threads = [threading.Thread(target=work) for _ in range(number)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    return program


def one_after_the_other() -> None:
    for _ in range(3):
        workers(1)()


def beside_the_main_one() -> None:
    over = threading.Event()
    waiting = threading.Thread(target=over.wait)
    waiting.start()
    quiet_step(floats(1, 2, 3))
    over.set()
    waiting.join()


@pytest.mark.parametrize(
    ("program", "expected"),
    [(lambda: quiet_step(floats(1, 2, 3)), False), (workers(1), False), (workers(2), True),
     (one_after_the_other, False), (beside_the_main_one, False)],
    ids=["main", "one", "two", "in turn", "beside"],
)  # fmt: skip
def test_programs_with_threads(program: Callable[[], None], expected: bool) -> None:
    mover = Mover(0, 0.0)
    with wp.capturing(watcher=mover):
        program()
    assert mover.result is not None and mover.result.threads is expected
