"""In which parts launches run: what is known of one holds for those that are like it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import schedule as schedules

F = wp.array(dtype=float)


@wp.kernel
def summed(x: F, at: wp.array(dtype=int), out: F):
    i = wp.tid()
    wp.atomic_add(out, at[i], x[i])


@wp.kernel
def shifted(x: F, y: F):
    i = wp.tid()
    y[i + 1] = x[i] + 1.0


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Gets what each schedule that is made is made of. Small launches are divided, too."""
    made: list[Any] = []
    make = schedules._schedule
    monkeypatch.setattr(schedules, "LEAST", 100)
    monkeypatch.setattr(schedules, "PART", 20)
    monkeypatch.setattr(schedules, "_schedule", lambda *a: made.append(a) or make(*a))
    return made


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_other_arrays_that_lie_alike_get_the_same_parts(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(wp.config, "num_threads", threads)
    made = counted(monkeypatch)
    n, rng = 4000 + threads, np.random.default_rng(0)
    for _ in range(4):
        x, at = rng.integers(0, 100, n).astype(np.float32), rng.integers(0, 7, n)
        out = wp.zeros(7, dtype=float)
        wp.launch(summed, n, [wp.array(x), wp.array(at, dtype=int)], [out])
        right = np.zeros(7)
        np.add.at(right, at, x)
        np.testing.assert_array_equal(out.numpy(), right)
    assert len(made) == 1


def test_arrays_that_overlap_are_no_like_of_those_that_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = counted(monkeypatch)
    n = 3000
    start = np.arange(n + 1, dtype=np.float32)
    for _ in range(2):
        y = wp.zeros(n + 1, dtype=float)
        wp.launch(shifted, n, [wp.array(start)], [y])
        np.testing.assert_array_equal(y.numpy()[1:], start[:-1] + 1.0)
        both = wp.array(start)
        wp.launch(shifted, n, [both], [both])  # one thread after another: each reads the last
        np.testing.assert_array_equal(both.numpy(), np.arange(n + 1))
    assert len(made) == 2
