"""Programs whose threads have tapes and arrays of their own, all watched by one witness."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import engine as wp
from tests.unit.autograd.watch.programs import facts, floats, square, stale, total, zeros

THREADS, STEPS = 6, 12


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], Any]) -> Callable[[], None]:
    def program() -> None:
        errors: list[BaseException] = []

        def go(number: int) -> None:
            try:
                work(number)
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=go, args=(k,)) for k in range(THREADS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert errors == []

    return program


def train(number: int, clear: bool) -> None:
    x = floats(1 + number, 2, 3)
    for k in range(STEPS):
        y, loss = zeros(), zeros(1)
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        step = x.grad.numpy()
        if clear:
            assert step.tolist() == (2 * x.numpy()).tolist()
            tape.zero()
        x.assign(x.numpy() - 0.125 * (k + 1) * step)


def test_right_programs_are_silent() -> None:
    for _ in range(3):
        assert facts(in_threads(lambda k: train(k, True))) == []


def test_every_mixture_of_every_thread_counts() -> None:
    for _ in range(3):
        found = stale(facts(in_threads(lambda k: train(k, False))))
        assert {f.kind for f in found} == {"values"}
        assert sum(f.passes for f in found) == THREADS * (STEPS - 1)


def test_tapes_that_never_run_backward() -> None:
    def work(number: int) -> None:
        x = floats(1 + number, 2, 3)
        for _ in range(STEPS):
            y = zeros()
            with wp.Tape():
                wp.launch(square, 3, [x], [y])
            wp.launch(square, 3, [y], [zeros()])
            assert y.list() == [(1 + number) ** 2, 4, 9]

    assert facts(in_threads(work)) == []
