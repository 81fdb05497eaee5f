"""Backward passes of many records in few calls, against each record by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.accel import launcher
from engine.compile.cpu import schedule
from engine.diagnostics import EngineError
from engine.runtime import events
from tests.unit.runtime.launching import (
    NATIVE,
    made,
    scale,
    total,
    turns,
    way,
)
from tests.unit.runtime.sequences import add, record
from tests.unit.tape.passes import chain

pytestmark = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.cold("says by itself how launches run"),
]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What calls for many records gave."""
    assert NATIVE is not None
    came: list[Any] = []
    back_all = NATIVE.back_all

    def call(records: Sequence[Any], *number: int) -> Any:
        came.append(back_all(records, *number))
        return came[-1]

    functions = NATIVE._replace(back_all=call)
    monkeypatch.setattr(launcher.maker, "made", functions)
    return came


@pytest.mark.host("native launches")
def test_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)
    with way(monkeypatch, "native") as m:
        came = counted(m)
        tape, loss, arrays = chain(5)
        for _ in range(3):
            tape.backward(loss)
        assert came[-1] is True
        del came[:]
        arrays[200].grad = None
        arrays[200].requires_grad = True  # its gradient has to be made
        tape.backward(loss)
        assert [x for x in came if x is not True]
        del came[:]
        told: list[Any] = []

        class Told(events.Observer):
            def writing(self, *what: Any) -> None:
                told.append(what)

        with events.observing(Told()):
            tape.backward(loss)
        assert came == []
        assert len(told) > 300


def test_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adjoints that run out of stack go on in the form that saves less, or end with an error."""
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short):
            x, ys = made(4), [made(4) for _ in range(7)]
            with wp.Tape() as tape:
                for k, y in enumerate(ys):
                    wp.launch(
                        turns if k % 3 == 1 else scale, 4, [x, y, 2000 if k % 3 == 1 else 2.0]
                    )
            out: list[Any] = []
            for limit in (1 << 20, 1 << 20, 1 << 20, 12000, 12000, 16, 1 << 20):
                monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
                tape.zero()
                try:
                    tape.backward(grads={y: np.ones(4, np.float32) for y in ys})
                except EngineError as e:
                    out.append(e.diagnostics[0].notes)
                out.append((x.grad.numpy().tobytes(), [r.stack_bytes for r in tape.records]))
            found.append(out)
    for a, b in zip(*found, strict=True):
        assert a == b


def test_large_ones_between_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)
    found = []
    for short, threads in ((False, 1), ("native", 1), ("native", 2), ("native", 7)):
        monkeypatch.setattr(wp.config, "num_threads", threads)
        with way(monkeypatch, short):
            x, y, z = made(400_000), made(400_000), made(5)
            loss = wp.zeros(1, dtype=float, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(scale, 5, [x[:5], z, 2.0])
                wp.launch(scale, 400_000, [x, y, 0.5])
                wp.launch(total, 400_000, [y, loss])
                wp.launch(total, 5, [z, loss])
                wp.launch(total, 1, [z, loss])
            for _ in range(4):
                tape.backward(loss)
            found.append(x.grad.numpy().tobytes())
    assert all(f == found[0] for f in found)


def test_records_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    with way(monkeypatch, "native"):
        tape, loss, _ = chain(3)
        before = record(tape)
        for _ in range(3):
            tape.backward(loss)
        assert record(tape) == before
    wp.launch(add, 1, [loss, 1.0])
