"""Further runs of a target add to the results of its tapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adtool import reruns
from adtool.job import CheckOptions, Job
from adtool.outcome import Settled
from adtool.reruns import _with
from adtool.rules import load_rules
from adtool.steps import settling
from engine.autograd import Broken, Event, Moved, Sought, TapeResult
from engine.diagnostics import Span

COPY = Broken(
    "copy", "wp.array(o.numpy())", Span("rnn.py", 17, 13, 17, 40), ("o",),
    to=Span("rnn.py", 18, 5, 18, 40),
)  # fmt: skip


def host(line: int, to: int, file: str = "rnn.py") -> Broken:
    return Broken("host", "", Span(file, line, 22, line, 31), ("o",), to=Span(file, to, 5, to, 40))


def running(monkeypatch: pytest.MonkeyPatch, moved: Callable[[float], Moved | None]) -> None:
    """Has runs give this, by their step."""

    def settle(sought: Sought, *_: object) -> Settled:
        course = settling(sought)
        step = next(course)
        while True:
            try:
                step = course.send(moved(step))
            except StopIteration as end:
                found: Settled = end.value
                return found

    monkeypatch.setattr(reruns, "_settle", settle)


@pytest.mark.parametrize(("line", "to"), [(17, 18), (17, 30), (12, 18)])
def test_a_way_that_was_followed_is_told_once(line: int, to: int, launch: Any) -> None:
    tape = TapeResult(0, (launch(0),), facts=(COPY,))
    assert _with(tape, host(line, to), True).facts == (COPY,)


@pytest.mark.parametrize("other", [host(12, 30), host(17, 18, "other.py")])
def test_another_way_is_told_too(other: Broken, launch: Any) -> None:
    tape = TapeResult(0, (launch(0),), facts=(COPY,))
    assert _with(tape, other, True).facts == (COPY, other)
    assert _with(TapeResult(0, (launch(0),)), other, True).facts == (other,)


@pytest.mark.parametrize(
    ("rerun", "seconds", "told"), [(None, 9.0, True), (False, 0.1, True), (None, 0.1, False)]
)
def test_what_was_not_followed_is_told(
    rerun: bool | None, seconds: float, told: bool, session: Any, launch: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Where the program is not run again, what only that would tell is a note."""
    running(monkeypatch, lambda step: None)
    read = Span("rnn.py", 12, 5, 12, 30)
    sought = Sought(0, 1.0, 0.5, (read,), (), ("o",))
    made = session(TapeResult(0, (launch(0),), facts=(sought,)))
    made = replace(made, script_seconds=seconds)
    job = Job(made.target, CheckOptions(rerun=rerun))
    (tape,) = reruns.settled(made, job, None).tapes
    assert [u.site for u in tape.unchecked] == [read] * told
    after = replace(made, tapes=(tape,))
    notes = [f for r in load_rules() if r.code == "G012" for f in r.check(after)]
    assert [(f.severity, f.line) for f in notes] == [("note", 12)] * told
    start = "a path through the host was not checked in tape 0: to see whether the loss depends on"
    assert all(f.message.startswith(start) for f in notes)


@pytest.mark.parametrize(
    ("value", "threads", "told"),
    [(1.0, False, False), (1.00005, False, False), (1.5, False, True), (1.0, True, True)],
)
def test_a_program_that_does_not_do_the_same_twice_is_told(
    value: float,
    threads: bool,
    told: bool,
    session: Any,
    launch: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running(monkeypatch, lambda step: Moved(step, value + step * 0.5, (), "", threads))
    read = Span("rnn.py", 12, 5, 12, 30)
    made = session(TapeResult(0, (launch(0),), facts=(Sought(0, 1.0, 0.5, (read,), (), ("o",)),)))
    (tape,) = reruns.settled(made, Job(made.target, CheckOptions()), None).tapes
    assert [u.site for u in tape.unchecked] == [read] * told and not tape.facts_of("Broken")
    assert all("a repeated run gave other values" in u.reason for u in tape.unchecked)


@pytest.mark.parametrize(("apart", "accused"), [(0.0, True), (2e-5, False), (1e-6, True)])
def test_sums_that_come_in_another_order_each_time(
    apart: float, accused: bool, session: Any, launch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of GPUs: what they leave uncertain accuses nobody, and what is wrong is told."""
    slope = 0.5 * 1.01

    def moved(step: float) -> Moved:
        off = apart * (1 if step >= 0 else -1)
        event = Event(0, read, str(step))
        return Moved(step, 1.0 + off + step * slope, (event,), "", False)

    running(monkeypatch, moved)
    read = Span("rnn.py", 12, 5, 12, 30)
    made = session(TapeResult(0, (launch(0),), facts=(Sought(0, 1.0, 0.5, (read,), (), ("o",)),)))
    (tape,) = reruns.settled(made, Job(made.target, CheckOptions()), None).tapes
    assert bool(tape.facts_of("Broken")) is accused
