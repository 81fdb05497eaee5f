"""Blocks of tapes and captures end, wherever in them a signal's handler raises."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.locks import Lock
from engine.runtime import events
from engine.runtime.links import Gathered, _gathering

F = wp.array(dtype=float)
ENGINE = str(Path(wp.__file__).parent)


class Stop(BaseException):
    pass


@wp.kernel
def double(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@contextmanager
def raising(where: str) -> Iterator[list[str]]:
    """Raises where a function of the engine begins, as Python has handlers of signals do."""
    came: list[str] = []

    def trace(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if code.co_name == where and code.co_filename.startswith(ENGINE):
            came.append(where)
            sys.settrace(None)
            raise Stop

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        yield came
    finally:
        sys.settrace(before)


def check_works() -> None:
    """Launches run, and tapes record."""
    assert events.tape() is None
    assert events.graph() is None
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 2, [x], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_array_equal(y.numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])
    with wp.ScopedCapture() as capture:
        wp.launch(double, 2, [y], [x])
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(x.numpy(), [4.0, 8.0])


def interrupted(block: AbstractContextManager[Any], where: str) -> None:
    with pytest.raises(Stop) as raised, raising(where) as came, block:
        pass
    assert came, f"{where} does not run"
    assert raised.value.__traceback__ is not None  # which a notebook keeps
    check_works()


@pytest.mark.parametrize(
    "where", ["__enter__", "_join", "__exit__", "_left", "_end", "enter", "leave"]
)
def test_a_tape_records_no_more_wherever_a_handler_raises(where: str) -> None:
    tape = wp.Tape()
    interrupted(tape, where)
    with tape:
        assert events.tape() is tape


@pytest.mark.parametrize(
    "where",
    ["__enter__", "capture_begin", "_begin", "__exit__", "capture_end", "_end", "graph_steps"],
)
def test_a_capture_ends_wherever_a_handler_raises(where: str) -> None:
    interrupted(wp.ScopedCapture(), where)


def test_structs_of_arrays_are_gathered_for_one_launch_wherever_a_handler_raises() -> None:
    for where in ("__enter__", "__exit__", "_end"):
        with pytest.raises(Stop), raising(where), Gathered(False):
            pass
        assert _gathering.get() is None, where


def test_a_lock_is_taken_and_given_back_without_python() -> None:
    lock = Lock()
    came: list[str] = []

    def trace(frame: FrameType, event: str, arg: object) -> None:
        # Before the lock is taken, Python asks for what takes it and what gives it back.
        if frame.f_globals.get("__name__") == "engine.locks" and is_taken():
            came.append(frame.f_code.co_name)

    def is_taken() -> bool:
        return bool(lock._lock._is_owned())  # type: ignore[attr-defined]

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        with lock:
            taken = is_taken()
    finally:
        sys.settrace(before)
    assert taken
    assert not is_taken()
    assert not came


def test_a_capture_that_cannot_begin_does_not_end_the_one_around_it() -> None:
    x, y = wp.ones(2, dtype=float), wp.zeros(2, dtype=float)
    with wp.ScopedCapture() as outer:
        with pytest.raises(wp.EngineError, match="E213"), wp.ScopedCapture():
            pass
        wp.launch(double, 2, [x], [y])
    assert not y.numpy().any()
    wp.capture_launch(outer.graph)
    np.testing.assert_array_equal(y.numpy(), [2.0, 2.0])


@pytest.mark.parametrize("make", [wp.Tape, wp.ScopedCapture])
def test_who_looks_at_the_exit_ends_nothing(make: Any) -> None:
    found: Any = events.tape if make is wp.Tape else events.graph
    block = make()
    assert hasattr(block, "__exit__")
    with block:
        assert hasattr(block, "__exit__")
        assert callable(make.__exit__)
        assert found() is not None
    assert found() is None
    block = make()
    block.__enter__()
    assert hasattr(block, "__exit__")
    assert found() is not None
    block.__exit__(None, None, None)
    assert found() is None
    with ExitStack() as stack:
        stack.enter_context(make())
        assert found() is not None
    check_works()


def test_a_class_of_its_own_may_leave_as_it_wants() -> None:
    class Own(wp.Tape):
        left = False

        def __exit__(self, *exc: object) -> None:
            super().__exit__(*exc)
            self.left = True

    tape = Own()
    x, y = wp.ones(2, dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    for _ in range(2):
        with tape:
            wp.launch(double, 2, [x], [y])
    assert tape.left
    assert len(tape.records) == 2
    check_works()
