"""Checks that several processes share: what they find, and what comes of one that dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

import engine as wp
from adtool import checking, sharing
from adtool.checking import check_tapes
from adtool.job import CheckOptions
from adtool.outcome import Likenesses, Outcome, folded, unfolded
from adtool.sharing import Shared, can_fork
from engine.autograd import DividedCheck

F = wp.array(dtype=float)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@wp.kernel
def step(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] + 0.01 * wp.sin(x[i])


@wp.kernel
def scaled(x: F, y: F):
    i = wp.tid()
    y[i] = 1.001 * x[i]


@wp.kernel
def squared(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * (1.0 + 0.001 * x[i])


def captured(count: int = 30) -> list[Any]:
    with wp.capturing() as capture:
        for start in ([0.1, 0.2], [0.4, -0.3]):
            states = [
                wp.array(np.array(start), dtype=float, requires_grad=True)
                for _ in range(3 * count + 1)
            ]
            with wp.Tape() as tape:
                for n, (a, b) in enumerate(pairwise(states)):
                    wp.launch((step, scaled, squared)[n % 3], 2, [a], [b])
            tape.backward(grads={states[-1]: wp.ones_like(states[-1])})
    return list(capture.tapes)


@pytest.fixture
def told() -> list[tuple[int, int, int, str]]:
    return []


@pytest.fixture
def tell(told: list[Any]) -> Callable[..., None]:
    return lambda *place: told.append(place)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    threads = wp.config.num_threads
    yield
    assert wp.config.num_threads == threads
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def alone(tapes: list[Any]) -> dict[int, list[str]]:
    check = DividedCheck(tapes)
    out: dict[int, list[str]] = {}
    for kernel in check.kernels():
        for number, result in check.launches(kernel, lambda *_: None):
            out.setdefault(number, []).append(repr(result))
    return out


def shared_by(processes: int, tapes: list[Any], tell: Callable[..., None]) -> dict[int, list[str]]:
    with closing(Shared(DividedCheck(tapes), processes, tell)) as shared:
        shared.wait()
        assert shared.begun == sum(len(t.records) for t in tapes)
        return {n: [repr(x) for x in found] for n, found in shared.found().items()}


@pytest.mark.parametrize("processes", [1, 2, 7])
def test_processes_find_what_one_does(
    processes: int, told: list[Any], tell: Callable[..., None]
) -> None:
    expected = alone(captured())
    found = shared_by(processes, captured(), tell)
    assert {n: sorted(x) for n, x in found.items()} == {n: sorted(x) for n, x in expected.items()}
    assert {kernel for *_, kernel in told} <= {"step", "scaled", "squared"}


def test_what_a_process_that_dies_has_not_found_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, tell: Callable[..., None]
) -> None:
    expected, parent = alone(captured()), os.getpid()
    launches = DividedCheck.launches

    def deadly(self: DividedCheck, kernel: str, more: Any) -> Any:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return launches(self, kernel, more)

    monkeypatch.setattr(DividedCheck, "launches", deadly)
    with closing(Shared(DividedCheck(captured()), 3, tell)) as shared:
        shared.wait()
        found = {n: sorted(map(repr, x)) for n, x in shared.found().items()}
    assert found == {n: sorted(x) for n, x in expected.items()}


def test_an_error_of_a_process_is_met_again_where_it_can_be_told(
    monkeypatch: pytest.MonkeyPatch, tell: Callable[..., None]
) -> None:
    def broken(self: DividedCheck, kernel: str, more: Any) -> Any:
        raise RuntimeError(kernel)

    monkeypatch.setattr(DividedCheck, "launches", broken)
    with closing(Shared(DividedCheck(captured()), 2, tell)) as shared:
        with pytest.raises(RuntimeError, match=r"step|scaled|squared"):
            shared.wait()


def test_children_that_somebody_else_waits_for(tell: Callable[..., None]) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = shared_by(2, captured(), tell)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert {n: len(x) for n, x in found.items()} == {0: 90, 1: 90}


def test_what_can_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_THREADED", ())
    assert can_fork()
    other = threading.Timer(60, print)
    other.start()
    try:
        assert not can_fork()
    finally:
        other.cancel()
        other.join()
    monkeypatch.setattr(sharing, "_THREADED", ("a_framework",))
    assert can_fork()
    monkeypatch.setitem(sys.modules, "a_framework", sys)
    assert not can_fork()


def test_a_handler_of_the_target_hears_of_its_own_children_alone(tell: Callable[..., None]) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGCHLD, lambda number, frame: heard.append(number))
    try:
        shared_by(2, captured(), tell)
        assert not heard
        assert signal.getsignal(signal.SIGCHLD) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_without_what_it_needs_one_process_does_all(
    monkeypatch: pytest.MonkeyPatch, tell: Callable[..., None]
) -> None:
    expected = alone(captured())
    for name in ("pipe", "fork"):
        with monkeypatch.context() as m:
            m.setattr(os, name, None)
            found = shared_by(2, captured(), tell)
        assert {n: sorted(x) for n, x in found.items()} == {
            n: sorted(x) for n, x in expected.items()
        }


def test_what_a_process_has_found_by_now_is_there(
    monkeypatch: pytest.MonkeyPatch, tell: Callable[..., None]
) -> None:
    monkeypatch.setattr(sharing, "_SOON", 0.0)
    parent, launches = os.getpid(), DividedCheck.launches

    def slow(self: DividedCheck, kernel: str, more: Any) -> Any:
        for n, found in enumerate(launches(self, kernel, more)):
            if n == 5 and os.getpid() != parent:
                sleep(60)
            yield found

    monkeypatch.setattr(DividedCheck, "launches", slow)
    with closing(Shared(DividedCheck(captured()), 2, tell)) as shared:
        until = monotonic() + 30
        while sum(map(len, shared.found().values())) < 5 and monotonic() < until:
            sleep(0.01)
        assert sum(map(len, shared.found().values())) == 5


def outcome(processes: int) -> Outcome:
    found = check_tapes(captured(60), CheckOptions(seed=2), processes=processes)
    return replace(found, processes=0)  # those that other tests started


def test_the_outcome_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "LEAST", 1)
    monkeypatch.setattr(checking, "can_fork", lambda: True)
    one, two = outcome(1), outcome(2)
    assert [t.whole and t.whole.verdict for t in one.tapes] == ["pass", "pass"]
    assert any(p.by_whole for t in one.tapes for x in t.launches for p in x.pairs)
    assert repr(one) == repr(two)


@pytest.mark.parametrize("kernels", [3, 4])
def test_many_kernels_are_shared_too(monkeypatch: pytest.MonkeyPatch, kernels: int) -> None:
    monkeypatch.setattr(checking, "KERNELS", kernels)
    monkeypatch.setattr(checking, "can_fork", lambda: True)
    forked: list[int] = []

    def cannot(self: Shared, slot: int) -> None:
        forked.append(slot)
        raise OSError

    monkeypatch.setattr(Shared, "_forked", cannot)
    tapes = captured(3)
    assert len(checking.kernels_of(tapes)) == 3
    check_tapes(tapes, CheckOptions(), processes=4)
    assert bool(forked) == (kernels == 3)


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "LEAST", 1)
    wait = Shared.wait

    def interrupted(self: Shared) -> None:
        wait(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Shared, "wait", interrupted)
    found = outcome(2)
    assert found.kind == "interrupted"
    assert [t.tape for t in found.tapes] == [0, 1]
    kept = [x for t in found.tapes for x in t.launches]
    assert kept and not any(p.by_whole for x in kept for p in x.pairs)


def test_what_is_like_another_launch_is_folded() -> None:
    found = outcome(1)
    small = folded(found)
    assert len(small.tapes[0].launches) < len(found.tapes[0].launches) / 2
    assert unfolded(small) == found
    assert folded(Outcome("done")) == Outcome("done")


@pytest.mark.parametrize(
    "wrong", [Likenesses(2, (), ()), Likenesses(0, ((5, 999, -1),), ()),
              Likenesses(0, ((5, -1, -1),), ()), Likenesses(0, ((5, 0, 0),), ())],
)  # fmt: skip
def test_what_cannot_have_been_folded_is_refused(wrong: Likenesses) -> None:
    found = replace(outcome(1), likenesses=(wrong,))
    with pytest.raises(ValueError, match="there is no"):
        unfolded(found)
