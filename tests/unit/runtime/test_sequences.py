"""Captured launches as one call, against each by itself: values, gradients, records, listeners."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import CPU, batch, launcher, schedule
from engine.diagnostics import EngineError
from engine.runtime import recording
from engine.runtime.guards import Guard
from engine.tape.capture import capturing
from engine.tape.records import LaunchRecord
from tests.unit.runtime.test_short_launches import (
    NATIVE,
    F,
    grid,
    in_place,
    made,
    scale,
    talks,
    total,
    turns,
    way,
)

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here")
RUNS = 6


@wp.kernel
def step(x: F, v: F, dt: float, x1: F, v1: F):
    i = wp.tid()
    v1[i] = v[i] - dt * wp.sin(x[i])
    x1[i] = x[i] + dt * v1[i]


@wp.kernel
def add(x: F, s: float):
    i = wp.tid()
    x[i] = x[i] + s


class Program:
    """Graphs, run in turns; and what is compared: arrays, and tapes with their records."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.arrays: list[Any] = []
        self.tapes: list[wp.Tape] = []

    def captured(self, block: Callable[[], None]) -> None:
        with wp.ScopedCapture() as capture:
            block()
        self.graphs.append(capture.graph)


def record(tape: wp.Tape) -> list[Any]:
    return [
        (r.name, r.site and r.site.line, [a.ptr for a in r.arrays], [a.ptr for a in r.written])
        + ((r.dim, r.blob, sorted(r.wrt), sorted(r.holds), r.lost, r.stack_bytes, r.journal_bytes,
            [x.tobytes() if isinstance(x, np.ndarray) else x for x in r.inputs_at_record()])
           if isinstance(r, LaunchRecord) else ())
        for r in tape.records
    ]  # fmt: skip


def several(n: int) -> Program:
    """Launches off any tape: scalars, strides, views that overlap, a grid of two axes, fills."""
    p = Program()
    x, y, z = made(n + 2), made(n + 2, 3), made(n + 2)
    flat = wp.zeros((3, n + 1), dtype=float, requires_grad=True)
    out = wp.zeros_like(flat)
    p.arrays = [x, y, z, flat, out]

    def block() -> None:
        for k in range(4):
            wp.launch(scale, n, [x, y, 0.5 + k])
            wp.launch(scale, n, [y[:n], z[1 : n + 1], 0.5])
            wp.launch(add, n, [x[2:], 0.25])
            wp.launch(add, n, [x[1 : n + 1], -0.25])
            wp.launch(grid, (3, n), [flat], [out])
            wp.launch(turns, n, [z, y, 3 * k])
        z.zero_()
        wp.launch(scale, n, [x, z, 1.0])
        wp.launch(total, n, [x, z])

    p.captured(block)
    return p


def writes(n: int) -> Program:
    """Fills and copies of all kinds, alone and beside launches."""
    p = Program()
    x, y, z = made(n + 2), made(n + 2, 3), made(n + 2)
    vectors = wp.zeros((n, 2), dtype=wp.vec3)
    numbers, halves = wp.zeros(n, dtype=int), wp.zeros(n, dtype=wp.float16)
    doubles, flags = wp.zeros(n, dtype=wp.float64), wp.zeros(n, dtype=bool)
    p.arrays = [x, y, z, vectors, numbers, halves, doubles, flags]
    changing = wp.vec3(1.0, 2.0, 3.0)

    def block() -> None:
        wp.copy(z, x)
        wp.launch(add, n, [x, 0.25])
        wp.copy(x[1:], x[:-1])  # onto itself
        wp.copy(x, y)
        wp.copy(y, z)
        y.fill_(0.5)
        x[1 : n + 1].fill_(-0.0)
        wp.copy(doubles, x[:n])
        vectors.zero_()
        vectors[:, 0].fill_(2.5)
        wp.launch(add, n, [z, -0.5])
        vectors.fill_(changing)
        vectors[:1].fill_(float("nan"))
        numbers.fill_(-7)
        numbers[1:].fill_(2**31 - 1)
        halves.fill_(1.0 / 3.0)
        flags.fill_(True)
        flags[1:].fill_(False)
        doubles[1:].fill_(float("inf"))
        wp.copy(z[:-1], z[1:])
        wp.copy(z, z)
        x[0] = 4.0
        wp.clone(z, requires_grad=False)

    p.captured(block)
    changing[0] = 5.0
    return p


def training(n: int) -> Program:
    """A tape that is recorded and run backward, and an update."""
    p, tape = Program(), wp.Tape()
    x, y, loss = made(n), made(n), wp.zeros(1, dtype=float, requires_grad=True)
    p.arrays, p.tapes = [x, y, loss], [tape]

    def block() -> None:
        tape.zero()
        loss.zero_()
        with tape:
            wp.launch(scale, n, [x, y, 2.0])
            wp.launch(total, n, [y, loss])
            wp.launch(total, n, [x, loss])
        tape.backward(loss)
        wp.launch(scale, n, [x.grad, x, 0.5])

    p.captured(block)
    return p


def overwriting(n: int) -> Program:
    """Launches that overwrite what earlier ones read, and what they read themselves."""
    p, tape = Program(), wp.Tape()
    x, y, loss = made(n), made(n), wp.zeros(1, dtype=float, requires_grad=True)
    p.arrays, p.tapes = [x, y, loss], [tape]

    def block() -> None:
        tape.zero()
        with tape:
            for _ in range(2):
                wp.launch(scale, n, [x, y, 2.0])
                wp.launch(scale, n, [y, x, 0.5])
                wp.launch(in_place, n, [x])
                wp.launch(turns, n, [x, y, 5])
            wp.launch(total, n, [y, loss])
        tape.backward(loss)

    p.captured(block)
    return p


def outdated(n: int) -> Program:
    """An array that is written again after a launch has read it, once."""
    p, tape = Program(), wp.Tape()
    x, y, z, loss = made(n), made(n), made(n), wp.zeros(1, dtype=float, requires_grad=True)
    p.arrays, p.tapes = [x, y, z, loss], [tape]

    def block() -> None:
        wp.launch(add, n, [x, 0.5])
        wp.launch(add, n, [x, 0.25])
        with tape:
            wp.launch(scale, n, [x, y, 2.0])
            wp.launch(scale, n, [z, x, 0.5])
            wp.launch(total, n, [y, loss])
        tape.backward(loss)

    p.captured(block)
    return p


def rollout(layout: str) -> Callable[[int], Program]:
    def program(n: int) -> Program:
        p, tape, steps = Program(), wp.Tape(), 9
        if layout == "rows":
            xs, vs = (wp.zeros((steps + 1, n), dtype=float, requires_grad=True) for _ in "xv")
            p.arrays = [xs, vs]
        else:
            count = steps + 1 if layout == "arrays" else 2
            xs, vs = ([made(n) for _ in range(count)] for _ in "xv")
            p.arrays = [*xs, *vs]
        count = len(xs) if layout != "rows" else steps + 1
        x, v = ([a[t % count] for t in range(steps + 1)] for a in (xs, vs))
        loss, p.tapes = wp.zeros(1, dtype=float, requires_grad=True), [tape]
        p.arrays.append(loss)

        def forward() -> None:
            with tape:
                for t in range(steps):
                    wp.launch(step, n, [x[t], v[t], 0.1], [x[t + 1], v[t + 1]])
                wp.launch(total, n, [x[steps], loss])

        def backward() -> None:
            tape.backward(loss)

        p.captured(forward)
        p.captured(backward)
        p.captured(backward)
        return p

    program.__name__ = f"rollout_{layout}"
    return program


PROGRAMS = [
    several,
    writes,
    training,
    overwriting,
    outdated,
    *map(rollout, ("arrays", "rows", "turns")),
]


def seen(make: Callable[[int], Program], n: int, look: bool) -> list[Any]:
    """What is there after each run. look: at the records, too."""
    p = make(n)
    out: list[Any] = []
    memory = {id(s): s for a in p.arrays for b in (a, a.grad) if b is not None for s in [b.storage]}
    versions = [s.version for s in memory.values()]
    other = wp.Tape()  # holds what the graphs overwrite
    with other:
        for a in p.arrays:
            if a.ndim == 1 and a.dtype is wp.float32:
                wp.launch(total, a.size, [a, wp.zeros(1, dtype=float, requires_grad=True)])
    for k in range(RUNS):
        for graph in p.graphs:
            wp.capture_launch(graph)
            if look and k > 2:
                out.append([record(t) for t in p.tapes])
        out.append([x.numpy().tobytes() for a in p.arrays for x in (a, a.grad) if x is not None])
    out.append([record(t) for t in (*p.tapes, other)])
    out.append([(t.memory.journals, t.memory.stack) for t in (*p.tapes, other)])
    if not look:  # a look makes views, which NumPy's users may write
        out.append([s.version - v for s, v in zip(memory.values(), versions, strict=True)])
    return plain(out)


def plain(out: list[Any]) -> list[Any]:
    """Without addresses: two programs have arrays of their own."""
    known: dict[int, int] = {}
    blobs: dict[bytes, int] = {}

    def of(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [of(v) for v in x]
        if isinstance(x, int) and x > 1 << 24:
            return "at", known.setdefault(x, len(known))
        return x

    def records(rows: Any) -> Any:
        return [[(*r[:5], blobs.setdefault(r[5], len(blobs)), *r[6:]) if len(r) > 5 else r
                 for r in t] for t in rows]  # fmt: skip

    def fits(x: Any) -> bool:
        return isinstance(x, list) and bool(x) and isinstance(x[0], list)

    return [of(records(x)) if fits(x) else of(x) for x in out]


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("n", [0, 1, 7, 33])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_the_same_as_one_by_one(
    make: Callable[[int], Program], n: int, look: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with way(monkeypatch, short=False):
        expected = seen(make, n, look)
    with way(monkeypatch, "native"):
        found = seen(make, n, look)
    for a, b in zip(found, expected, strict=True):
        assert a == b


class Counted:
    """How many calls of compiled code there were, and of how many launches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        assert NATIVE is not None
        many = NATIVE.many

        def counted(at: int, first: int, end: int) -> Any:
            self.calls.append(end - first)
            return many(at, first, end)

        functions = NATIVE._replace(many=counted)
        monkeypatch.setattr(launcher.maker, "functions", functions)
        monkeypatch.setattr(CPU, "functions", functions)

    def taken(self) -> list[int]:
        found, self.calls = self.calls, []
        return found


def test_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    with way(monkeypatch, "native"):
        count = Counted(monkeypatch)
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
    with way(monkeypatch, "native"):
        count = Counted(monkeypatch)
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
            x, y, loss = made(5), made(150_000), wp.zeros(1, dtype=float)
            with wp.ScopedCapture() as capture:
                for _ in range(3):
                    wp.launch(add, 5, [x, 1.0])
                    wp.launch(add, 1, [x, 1.0])
                    wp.launch(scale, 150_000, [y, y, 0.9])
                    wp.launch(total, 150_000, [y, loss])
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
        assert x[0] < 3.0
        x[0] = x[0] + 1.0

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


def test_who_listens_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short):
            p, launched, out = training(5), [], []
            for k in range(6):
                if k % 2:
                    monkeypatch.setattr(
                        recording, "observers", [lambda kernel, dim: launched.append(kernel.key)]
                    )
                wp.capture_launch(p.graphs[0])
                monkeypatch.setattr(recording, "observers", [])
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


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends a long sequence between two launches."""

    @wp.kernel
    def slow(x: F):
        a = x[0]
        for _ in range(100_000):
            a = wp.sin(a) + 1.0
        x[0] = a
        x[1] = x[1] + 1.0

    x = wp.zeros(2, dtype=float)
    with way(monkeypatch, "native"):
        with wp.ScopedCapture() as capture:
            for _ in range(3000):
                wp.launch(slow, 1, [x])
        small = wp.zeros(2, dtype=float)
        wp.launch(slow, 1, [small])
        capture.graph._steps[0][0]._ran = 1

        def interrupt(number: int, frame: Any) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises(KeyboardInterrupt):
                wp.capture_launch(capture.graph)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert 0 < x.numpy()[1] < 3000
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


def test_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with way(monkeypatch, "native"):
        p = training(5)
        for _ in range(4):
            wp.capture_launch(p.graphs[0])
        watched = [*p.arrays, *(a.grad for a in p.arrays), *(a.storage for a in p.arrays)]
        before = [sys.getrefcount(o) for o in watched]
        for _ in range(50):
            wp.capture_launch(p.graphs[0])
        assert [sys.getrefcount(o) for o in watched] == before
