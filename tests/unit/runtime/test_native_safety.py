"""Native code keeps its objects alive under threads, the collector and signals."""

from __future__ import annotations

import gc
import importlib.util
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.accel import recipes
from engine.diagnostics import EngineError
from engine.runtime import events
from tests.unit.runtime.launching import NATIVE, in_place, made, scale, total, way

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here")
SECONDS = 1.0


@contextmanager
def often() -> Iterator[None]:
    """Threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(*works: Callable[[], None]) -> None:
    """Runs functions again and again, each in a thread of its own, for a while."""
    end, errors = time.monotonic() + SECONDS, []

    def run(work: Callable[[], None]) -> None:
        try:
            while time.monotonic() < end:
                work()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(w,)) for w in works]
    with often():
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors


def test_zeros_of_many_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The array that others are like may be forgotten while one is made."""
    count = iter(range(10**9))

    def same() -> None:
        assert wp.zeros(5, dtype=float).shape == (5,)

    with way(monkeypatch, "native"):
        together(same, same, lambda: wp.zeros(6 + next(count) % 3000, dtype=float))


@pytest.mark.host("native launches")
def test_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads may come to make them at once."""
    x, y = made(4), made(4)
    with way(monkeypatch, "native"):
        scale.forget()  # other tests may have begun to count its launches
        for _ in range(4):
            wp.launch(scale, 4, [x, y, 1.0])
        plan = scale.plan
        cached_launch: Any = plan.forward.cached_launches[4,]
        words, recipe = cached_launch.words, plan._recipe
        cached_launch.request_native()
        plan.recipe = plan.recipe and 0  # as another thread saw it
        assert cached_launch.words is words and words is not None
        plan.recipe = recipe.at
        recipes.compiled(plan, plan.forward)
        assert plan._recipe is recipe


def test_arguments_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list may lose them to the collector, which runs wherever an object is made."""

    class Loses:
        def __init__(self, of: list[Any]) -> None:
            self.of = of
            self.me = self

        def __del__(self) -> None:
            self.of.clear()
            self.of = [np.full(64, 7.0) for _ in range(50)]

    def small() -> Any:
        return wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)

    out, before = made(4), gc.get_threshold()
    with way(monkeypatch, "native"):
        for _ in range(4):
            wp.launch(scale, 4, [small(), out, 1.0])
        try:
            with wp.Tape() as tape:
                for k in range(300):
                    values = [small(), out, 1.0]
                    Loses(values)
                    gc.set_threshold(1 + k % 3, 1, 1)
                    try:
                        wp.launch(scale, 4, values)
                    except EngineError:  # they were gone before the launch looked
                        pass
                    gc.set_threshold(*before)
        finally:
            gc.set_threshold(*before)
        for r in tape.records:
            assert r.args[0].numpy().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_lists_that_other_threads_change(monkeypatch: pytest.MonkeyPatch) -> None:
    base, out = made(64), made(4)
    values: list[Any] = [base[0:4], out, 1.0]
    numbers = iter(range(10**9))

    def launch() -> None:
        with wp.Tape() as tape:
            for _ in range(5):
                wp.launch(scale, 4, values)
        assert all(r.args[0].shape == (4,) for r in tape.records)

    def change() -> None:
        k = next(numbers) % 60
        values[0] = base[k : k + 4]

    with way(monkeypatch, "native"):
        together(launch, change)


def test_records_that_other_threads_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    base, out = made(64), made(4)
    seed = wp.ones(4, dtype=float)
    tapes: list[wp.Tape] = [wp.Tape()]

    def run() -> None:
        tape = wp.Tape()
        with tape:
            for k in range(6):
                wp.launch(scale, 4, [base[k : k + 4], out, 1.0])
        tapes[0] = tape
        tape.backward(grads={out: seed})

    def forget() -> None:
        tapes[0].records.clear()

    with way(monkeypatch, "native"):
        run()
        together(run, forget)


def test_small_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def work() -> None:
        x, y = made(4), made(4)
        with wp.Tape() as tape:
            for _ in range(200):
                wp.launch(scale, 4, [x, y, 1.0])
        tape.backward(grads={y: y})
        done.append(len(tape.records))

    with way(monkeypatch, "native"):
        work()
        before = threading.stack_size(96 << 10)
        try:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        finally:
            threading.stack_size(before)
    assert done == [200, 200]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.host("native launches")
def test_exceptions_of_signals_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rang(Exception):
        pass

    def ring(number: int, frame: Any) -> None:
        raise Rang

    part, out = made(16)[3:7], made(4)
    seed = wp.ones(4, dtype=float)

    def views() -> None:  # of one that is there: NumPy swallows exceptions while it makes others
        with wp.Tape() as tape:
            wp.launch(scale, 4, [part, out, 1.0])
        tape.backward(grads={out: seed})

    # A function: the jump back of a loop, where handlers run, is outside of `try` to Python 3.13.
    def until(end: float, work: Callable[[], object]) -> None:
        while time.monotonic() < end:
            work()

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with way(monkeypatch, "native"):
            for work in (lambda: wp.zeros(1000, dtype=float), views):
                for _ in range(5):
                    work()
                lost = 0
                for k in range(150):
                    end = time.monotonic() + 1.0
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0.001 + 1e-5 * k)
                        until(end, work)
                        lost += 1
                    except Rang:
                        events.here.set(())  # the block may not have been left
                assert lost == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.host("native launches")
def test_grids_that_were_forgotten(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What a run left is told, though others have run so many grids meanwhile."""

    @wp.kernel
    def says(n: int):
        if n == 7:
            print(n)

    with way(monkeypatch, "native"):
        for _ in range(4):
            wp.launch(says, 2, [1])
        forward = says.plan.forward
        came: list[Any] = []
        left = type(forward).outcome_of

        def forgotten(self: Any, *args: Any) -> Any:
            self.cached_launches.clear()
            came.append(True)
            return left(self, *args)

        monkeypatch.setattr(type(forward), "outcome_of", forgotten)
        capfd.readouterr()
        wp.launch(says, 2, [7])
    assert came and capfd.readouterr().out.split() == ["7", "7"]


@pytest.mark.parametrize("limit", [1 << 70, -(1 << 70), 0])
@pytest.mark.parametrize(
    "name", ["snapshot_limit_bytes", "stack_limit_bytes", "journal_limit_bytes"]
)
def test_limits_of_any_size(name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short), monkeypatch.context() as m:
            x, y = made(4), made(4)
            for _ in range(4):
                wp.launch(scale, 4, [x, y, 1.0])
                wp.launch(in_place, 4, [x])
            m.setattr(wp.config, name, limit)
            told: list[Any] = []
            with wp.Tape() as tape:
                for _ in range(3):
                    try:
                        wp.launch(scale, 4, [x, y, 2.0])
                    except EngineError as e:
                        told.append(e.diagnostics[0].code)
                    except OverflowError as e:
                        told.append(str(e))
            try:
                wp.launch(in_place, 4, [x])
                x.assign(np.ones(4, np.float32))
            except (EngineError, OverflowError) as e:
                told.append(str(e)[:20])
            lost = [[h.lost for h in r.snapshots] for r in tape.records]
            found.append((told, lost, x.numpy().tolist(), y.numpy().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("grads", [[], (), 0, "", False, 0.0, set(), np.zeros(1), np.ones(2)])
def test_what_is_no_dictionary_of_cotangents(grads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for short in (False, "native"):
        with way(monkeypatch, short):
            x, loss = made(4), wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(total, 4, [x, loss])
            for _ in range(3):
                tape.backward(loss, grads={})
            with pytest.raises(EngineError) as e:
                tape.backward(loss, grads=grads)
            assert e.value.diagnostics[0].code == "E402"


class _Model:
    """Keeps its tape and arrays, and itself: a circle."""

    def __init__(self) -> None:
        self.x, self.y, self.tape, self.me = made(4), made(4), wp.Tape(), self

    def record(self) -> None:
        for _ in range(5):
            with self.tape:
                wp.launch(scale, 4, [self.x, self.y, 1.0])


@pytest.mark.host("native launches")
def test_the_collector_does_not_look_at_what_records_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with way(monkeypatch, "native"):
        m = _Model()
        for _ in range(3):
            m.tape.reset()
            m.record()
        record = m.tape.records[-1]
        assert not any(map(gc.is_tracked, (record.held, record.dim)))
        # They go with what has them, also in circles.
        seen = [weakref.ref(a) for a in (m.x, m.y)]
        del m, record
        gc.collect()
        assert all(r() is None for r in seen)


@pytest.mark.host("native launches")
def test_records_of_what_may_lead_anywhere_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of others, gradients and kernels may lead back to the tape."""

    class Memory(np.ndarray):  # has attributes
        pass

    class Gradient(wp.array):
        __slots__ = ("tape",)

    def circle(which: str, looked: bool) -> weakref.ref[Any]:
        memory = np.ones(4, np.float32).view(Memory)
        x, y = made(4), made(4)
        other = wp.array(memory, copy=False, dtype=float)
        if which == "gradient":
            x.grad = other
        elif which == "memory":
            x = other
        tape = wp.Tape()
        for _ in range(5):
            tape.reset()
            with tape:
                wp.launch(scale, 4, [x, y, 1.0])
        if looked:  # else they are rows of one list
            assert gc.is_tracked(tape.records[0])
        if which == "later":
            last = Gradient(np.ones(4, np.float32))
            last.tape = tape
            x.grad = last
        memory.tape = tape
        return weakref.ref(tape)

    with way(monkeypatch, "native"):
        for which in ("memory", "gradient", "later"):
            for looked in (True, False):
                seen = circle(which, looked)
                gc.collect()
                assert seen() is None


_MODULE = """
import engine as wp

@wp.kernel
def doubles(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]

x, y = (wp.zeros(4, dtype=float, requires_grad=True) for _ in range(2))
tape = wp.Tape()

def record():
    tape.reset()
    with tape:
        wp.launch(doubles, 4, [x, y])
"""


@pytest.mark.host("native launches")
def test_modules_with_tapes_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records lead to kernels, and these to all that their module has."""
    (tmp_path / "with_a_tape.py").write_text(_MODULE)
    spec = importlib.util.spec_from_file_location("with_a_tape", tmp_path / "with_a_tape.py")
    assert spec is not None and spec.loader is not None
    with way(monkeypatch, "native"):
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for _ in range(6):
            module.record()
        seen = weakref.ref(module.x)
        del module
        gc.collect()
        assert seen() is None
