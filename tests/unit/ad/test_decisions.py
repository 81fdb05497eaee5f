"""Decisions of floats: one number a thread, equal for equal paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.ad.decisions import MOST, WORDS
from engine.ir import interp
from tests.unit.ad.kernels import prepared

F = wp.array(dtype=float)


@wp.kernel
def smooth(x: F, y: F):
    i = wp.tid()
    if i > 2:
        y[i] = wp.sin(x[i]) * float(i)


@wp.kernel
def branches(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for _ in range(int(x[0])):
        if x[i] > 1.0 or wp.isnan(x[i]):
            s += wp.floor(x[i])
        s = wp.max(s, x[i])
    y[i] = s


@wp.kernel
def counts(x: F, y: F):
    i = wp.tid()
    t = float(0.0)
    while t < x[i]:
        t += 1.0
    y[i] = t


@wp.func
def half(x: float):
    if x > 1.0:
        return 0.5 * x
    return x


@wp.kernel
def in_a_function(x: F, y: F):
    i = wp.tid()
    y[i] = half(x[i])


def words(kernel: Any, x: list[float], most: int = 1 << 40) -> Any:
    fn = ad.decisions(prepared(kernel))
    assert fn is not None and fn.params[-1].name == MOST
    values = np.float32(x)
    journal = interp.run(fn, [values, np.zeros_like(values), most], (len(x),))
    slots = [int(v) for v in journal.slots]
    return np.array(slots).reshape(-1, WORDS).tolist() if len(slots) % WORDS == 0 else slots


def test_a_kernel_whose_floats_decide_nothing_has_no_record() -> None:
    assert ad.decisions(prepared(smooth)) is None


@pytest.mark.parametrize(
    "changed, same",
    [([2.0, 0.2], True), ([2.0, 1.5], False), ([2.0, np.nan], False), ([3.0, 0.5], False)],
)
def test_equal_words_mean_equal_paths(changed: list[float], same: bool) -> None:
    before, after = words(branches, [2.0, 0.5]), words(branches, changed)
    assert (before[1] == after[1]) is same


def test_functions_count_too() -> None:
    assert words(in_a_function, [0.5]) != words(in_a_function, [1.5])
    assert words(in_a_function, [0.5]) == words(in_a_function, [0.7])


def test_a_thread_that_decides_too_often_ends_in_its_loop() -> None:
    assert [count for _, count in words(counts, [3.0, 5.0])] == [4, 6]
    assert len(words(counts, [3.0, 1e30], most=10)) == 1  # the other one never came to its end
    assert ad.loops_by_floats(prepared(counts)) and not ad.loops_by_floats(prepared(branches))
