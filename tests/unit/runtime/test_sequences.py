"""Captured launches as one call, against each by itself: values, gradients, records, listeners."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.accel import batch, launcher
from engine.compile.cpu import schedule
from engine.diagnostics import EngineError
from engine.runtime import events
from engine.runtime.guards import Guard
from engine.tape.capture import capturing
from tests.unit.runtime.launching import NATIVE, F, made, scale, talks, total, turns, way
from tests.unit.runtime.sequences import (
    ONE_CALL,
    Program,
    add,
    overwriting,
    plain,
    record,
    rollout,
    several,
    training,
)

pytestmark = ONE_CALL


class Counted:
    """How many calls of compiled code there were, and of how many launches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        assert NATIVE is not None
        many = NATIVE.many

        def counted(at: int, first: int, end: int, progress: int) -> Any:
            self.calls.append(end - first)
            return many(at, first, end, progress)

        functions = NATIVE._replace(many=counted)
        monkeypatch.setattr(launcher.maker, "made", functions)

    def taken(self) -> list[int]:
        found, self.calls = self.calls, []
        return found


def test_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    with way(monkeypatch, "native") as m:
        count = Counted(m)
        p = rollout("arrays")(7)
        for k in range(4):
            for graph in p.graphs:
                wp.capture_launch(graph)
            expected = [[], [10], [10, 10, 10], [10, 10, 10]][k]
            found = count.taken()
            assert found == expected or k == 1
        assert p.tapes[0]._unmade is not None  # nobody has looked
        assert len(p.tapes[0].records) == 10
        assert p.tapes[0]._unmade is None
        wp.capture_launch(p.graphs[1])
        assert count.taken() == []  # they are as all others now
        p = several(7)
        for _ in range(2):
            wp.capture_launch(p.graphs[0])
        assert count.taken() == [27]
        p = overwriting(7)
        for _ in range(3):
            wp.capture_launch(p.graphs[0])
        assert max(count.taken(), default=0) < 9


def test_it_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs that were captured and ran before the launcher was there."""
    monkeypatch.setattr(schedule, "LEAST", 400_000)
    with way(monkeypatch, short=True):
        p = training(5)
        for _ in range(30):
            wp.capture_launch(p.graphs[0])
    with way(monkeypatch, "native") as m:
        count = Counted(m)
        for _ in range(3):
            wp.capture_launch(p.graphs[0])
        assert count.taken()[:2] == [2, 1]  # each adds to the loss


def test_large_launches_are_cut_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run between calls, whatever the number of threads."""
    monkeypatch.setattr(schedule, "LEAST", 400_000)
    found = []
    for short, threads in ((False, 1), ("native", 1), ("native", 2), ("native", 7)):
        monkeypatch.setattr(wp.config, "num_threads", threads)
        with way(monkeypatch, short):
            x, y, loss = made(5), made(400_000), wp.zeros(1, dtype=float)
            with wp.ScopedCapture() as capture:
                for _ in range(3):
                    wp.launch(add, 5, [x, 1.0])
                    wp.launch(add, 1, [x, 1.0])
                    wp.launch(scale, 400_000, [y, y, 0.9])
                    wp.launch(total, 400_000, [y, loss])
            for _ in range(4):
                wp.capture_launch(capture.graph)
            found.append((x.numpy().tobytes(), y.numpy().tobytes(), loss.numpy().tobytes()))
            if short:
                monkeypatch.setattr(schedule, "LEAST", 0)
                wp.capture_launch(capture.graph)
                monkeypatch.setattr(schedule, "LEAST", 400_000)
    assert all(f == found[0] for f in found)


@pytest.mark.parametrize("taped", [False, True])
def test_messages_and_failures(taped: bool, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """They come in the order of the launches; a failed expectation ends the run after its own."""
    said = []
    for short in (False, "native"):
        with way(monkeypatch, short):
            zero, x, tape = wp.zeros(2, dtype=float), wp.zeros(2, dtype=float), wp.Tape()
            given = wp.zeros(2, dtype=float)

            def block() -> None:
                wp.launch(talks, 2, [zero])
                wp.launch(add, 2, [x, 1.0])
                wp.launch(talks, 2, [given])
                wp.launch(add, 2, [x, 1.0])

            with wp.ScopedCapture() as capture:
                if taped:
                    with tape:
                        block()
                else:
                    block()
            for value in (0.0, 0.0, 0.0, 2.0, 2.0, 0.0):
                given.fill_(value)
                try:
                    wp.capture_launch(capture.graph)
                except EngineError as e:
                    found = e.diagnostics[0]
                    said.append((found.code, found.message, found.span.file, found.span.line))
                said.append((capfd.readouterr().out, x.list(), len(tape.records)))
    half = len(said) // 2
    assert said[:half] == said[half:]
    assert said[3][0] == "E210"


def test_one_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launches before it have run, those after it have not."""
    monkeypatch.setattr(schedule, "LEAST", 400_000)

    @wp.kernel
    def refuses(x: F):
        x[0] = x[0] + 1.0
        wp.expect_eq(wp.min(x[0], 3.0), x[0])

    found = []
    for short in (False, "native"):
        with way(monkeypatch, short):
            x, y, tape = wp.zeros(1, dtype=float), wp.zeros(1, dtype=float), wp.Tape()
            y.requires_grad = True
            with wp.ScopedCapture() as capture, tape:
                wp.launch(add, 1, [y, 1.0])
                wp.launch(refuses, 1, [x])
                wp.launch(add, 1, [y, 1.0])
            for _ in range(5):
                try:
                    wp.capture_launch(capture.graph)
                except EngineError as e:
                    found.append(e.diagnostics[0].code)
                found.append((x.list(), y.list(), [r.name for r in tape.records]))
    assert found[: len(found) // 2] == found[len(found) // 2 :]


def test_limits_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the stack: an adjoint goes on in the form that saves less, or ends with an error."""
    n, found = 4, []
    for short in (False, "native"):
        with way(monkeypatch, short):
            x, y, tape = made(n), made(n), wp.Tape()
            with wp.ScopedCapture() as capture:
                with tape:
                    wp.launch(turns, n, [x, y, 2000])
                    wp.launch(scale, n, [x, y, 1.0])
                tape.backward(grads={y: np.ones(n, np.float32)})
            with monkeypatch.context() as m:
                for limit in (None, None, None, 12000, 12000, 16, None):
                    if limit is None:
                        m.undo()
                    else:
                        m.setattr(wp.config, "stack_limit_bytes", limit)
                    try:
                        wp.capture_launch(capture.graph)
                    except EngineError as e:
                        found.append(e.diagnostics[0].notes)
                    found.append((x.grad.numpy().tobytes(), tape.memory))
                    m.undo()
                    (m.setattr(launcher.maker, "asked", True))
    half = len(found) // 2
    assert found[:half] == found[half:]


def changes() -> dict[str, Callable[[Program, Any], Any]]:
    """What may be otherwise at the next run."""

    def off(p: Program, m: Any) -> None:
        p.arrays[1].requires_grad = False

    def gradient(p: Program, m: Any) -> None:
        p.arrays[0].grad = wp.full(p.arrays[0].shape, 3.0, dtype=float)

    def retained(p: Program, m: Any) -> None:
        p.arrays[1].retain_grad = True

    def present(p: Program, m: Any) -> None:
        m.setattr(wp.config, "overwrites", "present")

    def eager(p: Program, m: Any) -> None:
        m.setattr(wp.config, "tape_snapshots", "eager")

    def no_snapshots(p: Program, m: Any) -> None:
        m.setattr(wp.config, "tape_snapshots", "off")

    def exposed(p: Program, m: Any) -> Any:
        m.setattr(wp.config, "snapshot_exposed_bytes", 1 << 20)
        return [a.numpy() for a in p.arrays]

    def no_backward(p: Program, m: Any) -> None:
        m.setattr(wp.config, "enable_backward", False)

    def checked(p: Program, m: Any) -> None:
        m.setattr(wp.config, "verify_fp", True)

    def guarded(p: Program, m: Any) -> None:
        p.arrays[1].storage.guard = Guard("somebody", None)

    def replaced(p: Program, m: Any) -> None:
        p.tapes[0].reset()

    def taken(p: Program, m: Any) -> Any:
        return p.tapes[0].records

    return {f.__name__: f for f in (off, gradient, retained, present, eager, no_snapshots, exposed,
                                    no_backward, checked, guarded, replaced, taken)}  # fmt: skip


@pytest.mark.filterwarnings("ignore:no gradient flows")
@pytest.mark.parametrize("change", sorted(changes()))
@pytest.mark.parametrize("make", [training, rollout("arrays")], ids=["training", "rollout"])
def test_what_changes(
    make: Callable[[int], Program], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short), monkeypatch.context() as m:
            p, out, kept = make(5), [], []
            for k in range(9):
                if k == 4:
                    kept.append(changes()[change](p, m))
                if k == 7:
                    m.undo()
                    monkeypatch.setattr(launcher.maker, "asked", True)
                for graph in p.graphs:
                    try:
                        wp.capture_launch(graph)
                    except EngineError as e:
                        out.append(e.diagnostics[0].message)
                if k > 5:
                    out.append([record(t) for t in p.tapes])
                out.append([x.numpy().tobytes() for a in p.arrays for x in (a, a.grad)
                            if x is not None])  # fmt: skip
                out.append([len(x) for x in kept if x is not None])
            found.append(plain(out))
    for a, b in zip(*found, strict=True):
        assert a == b


class Keys(events.Observer):
    """Notes the kernels that are launched."""

    def __init__(self, launched: list[str]) -> None:
        self.keys = launched

    def launching(self, kernel: Any, dim: Any, values: Any) -> None:
        self.keys.append(kernel.key)


def test_who_listens_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short):
            p, launched, out = training(5), [], []
            for k in range(6):
                if k % 2:
                    events.everywhere.append(Keys(launched))
                try:
                    wp.capture_launch(p.graphs[0])
                finally:
                    events.everywhere.clear()
                with capturing() as capture:
                    wp.capture_launch(p.graphs[0])
                out.append((capture.launches, [[r.name for r in t.records] for t in capture.tapes]))
            found.append((launched, out, [a.numpy().tobytes() for a in p.arrays]))
    assert found[0] == found[1]


def test_bounds_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by who begins to watch after many runs."""
    from engine.runtime.watch import watching

    with way(monkeypatch, "native"):
        x = made(5)
        with wp.ScopedCapture() as capture:
            for _ in range(4):
                wp.launch(add, 6, [x[:5], 0.0])
        whole = made(8)
        with wp.ScopedCapture() as fine:
            for _ in range(4):
                wp.launch(add, 6, [whole, 0.0])
        for _ in range(3):
            wp.capture_launch(fine.graph)
        faults: list[Any] = []
        with watching(faults.append):
            wp.capture_launch(fine.graph)
            assert not faults
            wp.capture_launch(capture.graph)
        assert faults


@pytest.mark.parametrize("taped", [False, True])
def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, taped: bool) -> None:
    """It ends a long sequence between two launches; the tape has a record of each that ran."""

    @wp.kernel
    def slow(x: F):
        a = x[0]
        for _ in range(100_000):
            a = wp.sin(a) + 1.0
        x[0] = a
        x[1] = x[1] + 1.0

    x = wp.zeros(2, dtype=float)
    tape = wp.Tape()
    with way(monkeypatch, "native"):
        with wp.ScopedCapture() as capture, tape if taped else nullcontext():
            for _ in range(3000):
                wp.launch(slow, 1, [x])
        small = wp.zeros(2, dtype=float)
        wp.launch(slow, 1, [small])
        if not taped:
            capture.graph._steps[0][0]._ran = 1

        def interrupt(number: int, frame: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        gc.collect()
        gc.disable()  # Python drops what is raised while it removes what others have left
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                wp.capture_launch(capture.graph)
        finally:
            gc.enable()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert 0 < x.numpy()[1] < 3000
        if taped:
            assert 0 <= x.numpy()[1] - len(tape.records) <= 1
        assert time.perf_counter() - began < 2.0


def test_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs in one call of compiled code."""
    monkeypatch.setattr(batch, "SLICE", 250)
    with way(monkeypatch, "native"):
        p, q = rollout("arrays")(1), rollout("arrays")(1)
        for k in range(4):
            for one in (p, q):
                for graph in one.graphs:
                    wp.capture_launch(graph)
            monkeypatch.setattr(batch, "SLICE", 1 << 60)
        assert [a.numpy().tobytes() for a in p.arrays] == [a.numpy().tobytes() for a in q.arrays]


@pytest.mark.parametrize("taped", [False, True])
def test_a_first_run_that_ends_early(taped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it did not reach is compiled by a later one, and part of the call then."""
    monkeypatch.setattr(schedule, "LEAST", 400_000)

    @wp.kernel
    def refuses(x: F):
        wp.expect_eq(x[0], 0.0)

    @wp.kernel
    def new(x: F):
        x[0] = 7.0

    with way(monkeypatch, "native") as m:
        count = Counted(m)
        x, y, tape = wp.full(1, 4.0, dtype=float), wp.zeros(1, dtype=float), wp.Tape()
        with wp.ScopedCapture() as capture:
            if taped:
                with tape:
                    wp.launch(refuses, 1, [x])
                    wp.launch(new, 1, [y])
            else:
                wp.launch(refuses, 1, [x])
                wp.launch(new, 1, [y])
        for _ in range(2):
            with pytest.raises(EngineError, match="E210"):
                wp.capture_launch(capture.graph)
        x.fill_(0.0)
        for _ in range(3):
            wp.capture_launch(capture.graph)
        assert y.list() == [7]
        assert count.taken()[-1] == 2
