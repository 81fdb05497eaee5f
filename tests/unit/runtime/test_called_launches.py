"""Launches that go natively: the same to all callers."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Iterator
from itertools import repeat
from types import FrameType
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.accel import launcher
from engine.compile.cpu import schedule
from engine.runtime import events
from engine.runtime.launch import bind
from tests.unit.runtime.launching import NATIVE, made, scale, total, turns, way

pytestmark = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.host("native launches"),
]
F = wp.array(dtype=float)


@wp.kernel
def alone(x: F):
    x[0] = x[0] + 1.0


@pytest.fixture(autouse=True)
def warmed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    with way(monkeypatch, "native"):
        x, y = made(4), made(4)
        for kernel in (scale, total, alone, turns):
            kernel.forget()
        for _ in range(4):
            wp.launch(scale, 4, [x], [y, 2.0])
            with wp.Tape():
                wp.launch(scale, 4, [x], [y, 2.0])
            wp.launch(alone, 1, [x])
            wp.launch(turns, 4, [x], [y, 3])
        yield


def goes_through_python(call: Any) -> bool:
    """Whether the arguments of a launch are looked at in Python."""
    seen = []

    def look(frame: FrameType, event: str, arg: object) -> None:
        seen.append(event == "call" and frame.f_code is bind.__code__)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return any(seen)


X, Y = made(4), made(4)
SAME = {
    "by place": lambda f: f(scale, 4, [X], [Y, 2.0]),
    "by name": lambda f: f(kernel=scale, dim=4, inputs=[X], outputs=[Y, 2.0]),
    "in any order": lambda f: f(outputs=(Y, 2.0), inputs=(X,), dim=(4,), kernel=scale),
    "all inputs": lambda f: f(scale, 4, [X, Y, 2.0]),
    "all outputs": lambda f: f(scale, dim=4, outputs=[X, Y, 2.0]),
    "on the CPU": lambda f: f(scale, 4, [X], [Y, 2.0], device="cpu"),
    "on a device": lambda f: f(scale, 4, [X], [Y, 2.0], device=wp.get_device("cpu")),
    "with all": lambda f: f(scale, 4, [X], [Y, 2.0], (), (), None, None, False, True, False, 7, 64),
    "no record": lambda f: f(scale, 4, [X], [Y, 2.0], record_tape=False),
    "one parameter": lambda f: f(alone, 1, [X]),
}  # fmt: skip
OTHERS = {
    "nothing": lambda f: f(),
    "no grid": lambda f: f(scale),
    "no arguments": lambda f: f(scale, 4),
    "too few": lambda f: f(scale, 4, [X], [Y]),
    "too many": lambda f: f(scale, 4, [X], [Y, 2.0, 3.0]),
    "twice": lambda f: f(scale, 4, [X], kernel=scale),
    "another name": lambda f: f(scale, 4, [X], [Y, 2.0], steam=None),
    "fourteen": lambda f: f(scale, 4, [X], [Y, 2.0], *([None] * 10)),
    "no kernel": lambda f: f(len, 4, [X], [Y, 2.0]),
    "None": lambda f: f(None, 4, [X], [Y, 2.0]),
    "odd grid": lambda f: f(scale, 4.5, [X], [Y, 2.0]),
    "negative grid": lambda f: f(scale, -1, [X], [Y, 2.0]),
    "no list": lambda f: f(scale, 4, X, [Y, 2.0]),
    "None for a list": lambda f: f(scale, 4, None, [X, Y, 2.0]),
    "of another type": lambda f: f(scale, 4, [X], [Y, "two"]),
    "no device": lambda f: f(scale, 4, [X], [Y, 2.0], device="nowhere"),
    "numpy": lambda f: f(scale, np.int64(4), [np.ones(4, np.float32)], [Y, np.float32(2.0)]),
    "truth": lambda f: f(scale, 4, [X], [Y, 2.0], adjoint=0, record_tape=1),
    "a command": lambda f: f(scale, 4, [X], [Y, 2.0], record_cmd=True).launch(),
    "an adjoint": lambda f: f(scale, 4, [X], [Y, 2.0], adjoint=True, adj_inputs=[None],
                              adj_outputs=[None, None]),
    "a grid of nothing": lambda f: f(scale, 0, [X], [Y, 2.0]),
    "a list for a grid": lambda f: f(scale, [4], [X], [Y, 2.0]),
    "loops": lambda f: f(turns, 4, [X], [Y, 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SAME, *OTHERS])
def test_calls_do_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results, what is recorded, and errors to the letter."""
    assert NATIVE is not None
    call, found = {**SAME, **OTHERS}[name], []
    for native in (None, NATIVE):
        monkeypatch.setattr(launcher.maker, "made", native)
        X.assign(np.linspace(-1, 1, 4, dtype=np.float32))
        Y.assign(np.linspace(2, 3, 4, dtype=np.float32))
        X.grad.fill_(0.5)
        Y.grad.fill_(0.25)
        tape, said = wp.Tape(), ""
        try:
            with tape:
                call(wp.launch)
            call(wp.launch)
        except Exception as e:
            said = f"{type(e).__name__}: {e}"
        arrays = [a.numpy().tolist() for a in (X, Y, X.grad, Y.grad)]
        sites = [(r.site.line, len(r.values)) for r in tape.records]
        found.append((arrays, sites, said))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("taped", [False, True])
def test_most_need_no_python(name: str, taped: bool) -> None:
    looked_at = taped and name == "one parameter"  # it changes what a backward pass reads
    with wp.Tape() if taped else wp.ScopedTimer("none", active=False):
        assert goes_through_python(lambda: SAME[name](wp.launch)) == looked_at


COMMANDS = {
    "plain": lambda c, launch: launch(c),
    "a stream": lambda c, launch: launch(c, None),
    "by name": lambda c, launch: launch(c, stream=None),
    "too many": lambda c, launch: launch(c, 1, 2),
    "far too many": lambda c, launch: launch(c, *range(20)),
    "another name": lambda c, launch: launch(c, steam=1),
    "another array": lambda c, launch: (c.set_param_at_index(1, X), launch(c)),
    "another grid": lambda c, launch: (c.set_dim(2), launch(c), c.set_dim((2, 2)), launch(c)),
    "one axis": lambda c, launch: (c.set_dim((3,)), launch(c)),
    "another kernel": lambda c, launch: (setattr(c, "kernel", total), launch(c)),
    "no kernel": lambda c, launch: (setattr(c, "kernel", None), launch(c)),
    "a number for a grid": lambda c, launch: (setattr(c, "dim", 4), launch(c)),
    "odd parameters": lambda c, launch: (setattr(c, "params", [X]), launch(c)),
    "an adjoint": lambda c, launch: (setattr(c, "adjoint", True), launch(c)),
    "forgotten": lambda c, launch: (scale.forget(), launch(c), launch(c)),
    "no command": lambda c, launch: launch(3),
    "deleted": lambda c, launch: (delattr(c, "dim"), launch(c)),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("sub", [False, True], ids=["", "subclass"])
def test_commands_do_the_same(name: str, sub: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(wp.Launch):
        pass

    assert NATIVE is not None
    found = []
    for native in (None, NATIVE):
        monkeypatch.setattr(launcher.maker, "made", native)
        X.assign(np.linspace(-1, 1, 4, dtype=np.float32))
        Y.assign(np.linspace(2, 3, 4, dtype=np.float32))
        command = (Own if sub else wp.Launch)(scale, params=[X, Y, 2.0], bounds=4)
        said, tape = "", wp.Tape()
        try:
            with tape:
                COMMANDS[name](command, wp.Launch.launch)
        except Exception as e:
            said = f"{type(e).__name__}: {e}"
        found.append((X.numpy().tolist(), Y.numpy().tolist(), len(tape.records), said))
    assert found[0] == found[1]


def test_commands_need_no_python() -> None:
    command = wp.launch(scale, 4, [X], [Y, 2.0], record_cmd=True)
    for dim in (4, (4,)):
        command.set_dim(dim)
        assert not goes_through_python(command.launch)


def test_where_it_was_called() -> None:
    tape = wp.Tape()
    with tape:
        wp.launch(scale, 4, [X], [Y, 2.0])
        (lambda: wp.launch(scale, 4, [X], [Y, 2.0]))()
        list(map(wp.launch, [scale], [4], [[X]], [[Y, 2.0]]))
    line = test_where_it_was_called.__code__.co_firstlineno
    assert [r.site.line - line for r in tape.records] == [3, 4, 5]
    assert all(r.site.file == __file__ for r in tape.records)


def test_one_place_is_one_site() -> None:
    """However often it is called, and by whom: Python makes code faster that runs often."""
    tape = wp.Tape()
    with tape:
        for k in range(60):
            if k == 20:
                events.everywhere.append(events.Observer())
            if k == 40:
                events.everywhere.clear()
            wp.launch(scale, 4, [X], [Y, 2.0]), wp.launch(scale, 4, [Y], [X, 2.0])
    first, second = ([r._site for r in tape.records[k::2]] for k in (0, 1))
    assert len(set(map(id, first))) == len(set(map(id, second))) == 1
    assert first[0] is not second[0] and first[0].line == second[0].line
    if sys.version_info >= (3, 11):
        assert first[0].span.col < second[0].span.col


def test_operators_beside_each_other_are_sites_of_their_own() -> None:
    tape = wp.Tape()
    with tape:
        for _ in range(30):
            -(X * Y)
            (
                X
                + Y * X
            )  # fmt: skip
    line = test_operators_beside_each_other_are_sites_of_their_own.__code__.co_firstlineno
    spans = [r.site for r in tape.records]
    kinds = {(s.line - line, s.end_line - line) for s in spans if s is not None}
    assert kinds == ({(4, 4), (6, 7), (7, 7)} if sys.version_info >= (3, 11) else kinds)
    assert len({id(r._site) for r in tape.records}) == 4


def test_errors_of_functions_of_python_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of signals' handlers, which run in any of them."""
    seen: list[int] = []

    def asked(self: Any) -> bool:
        seen.append(1)
        raise TypeError("of a handler")

    part = wp.zeros(8, dtype=float, requires_grad=True)[:4]
    with wp.Tape():
        for _ in range(3):
            wp.launch(scale, 4, [part], [Y, 2.0])
        monkeypatch.setattr(type(part), "requires_grad", property(asked))
        with pytest.raises(TypeError, match="of a handler"):
            wp.launch(scale, 4, [part], [Y, 2.0])
    assert len(seen) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_loops_of_c_let_handlers_run() -> None:
    class Late(Exception):
        pass

    def handle(number: int, frame: object) -> None:
        raise Late

    count = 5_000_000
    X.fill_(0.0)
    before = signal.signal(signal.SIGALRM, handle)
    try:
        with pytest.raises(Late):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            deque(map(wp.launch, repeat(alone, count), repeat(1), repeat((X,))), maxlen=0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert X.numpy()[0] < count / 2


def test_a_kernel_that_is_forgotten() -> None:
    for _ in range(3):
        X.fill_(1.0)
        wp.launch(alone, 1, [X])
        alone.forget()
        wp.launch(alone, 1, [X])
        assert X.numpy()[0] == 3.0


@wp.func_native("b[0] = a;")
def stored(a: float, b: F): ...


@wp.kernel
def native(x: F):
    stored(1.0, x)


@wp.kernel
def says(x: F):
    print(x[0])


@wp.kernel
def endless(x: F):
    while x[0] > 0.0:
        x[0] = x[0] - 1.0


@wp.kernel
def much(x: F):
    i = wp.tid()
    x[i] = wp.sin(x[i]) * wp.exp(x[i])


@pytest.mark.parametrize(
    ("kernel", "count", "soon"),
    [(alone, 1, True), (scale, 4, True), (native, 1, False), (says, 1, False), (endless, 1, False),
     (turns, 4, False), (much, 4, True), (much, 4000, False)],
)  # fmt: skip
def test_what_lets_no_other_thread_run(
    kernel: Any, count: int, soon: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is over at once, for certain."""
    x, rest = wp.zeros(count, dtype=float), []
    if kernel in (scale, turns):
        rest = [wp.zeros(count, dtype=float), 2.0 if kernel is scale else 2]
    for _ in range(3):
        wp.launch(kernel, count, [x, *rest])
    cached_launch = kernel.plan.forward.cached_launches[(count,)]
    assert cached_launch._ends_soon() == soon
    assert launcher.maker.functions is NATIVE
