"""Loops that make room for the journal of many threads at once save what threads alone would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import loops
from engine.codegen.cpp import CPP
from engine.codegen.cstyle import Emitter
from engine.compile.cpu.loops import loops_of
from engine.diagnostics import EngineError
from tests.backend.test_loops import functions
from tests.parts import cut

pytestmark = pytest.mark.whole
F, F2 = wp.array(dtype=float), wp.array2d(dtype=float)
V = wp.array(dtype=wp.vec3)


def in_place() -> Any:
    @wp.kernel
    def in_place(x: F, y: F):
        i = wp.tid()
        x[i] = x[i] * x[i]
        y[i] = y[i] * x[i]

    return in_place


def branches() -> Any:
    @wp.kernel
    def branches(x: F, y: F):
        i = wp.tid()
        if i % 3 == 0:
            return
        if x[i] > 0.0:
            x[i] = x[i] * y[i]
            if y[i] > 0.0:
                y[i] = wp.sin(y[i]) * x[i]
        else:
            y[i] = y[i] * y[i]

    return branches


def few_turns() -> Any:
    @wp.kernel
    def few_turns(x: F, y: F):
        i = wp.tid()
        for k in range(3):
            x[i] = x[i] * y[i] + float(k)

    return few_turns


def turns() -> Any:
    @wp.kernel
    def turns(x: F, y: F):
        i = wp.tid()
        for _ in range(i % 5):
            x[i] = x[i] * y[i]

    return turns


def winner() -> Any:
    @wp.kernel
    def winner(x: F, y: F):
        i = wp.tid()
        wp.atomic_max(y, 0, wp.sin(x[i]) * x[i])

    return winner


def shared() -> Any:
    @wp.kernel
    def shared(x: F, y: F):
        i = wp.tid()
        x[i] = x[i] * x[i]
        wp.atomic_add(y, 0, x[i])

    return shared


def wholly() -> Any:
    @wp.kernel
    def wholly(x: F, y: F):
        x[0] = x[0] * y[0]

    return wholly


MAKERS = [in_place, branches, few_turns, turns, winner, shared, wholly]
# Those of which the frames of threads are known.
ROOMY = {"in_place", "branches", "few_turns", "winner"}


def outcome(kernel: Any, dim: Any, n: int) -> list[bytes]:
    rng = np.random.default_rng(n)
    x, y = (wp.array(rng.uniform(-1, 1, n).astype(np.float32), requires_grad=True)
            for _ in range(2))  # fmt: skip
    with wp.Tape() as tape:
        wp.launch(kernel, dim, [x, y])
    seeds = {a: wp.array(rng.uniform(-1, 1, n).astype(np.float32)) for a in (x, y)}
    tape.backward(grads=seeds)
    return [a.numpy().tobytes() for a in (x, y, x.grad, y.grad)]


def plainly(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], *args: Any) -> list[bytes]:
    with monkeypatch.context() as m:
        m.setattr(loops, "MOST", -1)
        return outcome(make(), *args)


@pytest.mark.parametrize("make", MAKERS)
def test_the_same_gradients(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = make()
    sizes = [1, 63, 64, 65, 200]
    for n in sizes:
        assert outcome(kernel, n, n) == plainly(monkeypatch, make, n, n), n
    # A grid of more axes than the kernel asks for.
    assert outcome(kernel, (70, 2), 140) == plainly(monkeypatch, make, (70, 2), 140)
    plain = plainly(monkeypatch, make, 200, 200)
    for threads in (1, 2, 7):
        with cut(threads):
            found = outcome(kernel, 200, 200)
        assert make is shared or found == plain  # a sum of other parts


@pytest.mark.parametrize("make", MAKERS)
def test_which_do(make: Callable[[], Any]) -> None:
    _, recorded, *_ = functions(make())
    e = Emitter(recorded, CPP, False)
    room = loops.room_of(e, loops_of(recorded))
    assert (room > 0) == (make.__name__ in ROOMY)
    assert room % 8 == 0


def test_two_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> Any:
        @wp.kernel
        def flat(x: F2, v: V):
            i, j = wp.tid()
            x[i, j] = x[i, j] * v[j][0]
            if i == 0:
                v[j] = v[j] * x[i, j]

        return flat

    def found(kernel: Any, shape: tuple[int, int]) -> list[bytes]:
        rng = np.random.default_rng(7)
        x = wp.array(rng.uniform(-1, 1, shape).astype(np.float32), requires_grad=True)
        v = wp.array(rng.uniform(-1, 1, (shape[1], 3)).astype(np.float32), dtype=wp.vec3,
                     requires_grad=True)  # fmt: skip
        with wp.Tape() as tape:
            wp.launch(kernel, shape, [x, v])
        tape.backward(grads={x: wp.array(rng.uniform(-1, 1, shape).astype(np.float32))})
        return [a.numpy().tobytes() for a in (x, v, x.grad, v.grad)]

    for shape in ((3, 70), (70, 3), (1, 64), (130, 1)):
        with monkeypatch.context() as m:
            m.setattr(loops, "MOST", -1)
            plain = found(make(), shape)
        assert found(make(), shape) == plain


@pytest.mark.parametrize("make", [in_place, branches])
def test_limits(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same launches are refused, by what threads saved and not by the room made for them."""
    kernel, n, refused = make(), 130, []
    for way in (loops.MOST, -1):
        monkeypatch.setattr(loops, "MOST", way)
        k = make() if way < 0 else kernel
        outcome(k, n, n)  # compiled
        said: list[str | None] = []
        for limit in range(8, n * 64, 184):
            monkeypatch.setattr(wp.config, "journal_limit_bytes", limit)
            try:
                outcome(k, n, n)
                said.append(None)
            except EngineError as e:
                said.append(e.diagnostics[0].code)
        monkeypatch.setattr(wp.config, "journal_limit_bytes", 4 << 30)
        refused.append(said)
    assert refused[0] == refused[1]
    assert {None, "E209"} == set(refused[0])
