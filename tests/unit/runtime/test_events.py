"""The stream of events: who is told what, in which context and thread, and until when."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.runtime import events

F = wp.array(dtype=float)


@wp.kernel
def double(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]


class Heard(events.Observer):
    """Notes what it is told, by the names of the events."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def launching(self, kernel: Any, dim: Any, values: Any) -> None:
        self.said.append(f"launching {kernel.key}")

    def unrecorded(self, launch: Any) -> None:
        self.said.append("unrecorded")

    def launched(self, plan: Any, values: Any) -> None:
        self.said.append("launched")

    def differentiated(self, plan: Any, gradients: Any) -> None:
        self.said.append("differentiated " + " ".join(name for name, _ in gradients))

    def writing(self, memory: Any, lo: int, hi: int) -> None:
        self.said.append("writing")

    def reading(self, arrays: Any, host: bool, written: Any = ()) -> None:
        self.said.append("reading, by the host" if host else "reading")

    def made(self, a: Any) -> None:
        self.said.append("made")

    def filled(self, dest: Any) -> None:
        self.said.append("filled")

    def copied(self, dest: Any, src: Any, meant: bool, clone: bool) -> None:
        self.said.append("copied")


def arrays() -> tuple[Any, Any]:
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    return x, wp.zeros(2, dtype=float, requires_grad=True)


def launch(x: Any, y: Any) -> None:
    wp.launch(double, 2, [x], [y])


def test_a_launch_is_announced_read_written_and_told_of_in_this_order() -> None:
    x, y = arrays()
    launch(x, y)
    heard = Heard()
    with events.observing(heard):
        launch(x, y)
    first = heard.said
    assert first == ["launching double", "reading", "unrecorded", "writing", "launched"]
    launch(x, y)
    assert heard.said is first and len(first) == 5  # it is told nothing any more


def test_a_launch_on_a_tape_is_no_unrecorded_one_and_a_pass_tells_of_its_adjoints() -> None:
    x, y = arrays()
    heard = Heard()
    with events.observing(heard):
        with wp.Tape() as tape:
            launch(x, y)
        forward, heard.said = heard.said, []
        tape.backward(grads={y: np.ones(2, np.float32)})
    assert "unrecorded" not in forward and "launched" in forward
    assert "differentiated x y" in heard.said
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])


def test_arrays() -> None:
    heard = Heard()
    with events.observing(heard):
        a = wp.zeros(2, dtype=float)
        a.fill_(1.0)
        b = wp.clone(a)
        wp.copy(b, a)
        b.numpy()
    kinds = set(heard.said)
    assert {"made", "filled", "copied", "reading", "reading, by the host", "writing"} <= kinds


def test_what_a_class_heeds_is_what_it_has() -> None:
    class Silent(events.Observer):
        pass

    class Writes(Silent):
        def writing(self, memory: Any, lo: int, hi: int) -> None: ...

    assert not Silent._heeds and Writes._heeds == {"writing"}
    assert not events.are_writes_observed()
    with events.observing(Silent()):
        assert not events.are_writes_observed() and events.are_any()
    token = events.with_observer(Writes())
    assert events.are_writes_observed()
    events.restore(token)
    assert not events.are_any()


def test_every_thread_is_seen_by_an_observer_of_the_process() -> None:
    x, y = arrays()
    heard, here = Heard(), Heard()
    with events.observing(heard):
        token = events.with_observer(here)
        thread = threading.Thread(target=launch, args=(x, y))
        thread.start()
        thread.join()
        events.restore(token)
    assert "launched" in heard.said
    assert not here.said  # another context


def test_tapes_of_threads_and_tasks_are_their_own() -> None:
    seen: list[Any] = []
    with wp.Tape() as outer:
        thread = threading.Thread(target=lambda: seen.append(events.tape()))
        thread.start()
        thread.join()

        async def task() -> Any:
            inner = events.tape()
            events.leave(outer)
            return inner, events.tape()

        seen += asyncio.run(task())
        assert events.tape() is outer  # what a task ends, it ends for itself
    assert seen == [None, outer, None]


@pytest.mark.parametrize("first", ["tape", "capture"])
def test_blocks_may_end_in_any_order(first: str) -> None:
    """A tape and a capture that overlap, each of which outlives the other's end."""
    tape, capture = wp.Tape(), wp.ScopedCapture()
    order = [tape, capture] if first == "tape" else [capture, tape]
    for block in order:
        block.__enter__()
    order[0].__exit__(None, None, None)
    left = events.here.get()
    assert len(left) == 1
    assert (events.tape() is None) == (order[0] is tape)
    assert (events.graph() is None) == (order[0] is capture)
    order[1].__exit__(None, None, None)
    assert events.here.get() == ()


def test_observers_end_however_the_block_does() -> None:
    heard = Heard()
    with pytest.raises(KeyError), ExitStack() as stack:
        stack.enter_context(events.observing(heard))
        stack.enter_context(events.observing(heard))
        raise KeyError
    assert events.everywhere == []


def test_a_graph_takes_what_happens_and_observers_are_told_when_it_runs() -> None:
    x, y = arrays()
    heard = Heard()
    with events.observing(heard):
        with wp.ScopedCapture() as capture:
            launch(x, y)
        assert "launching double" not in heard.said
        for _ in range(3):
            wp.capture_launch(capture.graph)
    assert heard.said.count("launching double") == heard.said.count("launched") == 3


def test_a_tape_that_is_passed_over_is_known_while_a_graph_runs() -> None:
    x, y = arrays()
    found: list[Any] = []

    class Looks(events.Observer):
        def launching(self, kernel: Any, dim: Any, values: Any) -> None:
            found.append((events.tape(), events.passed_over()))

    with wp.ScopedCapture() as capture:
        launch(x, y)
    command = wp.launch(double, 2, [x], [y], record_cmd=True)
    with events.observing(Looks()):
        with wp.Tape() as tape:
            wp.capture_launch(capture.graph)
            command.launch()
            assert events.tape() is tape and events.passed_over() is None
        wp.capture_launch(capture.graph)
    (none, over), (no_tape, by_command), alone = found
    assert none is no_tape is None and alone == (None, None)
    assert (over.tape, over.kind) == (tape, "graph")
    assert (by_command.tape, by_command.kind) == (tape, "command")
    assert not tape.records


@pytest.mark.parametrize("setting", ["print_launches", "verify_fp"])
def test_settings_have_observers(
    setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = arrays()
    x.fill_(np.inf)
    launch(x, y)
    assert not capsys.readouterr().out
    monkeypatch.setattr(wp.config, setting, True)
    assert len(events.observers()) == 1
    launch(x, y)
    assert "kernel" in capsys.readouterr().out
    monkeypatch.setattr(wp.config, setting, False)
    assert events.observers() == ()


def test_names_of_events_are_free_for_users_on_tapes() -> None:
    class Own(wp.Tape):
        def launched(self) -> int:  # type: ignore[override]
            return len(self.records)

        def made(self) -> str:
            return "mine"

    x, y = arrays()
    tape: Any = Own()
    tape.notes = "run 1"
    with events.observing(Heard()), wp.capturing() as capture, tape:
        launch(x, y)
    assert (tape.launched(), tape.made(), tape.notes) == (1, "mine", "run 1")
    assert not capture.tapes  # it was made before


def test_a_capture_that_a_recorded_function_begins_goes_on_after_the_pass() -> None:
    x, y = arrays()

    def begin() -> None:
        wp.capture_begin()
        launch(x, y)

    with wp.Tape() as tape:
        tape.record_func(begin, [x])
    with wp.Tape() as outer:
        tape.backward()
        assert events.tape() is outer
        graph = wp.capture_end()
    assert len(graph) == 1 and events.here.get() == ()


def test_a_launch_is_logged_before_observers_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = arrays()
    monkeypatch.setattr(wp.config, "print_launches", True)

    def fails(*what: Any) -> None:
        raise KeyError

    with pytest.raises(KeyError), wp.capturing(on_launch=fails):
        launch(x, y)
    assert "double" in capsys.readouterr().out


def test_an_observer_may_be_there_twice_and_one_end_is_one() -> None:
    x, y = arrays()
    heard = Heard()
    with events.observing(heard):
        with events.observing(heard):
            launch(x, y)
        launch(x, y)
    assert heard.said.count("launched") == 3
    events.enter(heard)
    events.enter(heard)
    events.leave(heard)
    assert events.here.get() == (heard,)
    events.leave(heard)
    assert events.here.get() == ()


@wp.kernel
def expects(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]
    wp.expect_eq(x[i], 0.0)


def test_a_launch_whose_expectation_fails_has_run_and_is_told_of() -> None:
    x, y = arrays()
    heard = Heard()
    with events.observing(heard), pytest.raises(wp.LaunchError, match="E210"):
        wp.launch(expects, 2, [x], [y])
    assert heard.said[-1] == "launched"
    np.testing.assert_array_equal(y.numpy(), [2.0, 4.0])


def test_an_observer_that_fails_ends_no_block_around_it() -> None:
    class Fails(events.Observer):
        def follows(self, tape: Any) -> bool:
            return tape is inner

        def tape_reversed(self, tape: Any, done: bool) -> None:
            raise KeyError("of an observer")

    x, y = arrays()
    with wp.Tape() as inner:
        launch(x, y)
    with wp.Tape() as outer:
        with events.observing(Fails()), pytest.raises(KeyError, match="of an observer"):
            inner.backward(grads={y: np.ones(2, np.float32)})
        launch(x, y)
    assert len(outer.records) == 1


def test_observers_nest_and_each_is_told_once() -> None:
    x, y = arrays()
    one, two = Heard(), Heard()
    with events.observing(one):
        with events.observing(two):
            launch(x, y)
        launch(x, y)
    assert one.said.count("launched") == 2 and two.said.count("launched") == 1
