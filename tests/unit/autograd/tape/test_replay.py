"""A tape as one function: its leaves, writes that are not on it, and what cannot be replayed."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd.tape.evaluation import TapeEvaluation
from engine.autograd.tape.operations import NotReplayable, OutsideWrite
from engine.autograd.tape.recorded_tape import recorded_tape
from engine.autograd.tape.replay import Replay, replay

F = wp.array(dtype=float)
N = 4


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def total(x: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i])


def ramp() -> Any:
    return wp.array(np.linspace(1.0, 2.0, N), dtype=float, requires_grad=True)


def zeros(n: int = N) -> Any:
    return wp.zeros(n, dtype=float, requires_grad=True)


def chain(between: Any = lambda y: None) -> Any:
    x, y, loss = ramp(), zeros(), zeros(1)
    tape = wp.Tape()
    with tape:
        wp.launch(square, N, [x], [y])
        between(y)
        wp.launch(total, N, [y], [loss])
    return tape


def test_leaves_are_what_came_from_outside() -> None:
    with closing(replay(recorded_tape(chain()))) as found:
        assert sorted(int(leaf.where.sum()) for leaf in found.leaves) == [1, N]
        found.begin()
        found.forward()
        (out,) = (found.memories.main.view(p) for p in found.outputs)
        assert out[0] == pytest.approx(float(np.sum(np.linspace(1.0, 2.0, N) ** 2)))


@pytest.mark.host("arrays of NumPy that are views")
def test_writes_that_the_tape_does_not_know_of_are_found() -> None:
    def write(y: Any) -> None:
        y.numpy()[1:3] = 9.0

    with closing(replay(recorded_tape(chain(write)))) as found:
        outside = [s for s in found.operations if isinstance(s, OutsideWrite)]
        assert [s.silent for s in outside] == [False]
        found.begin()
        found.forward()
        (out,) = (found.memories.main.view(p) for p in found.outputs)
        assert out[0] == pytest.approx(1.0 + 4.0 + 18.0)


def test_three_ways_to_the_derivative_along_a_line() -> None:
    rng = np.random.default_rng(0)
    with closing(replay(recorded_tape(chain()))) as found:
        tape = TapeEvaluation(found, rng)
        v = tape.direction(rng)
        adjoint = tape.adjoint_along(v)
        forward = tape.forward_along(v)
        h = 1e-5
        slope = (tape.displaced(v, h)[0] - tape.displaced(v, -h)[0]) / (2 * h)
        assert adjoint.value == pytest.approx(forward, rel=1e-12)
        assert adjoint.value == pytest.approx(slope, rel=1e-8)


def refused(tape: Any) -> str:
    with pytest.raises(NotReplayable) as why:
        replayed: Replay = replay(recorded_tape(tape))
        replayed.close()
    return str(why.value)


def test_what_cannot_be_replayed_is_said() -> None:
    with chain() as tape:
        tape.record_func(lambda: None, [])
    assert "record_func" in refused(tape)
    assert "nothing that it computes requires a gradient" in refused(wp.Tape())


def test_inputs_that_were_not_kept_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "tape_snapshots", "off")
    assert "'x' of kernel 'square'" in refused(chain())
