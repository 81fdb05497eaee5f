"""Minima and maxima on a GPU have the same winners when they are watched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.cuda.emulated import PLACES, place

F = wp.array(dtype=float)


def on(device: Any, run: Any) -> Any:
    with wp.ScopedDevice(device):
        return run()


@wp.kernel
def within_bounds(x: F, at: wp.array(dtype=int), low: F, high: F):
    i = wp.tid()
    wp.atomic_min(low, at[i], x[i] * (x[i] - 1.0) + 0.5)
    wp.atomic_max(high, 0, x[i])


@pytest.mark.parametrize("outside", [0, 9])
@pytest.mark.parametrize("where", PLACES)
def test_watched_kernels_have_the_same_winners(where: str, outside: int) -> None:
    """What is outside of an array has no winner, and is told."""

    def run() -> tuple[list[Any], list[bytes]]:
        told: list[Any] = []
        rng = np.random.default_rng(4)
        x = wp.array(rng.integers(-3, 4, 150).astype(np.float32), requires_grad=True)
        places = np.arange(150) % 3
        places[7] += outside
        at = wp.array(places.astype(np.int32))
        low = wp.array(np.full(3, 2.0, np.float32), requires_grad=True)
        high = wp.array(np.full(1, np.nan, np.float32), requires_grad=True)
        with wp.watching(told.append, races=True), wp.Tape() as tape:
            wp.launch(within_bounds, 150, [x, at, low, high])
        seeds = {low: wp.array([1.0, 2.0, 3.0], dtype=float), high: wp.array([4.0], dtype=float)}
        with wp.watching(told.append):
            tape.backward(grads=seeds)
        return told, [a.numpy().tobytes() for a in (x.grad, low, high, low.grad, high.grad)]

    expected, plain = on("cpu", run)
    with place(where) as gpu:
        found, same = on(gpu, run)
    assert len(plain[0]) > 1 and same[1:] == plain[1:] and same[0] == plain[0]
    kinds = {(f.kind, f.name, f.form, f.thread) for f in expected}
    assert {(f.kind, f.name, f.form, f.thread) for f in found} == kinds
    assert bool(kinds) == bool(outside)
