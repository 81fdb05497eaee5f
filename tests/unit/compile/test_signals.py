"""Handlers of signals that raise while launches run in parts: nothing is half done or lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import interrupts
from engine.runtime import events

pytestmark = [
    pytest.mark.whole,
    # An exception in a `__del__` of Python is said, and goes no further.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers"),
]
F, I = wp.array(dtype=float), wp.array(dtype=int)
N = 300_000


class Late(Exception):
    pass


@wp.kernel
def counted(x: F, last: wp.array(dtype=wp.float16), n: I):
    i = wp.tid()
    wp.atomic_max(last, i % 50, wp.float16(x[i]))  # which Python brings together
    wp.atomic_add(n, 0, 1)


@wp.kernel
def in_place(x: F, n: I):
    i = wp.tid()
    x[i] = x[i] * x[i]
    wp.atomic_add(n, 0, 1)


@contextmanager
def alarms(delay: float, raises: bool = True) -> Iterator[list[int]]:
    """SIGALRM after so many seconds; its handler raises."""
    came: list[int] = []

    def handler(number: int, frame: Any) -> None:
        came.append(number)
        if raises:
            raise Late

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        yield came
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def arguments(kernel: Any) -> list[Any]:
    """They have run once: an alarm in a compiler's run may stop Python's own modules for good."""
    args = fresh(kernel)
    with wp.Tape():
        wp.launch(kernel, N, args)
    wp.launch(kernel, N, args)
    return fresh(kernel)


def fresh(kernel: Any) -> list[Any]:
    x = wp.array(np.ones(N, np.float32), dtype=float, requires_grad=True)
    more = [wp.zeros(50, dtype=wp.float16)] if kernel is counted else []
    return [x, *more, wp.zeros(1, dtype=int)]


@pytest.mark.parametrize("kernel", [counted, in_place], ids=lambda k: k.key)
def test_a_launch_is_whole_or_was_not(kernel: Any) -> None:
    args = arguments(kernel)
    wp.launch(kernel, N, args)
    start = time.perf_counter()
    for _ in range(5):
        wp.launch(kernel, N, args)
    one = (time.perf_counter() - start) / 5
    own = signal.getsignal(signal.SIGINT)
    raised = 0
    for k in range(60):
        args[-1].zero_()
        try:
            with alarms(max(one * (k % 30) / 20, 1e-6)):
                with wp.Tape():
                    wp.launch(kernel, N, args)
        except Late:
            raised += 1
            events.here.set(())  # it may have come between a block's end and its `__exit__`
        assert args[-1].numpy()[0] in (0, N), k
        assert signal.getsignal(signal.SIGINT) is own
    assert raised


def test_handlers_wait_and_are_as_they_were() -> None:
    own = signal.getsignal(signal.SIGINT)
    told: list[str] = []

    def waits() -> int:
        signal.raise_signal(signal.SIGALRM)
        signal.raise_signal(signal.SIGALRM)
        told.append("ran")
        return 7

    with alarms(100, raises=False) as came:
        assert interrupts.uninterrupted(waits) == 7
        assert told == ["ran"] and len(came) == 2
    with alarms(100) as came, pytest.raises(Late):
        interrupts.uninterrupted(waits)
    assert told == ["ran", "ran"] and len(came) == 2
    assert signal.getsignal(signal.SIGINT) is own


def test_handlers_that_are_set_meanwhile_stay() -> None:
    def mine(number: int, frame: Any) -> None: ...

    before = signal.getsignal(signal.SIGINT)
    try:
        interrupts.uninterrupted(lambda: signal.signal(signal.SIGINT, mine))
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)


def test_errors_pass() -> None:
    own = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError):
        interrupts.uninterrupted(lambda: 1 // 0)
    assert signal.getsignal(signal.SIGINT) is own


def test_a_journal_is_freed_where_a_handler_raises() -> None:
    resource = pytest.importorskip("resource")
    args = arguments(in_place)

    def run() -> None:
        for k in range(40):
            try:
                with alarms(1e-4 * (k % 20 + 1)), wp.Tape():
                    wp.launch(in_place, N, args)
            except Late:
                events.here.set(())

    run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    run()
    # Each journal is of 16 bytes a thread.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 16 * N / 1024
