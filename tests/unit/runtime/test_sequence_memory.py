"""Captured sequences: what they keep alive, and what they look at of arrays."""

from __future__ import annotations

import gc
import sys
import weakref
from itertools import pairwise

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import schedule
from tests.unit.runtime.launching import made, scale, way
from tests.unit.runtime.sequences import ONE_CALL, training

pytestmark = ONE_CALL


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


def test_memory_ends_with_the_graph_and_its_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a search for circles."""
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    with way(monkeypatch, "native"):
        p = training(5)
        for _ in range(4):
            wp.capture_launch(p.graphs[0])
        assert p.tapes[0]._unmade is not None
        gone = [weakref.ref(a.storage) for a in p.arrays]
        gc.collect()
        gc.disable()
        try:
            del p
            assert [r() for r in gone] == [None] * 3
        finally:
            gc.enable()


def test_the_collector_has_nothing_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or each run would bring the next search of the whole heap nearer."""
    monkeypatch.setattr(schedule, "LEAST", 400_000)
    with way(monkeypatch, "native"):
        arrays = [made(5) for _ in range(101)]
        with wp.ScopedCapture() as capture, wp.Tape():
            for a, b in pairwise(arrays):
                wp.launch(scale, 5, [a, b, 0.5])
        for _ in range(4):
            wp.capture_launch(capture.graph)
        gc.collect()
        gc.disable()
        try:
            before = {id(o) for o in gc.get_objects()}
            wp.capture_launch(capture.graph)
            new = [o for o in gc.get_objects() if id(o) not in before]
        finally:
            gc.enable()
    assert len(new) < 20


class Own(wp.array):
    """An array that asks for gradients in its own way."""

    asks = True

    @property
    def requires_grad(self) -> bool:
        return self.asks

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        pass


def test_arrays_of_other_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for short in (False, "native"):
        with way(monkeypatch, short):
            x = Own(np.linspace(0.5, 1.0, 5, dtype=np.float32), dtype=float, requires_grad=True)
            y, z = made(5), made(5)
            tape, trace = wp.Tape(), []
            with wp.ScopedCapture() as capture:
                with tape:
                    wp.launch(scale, 5, [x, y, 2.0])
                    wp.launch(scale, 5, [y, z, 0.5])
                tape.backward(grads={z: np.ones(5, np.float32)})
            for k in range(6):
                Own.asks = k != 3
                wp.capture_launch(capture.graph)
                grads = [None if a.grad is None else a.grad.numpy().tobytes() for a in (x, y, z)]
                trace.append((x.numpy().tobytes(), z.numpy().tobytes(), grads))
                tape.zero()
            Own.asks = True
            found.append(trace)
    assert found[0] == found[1]
