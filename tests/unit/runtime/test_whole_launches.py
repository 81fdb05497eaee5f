"""Launches, backward passes and new arrays without Python, against the plain way.

Contents, gradients, versions, and all that tapes remember have to be the same, whoever listens.
"""

from __future__ import annotations

import gc
import importlib
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
from engine.accel import launcher
from engine.compile.cpu import schedule
from engine.diagnostics import EngineError
from engine.runtime import events, storage
from tests.unit.runtime.launching import NATIVE, made, scale, total, way

pytestmark = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.host("native launches"),
]

F = wp.array(dtype=float)


class Counted:
    """What the native functions gave, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came: list[tuple[str, bool]] = []
        assert NATIVE is not None
        functions = NATIVE._replace(
            **{name: self.counted(name) for name in ("try_run", "back_all", "seeded",
                                                     "zeros")}
        )  # fmt: skip
        monkeypatch.setattr(launcher.maker, "made", functions)

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
        assert counts.of("try_run") == [True, True, True]
        assert counts.of("back_all") == [True, True]
        assert counts.of("seeded") == [True, True]
        assert counts.of("zeros") == [True]
        assert [r.site.line for r in tape.records] == [
            iteration.__code__.co_firstlineno + k for k in (4, 5)
        ]


class Told(events.Observer):
    """Notes what it is told of one kind."""

    def __init__(self, told: list[Any], kind: str) -> None:
        self.told, self.kind = told, kind

    def launching(self, *what: Any) -> None:
        self.told += [what] if self.kind == "launching" else []

    def writing(self, *what: Any) -> None:
        self.told += [what] if self.kind == "writing" else []


def listening(what: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has somebody listen, or a setting say otherwise; what is told."""
    told: list[Any] = []
    if what == "launches":
        events.everywhere.append(Told(told, "launching"))
    elif what == "writes":
        events.everywhere.append(Told(told, "writing"))
    elif what == "writes here":
        events.enter(Told(told, "writing"))
    elif what != "nothing":
        name, value = what.split("=")
        monkeypatch.setattr(wp.config, name, {"True": True, "False": False}.get(value, value))
    return told


@pytest.mark.parametrize(
    "what",
    [
        "nothing", "launches", "writes", "writes here", "verify_fp=True",
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
                events.everywhere.clear()
                events.here.set(())
            holds = [[h.lost for h in r.snapshots] for r in tape.records]
            kinds = [[type(h).__name__ for h in r.snapshots] for r in tape.records]
            found.append((len(told), x.grad.numpy().tobytes(), y.numpy().tobytes(), holds, kinds))
    assert found[0] == found[1]


def test_tapes_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subclass has its methods called."""

    class Own(wp.Tape):
        count = 0

        def begin_launch(self, launch: Any) -> Any:
            self.count += 1
            return super().begin_launch(launch)

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
    """The functions are made where the program has no tapes yet."""
    code = """
import ctypes, sys
import numpy as np
import engine as wp
from engine.accel import launcher
from engine.compile.cpu import runner
from engine.runtime.launch import launch as plain_launch
from tests.unit.runtime.late_tape import square
wp.config.native_after, launcher.maker.asked = 0, True
x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
wp.launch(square, 2, [x, y])
launcher.maker.make()
assert launcher.maker.functions is not None
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
    try_run=lambda *a: came.append(functions.try_run(*a)) or came[-1])
with wp.Tape() as tape:
    plain_launch(square, 2, [x, y])
tape.backward(grads={y: np.ones(2, np.float32)})
print(came, x.grad.numpy().tolist(), len(tape.records))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.stdout.split("\n")[0] == "[True] [2.0, 4.0] 1", done.stderr


@pytest.mark.parametrize("count", [62, 63, 64, 65])
def test_many_float_arrays(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as a mask has bits, and more: those go through Python."""
    names = [f"a{k}" for k in range(count)]
    given = ", ".join(f"{name}: wp.array(dtype=float)" for name in names)
    (tmp_path / f"arrays_{count}.py").write_text(
        f"import engine as wp\n\n@wp.kernel\ndef doubles({given}):\n"
        f"    i = wp.tid()\n    a0[i] = 2.0 * {names[-1]}[i]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    kernel = importlib.import_module(f"arrays_{count}").doubles
    arrays = [wp.full(2, 3.0, dtype=float, requires_grad=True) for _ in names]
    with way(monkeypatch, "native"):
        for _ in range(4):
            with wp.Tape() as tape:
                wp.launch(kernel, 2, arrays)
            tape.backward(grads={arrays[0]: wp.ones(2, dtype=float)})
            assert (arrays[0].numpy() == 6.0).all() and (arrays[-1].grad.numpy() == 2.0).all()
            tape.zero()
