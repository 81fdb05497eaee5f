"""Operations of a tape while its records are forgotten at each step in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

import engine as wp
from tests.unit.runtime.launching import in_place, made, scale, total
from tests.unit.runtime.sequences import ONE_CALL
from tests.unit.tape.unseen_sequences import quiet

pytestmark = [*ONE_CALL, pytest.mark.cold("steps through the first pass")]

N = 4
# Modules: another thread may run at each step of Python in them.
PLACES = ("engine.tape", "engine.runtime")


@pytest.fixture(scope="module", autouse=True)
def native() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, quiet(patch):
        for kernel in (scale, total, in_place):
            kernel.forget()
        for _ in range(4):  # until nothing is to be compiled
            tape, loss = program("rows")
            tape.backward(loss)
        yield


def program(kind: str) -> tuple[wp.Tape, Any]:
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    if kind == "records":
        assert tape.records == []
    launches(tape, loss, kind)
    return tape, loss


def launches(tape: wp.Tape, loss: Any, kind: str = "") -> None:
    x, y = made(N), made(N)
    with tape:
        wp.launch(scale, N, [x, y, 0.5])
        if kind == "journals":
            wp.launch(in_place, N, [y])
        if kind == "copies":
            wp.copy(y, x)
        wp.launch(total, N, [y], [loss])


def interrupted(work: Callable[[], object], at: int, by: Callable[[], object]) -> bool:
    """Runs one function, and another at one step of it; whether it had so many."""
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not str(frame.f_globals.get("__name__")).startswith(PLACES):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                sys.settrace(None)
                by()
                return None
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 asks before the first trace
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return left <= 0


WORKS: dict[str, Callable[[wp.Tape, Any], object]] = {
    "record": lambda tape, loss: launches(tape, loss),
    "backward": lambda tape, loss: tape.backward(loss),
    "zero": lambda tape, loss: tape.zero(),
    "gradients": lambda tape, loss: tape.gradients,
    "memory": lambda tape, loss: tape.memory,
    "reset": lambda tape, loss: tape.reset(),
}
FORGET: dict[str, Callable[[wp.Tape], object]] = {
    "clear": lambda tape: tape.records.clear(),
    "reset": wp.Tape.reset,
}


@pytest.mark.parametrize("forget", FORGET)
@pytest.mark.parametrize("kind", ["rows", "records", "journals", "copies"])
@pytest.mark.parametrize("work", WORKS)
def test_at_each_step(work: str, kind: str, forget: str) -> None:
    at, raised = 0, []
    while True:
        at += 1
        tape, loss = program(kind)
        try:
            inside = interrupted(lambda: WORKS[work](tape, loss), at, lambda: FORGET[forget](tape))
        except (IndexError, KeyError, AttributeError, AssertionError) as e:
            raised.append((at, e))
            inside = True
        if not inside:
            break
    assert at > 1
    assert not raised
