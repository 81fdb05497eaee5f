"""In which parts launches run: what is known of one holds for those that are like it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import schedule as schedules
from tests.parts import SMALL

pytestmark = pytest.mark.host("launches in parts are the CPU's")
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


@wp.kernel
def busy(x: F, at: wp.array(dtype=int), n: int, rare: int, out: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(n):
        s += x[i]
    if rare == 1:
        for k in range(n):
            s += x[i]
    wp.atomic_add(out, at[i], s)


def parts_of(monkeypatch: pytest.MonkeyPatch, size: int, threads: int, turns: int) -> int:
    """Parts of a launch that adds to an array of `size` numbers; 1 for one that is not divided."""
    made: list[Any] = []
    make = schedules._schedule
    for name, value in (("LEAST", 400_000), ("PART", 60_000), ("SHARE", 8)):  # also under --parts
        monkeypatch.setattr(schedules, name, value)
    monkeypatch.setattr(schedules, "_schedule", lambda *a: made.append(make(*a)) or made[-1])
    x, out = wp.ones(threads, dtype=float), wp.zeros(size, dtype=float)
    at = wp.array(np.arange(threads) % size, dtype=int)
    wp.launch(busy, threads, [x, at, turns, 0], [out])
    assert float(out.numpy().sum()) == threads * turns
    how = made[0] if made else None
    return 1 if how is None else len(how.bounds) - 1


def test_copies_cost_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    few = parts_of(monkeypatch, 3, 500, 400)
    assert 1 < few < 16  # work for many parts; but each copy takes time, however small
    assert parts_of(monkeypatch, 3, 5000, 800) > few
    assert parts_of(monkeypatch, 100_000, 500, 400) == 1  # more than they would spare


@wp.kernel
def reaching(x: F, y: F, reach: int):
    i = wp.tid()
    wp.atomic_add(y, i, x[i])
    wp.atomic_add(y, i + reach, 2.0 * x[i])


@wp.kernel
def own(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def given(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Gets the schedules that are made, None for those of launches that are not divided."""
    found: list[Any] = []
    make = schedules._schedule
    monkeypatch.setattr(schedules, "_schedule", lambda *a: found.append(make(*a)) or found[-1])
    return found


def test_parts_that_share_elements_are_wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second part runs at once: none of these may meet the one after the next."""
    found = given(monkeypatch)
    for name, value in SMALL.items():
        monkeypatch.setattr(schedules, name, value)
    crossing = 0
    for n in range(700, 9000, 230):
        for reach in (1, 50, 63, 65, 100, 127, 130):
            found.clear()
            x, y = wp.array(np.ones(n, np.float32)), wp.zeros(n + reach, dtype=float)
            wp.launch(reaching, n, [x, y, reach])
            expected = np.zeros(n + reach, np.float32)
            expected[:n] += 1.0
            expected[reach:] += 2.0
            np.testing.assert_array_equal(y.numpy(), expected)
            for how in filter(None, found):
                widths = np.diff(how.bounds)
                assert how.bounds[0] == 0 and how.bounds[-1] == n and (widths > 0).all()
                if len(how.rounds) == 2:
                    crossing += 1
                    assert widths.min() >= reach, (n, reach, how.bounds)
    assert crossing > 50


def test_parts_begin_at_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    found = given(monkeypatch)
    for n in (1_000_003, 5_000_000):
        x, y = wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
        wp.launch(own, n, [x, y])
    assert found and all(b % schedules.LINE == 0 for how in found for b in how.bounds[:-1])
