"""Launches, backward passes and new arrays without Python, against the plain way: random programs.

Contents, gradients, versions, and all that tapes remember have to be the same, whoever listens.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import CPU, launcher, schedule
from engine.diagnostics import EngineError
from engine.runtime import recording, storage
from engine.runtime.launch import launch as plain_launch
from tests.unit.runtime.sequences import record
from tests.unit.runtime.test_short_launches import NATIVE, in_place, made, scale, total, turns, way

pytestmark = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.host("native launches"),
]

PROGRAMS = int(os.environ.get("ENGINE_LAUNCHED_PROGRAMS", "40"))
N = 5
F = wp.array(dtype=float)


@wp.kernel
def both(x: F, y: F, z: F):
    i = wp.tid()
    z[i] = x[i] * y[i] + wp.sin(x[i])


@wp.kernel(enable_backward=False)
def flat(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] + 1.0


@wp.kernel
def mixed(a: wp.float64, x: wp.array(dtype=wp.float64), k: wp.int64, n: wp.array(dtype=int)):
    i = wp.tid()
    x[i] = x[i] * a + wp.float64(k)
    n[i] = n[i] + 1


class Run:
    """One random program. trace: what was seen on the way."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.arrays = [made(N) for _ in range(4)] + [made(3 * N, 2)]
        self.arrays += [self.arrays[4][:N], made(N)[:N]]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.tapes = [wp.Tape()]
        self.kept: list[Any] = []
        self.trace: list[Any] = []
        self.doubles = wp.zeros(N, dtype=wp.float64, requires_grad=True)
        self.numbers = wp.zeros(N, dtype=int)

    def one(self) -> Any:
        return self.arrays[self.random.integers(len(self.arrays))]

    def launch(self) -> None:
        kind, a, b, c = self.random.integers(8), self.one(), self.one(), self.one()
        record_tape = bool(self.random.random() < 0.9)
        if kind < 3:
            wp.launch(scale, N, [a, b, 0.5], record_tape=record_tape)
        elif kind == 3:
            wp.launch(in_place, dim=(N,), inputs=[a], record_tape=record_tape)
        elif kind == 4:
            wp.launch(turns, N, inputs=(a,), outputs=(b, int(self.random.integers(4))))
        elif kind == 5:
            wp.launch(both, N, [a, b], [c])
        elif kind == 6:
            wp.launch(flat, [N], [a], [b])
        else:
            wp.launch(mixed, N, [1.5, self.doubles, 3, self.numbers])
        if self.random.random() < 0.4:
            wp.launch(total, dim=N, inputs=[b], outputs=[self.loss])

    def other(self) -> None:
        kind, a, b = self.random.integers(12), self.one(), self.one()
        tape = self.tapes[int(self.random.integers(len(self.tapes)))]
        if kind == 10:
            self.trace.append((tape.memory, len(tape.gradients)))
        elif kind == 11:
            (tape.reset if self.random.random() < 0.5 else tape.zero)()
        elif kind == 0:
            a.zero_()
        elif kind == 1:
            wp.copy(a, b, count=N)
        elif kind == 2:
            self.kept.append(a.numpy())
        elif kind == 3:
            del self.kept[:]
        elif kind == 4:
            a.requires_grad = not a.requires_grad
        elif kind == 5 and a.requires_grad:
            a.grad = wp.full(a.shape, 0.5, dtype=float)
        elif kind == 6:
            self.kept.append(a.storage.hold(a.lo, a.hi, bool(self.random.integers(2))))
        elif kind == 7:
            new = wp.zeros(N, dtype=float, requires_grad=bool(self.random.integers(2)))
            self.trace.append(
                (
                    new.shape,
                    new.dtype,
                    new.requires_grad,
                    new.numpy().tobytes(),
                    new.strides,
                    new.is_contiguous,
                    new.ndim,
                    new.size,
                    new.grad is None,
                )
            )
            self.arrays[int(self.random.integers(4))] = new
        elif kind == 8:
            self.loss = wp.zeros((1,), dtype=float, requires_grad=True)
        elif a.requires_grad and self.random.random() < 0.3:
            a.retain_grad = True

    def taped(self) -> None:
        tape = self.tapes[-1] if self.random.random() < 0.3 else wp.Tape()
        self.tapes.append(tape)
        with tape:
            for _ in range(self.random.integers(1, 5)):
                (self.launch if self.random.random() < 0.8 else self.other)()

    def backward(self) -> None:
        tape = self.tapes[-1]
        if self.random.random() < 0.5:
            tape.backward(self.loss)
        else:
            a = self.one()
            seed: Any = [np.ones(a.shape, np.float32), a, self.arrays[0]][self.random.integers(3)]
            tape.backward(grads={a: seed})
        if self.random.random() < 0.5:
            tape.zero()

    def look(self) -> None:
        everything = [*self.arrays, self.loss, self.doubles, self.numbers]
        grads = [a.existing_grad for a in everything]
        self.trace.append([a._parts.tobytes() for a in everything])
        self.trace.append([None if g is None else g._parts.tobytes() for g in grads])
        self.trace.append([a.storage.version for a in everything])
        self.trace.append([None if g is None else g.storage.version for g in grads])
        homes = {id(a.storage): k for k, a in enumerate(everything)}
        # Not at all of them: what has been looked at is kept in another way.
        for tape in self.tapes[-2:] if self.random.random() < 0.4 else ():
            seen = record(tape)
            offsets = [
                [(p - a.ptr) for p in r[2] for a in everything[:1]] and len(r[2]) for r in seen
            ]
            self.trace.append(
                [(r[0], r[1], *(x for k, x in enumerate(r[4:]) if k != 1)) for r in seen]
            )
            self.trace.append(offsets)
            self.trace.append(
                sorted(
                    (homes.get(id(s), -1), hi - lo)
                    for s, (lo, hi) in tape._overwrites._read.items()
                )
            )

    def run(self) -> list[Any]:
        for _ in range(25):
            what = self.random.random()
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    (
                        self.taped
                        if what < 0.4
                        else self.launch
                        if what < 0.6
                        else self.backward
                        if what < 0.8
                        else self.other
                    )()
                self.trace.append([str(w.message) for w in told])
            except EngineError as e:
                self.trace.append([d.code for d in e.diagnostics])
            self.look()
        return self.trace


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    with way(monkeypatch, short=False):
        found.append(Run(seed).run())
    for _ in range(2):
        with way(monkeypatch, "native"):
            found.append(Run(seed).run())
    for mine in found[1:]:
        for step, (a, b) in enumerate(zip(mine, found[0], strict=True)):
            assert a == b, step


class Counted:
    """What the native functions gave, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came: list[tuple[str, bool]] = []
        assert NATIVE is not None
        functions = NATIVE._replace(
            **{name: self.counted(name) for name in ("whole", "back_all", "cleared", "seeded",
                                                     "zeros")}
        )  # fmt: skip
        monkeypatch.setattr(launcher.maker, "made", functions)
        monkeypatch.setattr(CPU, "made", functions)
        monkeypatch.setattr(wp, "launch", plain_launch)  # which asks them

    def counted(self, name: str) -> Callable[..., Any]:
        function = getattr(NATIVE, name)

        def call(*args: Any) -> Any:
            came = function(*args)
            self.came.append((name, came is not None and came is not False))
            return came

        return call

    def of(self, name: str) -> list[bool]:
        found = [taken for n, taken in self.came if n == name]
        self.came = [x for x in self.came if x[0] != name]
        return found


def iteration(x: Any, y: Any) -> Any:
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(scale, 4, [x], [y, 2.0])
        wp.launch(total, dim=(4,), inputs=(y, loss))
    tape.backward(loss)
    tape.zero()
    return tape


def test_all_of_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    x, y = made(4), made(4)
    with way(monkeypatch, "native") as m:
        for kernel in (scale, total):  # other tests may have begun to count their launches
            kernel.forget()
        for _ in range(5):
            iteration(x, y)
        counts = Counted(m)
        tape = iteration(x, y)
        wp.launch(scale, 4, [x, y, 1.0])
        tape.backward(grads={y: x})
        assert counts.of("whole") == [True, True, True]
        assert counts.of("back_all") == [True, True]
        assert counts.of("seeded") == [True, True]
        assert counts.of("cleared") == counts.of("zeros") == [True]
        assert [r.site.line for r in tape.records] == [
            iteration.__code__.co_firstlineno + k for k in (4, 5)
        ]


def listening(what: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has somebody listen, or a setting say otherwise; what is told."""
    told: list[Any] = []
    if what == "observers":
        monkeypatch.setattr(recording, "observers", recording.observers)
        recording.observers.append(lambda *a: told.append(a))
    elif what == "watchers":
        storage.watchers.append(lambda *a: told.append(a))
    elif what == "watching":
        storage.watch(told.append)
    elif what != "nothing":
        name, value = what.split("=")
        monkeypatch.setattr(wp.config, name, {"True": True, "False": False}.get(value, value))
    return told


@pytest.mark.parametrize(
    "what",
    [
        "nothing", "observers", "watchers", "watching", "verify_fp=True",
        "verify_autograd_array_access=True", "overwrites=present", "overwrites=warn",
        "tape_snapshots=off", "tape_snapshots=eager", "enable_backward=False",
    ],
)  # fmt: skip
def test_who_listens_is_told(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short), monkeypatch.context() as m, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, y = made(4), made(4)
            for _ in range(4):
                iteration(x, y)
            told: list[Any] = []
            try:
                told = listening(what, m)
                tape = iteration(x, y)
                wp.launch(scale, 4, [x, y, 1.0])
            finally:
                del recording.observers[:], storage.watchers[:]
                storage.watching.set(None)
            holds = [[h.lost for h in r.snapshots] for r in tape.records]
            kinds = [[type(h).__name__ for h in r.snapshots] for r in tape.records]
            found.append((len(told), x.grad.numpy().tobytes(), y.numpy().tobytes(), holds, kinds))
    assert found[0] == found[1]


def test_tapes_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subclass has its methods called."""

    class Own(wp.Tape):
        count = 0

        def run_launch(self, *args: Any) -> None:
            self.count += 1
            super().run_launch(*args)

    x, y = made(4), made(4)
    with way(monkeypatch, "native"):
        for k in range(5):
            tape = Own()
            with tape:
                wp.launch(scale, 4, [x, y, 1.0])
            tape.backward(grads={y: x})
            assert tape.count == len(tape.records) == 1, k


def test_what_is_left_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Messages of kernels arrive, in their order, recorded or not; so do failed expectations."""

    @wp.kernel
    def says(x: F, n: int):
        i = wp.tid()
        if x[i] > 0.0:
            print(n)
        wp.expect_eq(n < 40, True)

    x = wp.array([1.0, -1.0], dtype=float, requires_grad=True)
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short):
            for k in range(20):
                wp.launch(says, 2, [x, k])
            with wp.Tape() as tape:
                for k in range(20, 30):
                    wp.launch(says, 2, [x, k])
            codes = []
            for record_tape in (True, False):
                with tape, pytest.raises(EngineError) as e:
                    wp.launch(says, 2, [x, 50], record_tape=record_tape)
                codes.append(e.value.diagnostics[0].code)
            found.append((capfd.readouterr(), len(tape.records), codes))
    assert found[0] == found[1]


def test_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a launch makes goes when its tape goes."""
    x, y = made(4), made(4)
    with way(monkeypatch, "native"):
        for kernel in (scale, total):
            kernel.forget()
        for _ in range(5):
            iteration(x, y)
        watched = [x, y, x.grad, x.storage, y.storage, x.grad.storage, scale, scale.plan,
                   scale.plan.forward, wp.array, wp.Tape, storage.Hold, storage.Storage,
                   None.__class__, next(iter(scale.plan.usual.values()))]  # fmt: skip
        gc.collect()
        before = [sys.getrefcount(o) for o in watched], len(gc.get_objects())
        for _ in range(200):
            iteration(x, y)
            wp.launch(scale, 4, [x, y, 1.0])
            wp.launch(scale, 4, [x, x, 1.0])
        gc.collect()
        after = [sys.getrefcount(o) for o in watched], len(gc.get_objects())
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) < 60


def test_several_python_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    want: list[bytes] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            x, y = made(4), made(4)
            for _ in range(300):
                tape = wp.Tape()
                with tape:
                    for k in range(3):
                        wp.launch(scale, 4, [x, y, 1.0 + k])
                tape.backward(grads={y: np.ones(4, np.float32)})
                tape.zero()
            tape.backward(grads={y: np.ones(4, np.float32)})
            want.append(x.grad.numpy().tobytes())
        except BaseException as e:
            errors.append(e)

    with way(monkeypatch, "native"):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors
    assert len(set(want)) == 1 and len(want) == 4


def test_a_tape_that_comes_late(root: Path) -> None:
    """The functions are made before anybody knows of tapes."""
    code = """
import ctypes, sys
import numpy as np
import engine as wp
from engine import hooks
from engine.compile.cpu import launcher, runner
from engine.runtime.launch import launch as plain_launch
hooks.prepare = lambda: None  # which would load tapes
from tests.unit.runtime.late_tape import square
wp.config.native_after, launcher.maker.asked = 0, True
x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
wp.launch(square, 2, [x, y])
launcher.maker.make(ctypes.sizeof(runner.Launch))
assert launcher.maker.functions is not None and "engine.tape.tape" not in sys.modules
for _ in range(5):
    wp.launch(square, 2, [x, y])
for _ in range(5):
    tape = wp.Tape()
    with tape:
        wp.launch(square, 2, [x, y])
    tape.backward(grads={y: np.ones(2, np.float32)})
    tape.zero()
functions, came = launcher.maker.functions, []
launcher.maker.made = functions._replace(
    whole=lambda *a: came.append(functions.whole(*a)) or came[-1])
with wp.Tape() as tape:
    plain_launch(square, 2, [x, y])
tape.backward(grads={y: np.ones(2, np.float32)})
print(came, x.grad.numpy().tolist(), len(tape.records))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.stdout.split("\n")[0] == "[True] [2.0, 4.0] 1", done.stderr
