"""Comparing what arrays hold with what they held, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.tape.restoration import any_byte, differ, differing


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1", "i4", "V12", "c16"])
def test_numbers_that_differ(dtype: str) -> None:
    kind = np.dtype(dtype)
    x = np.arange(24 * kind.itemsize, dtype=np.uint8).view(kind).reshape(4, 6)
    y = x.copy()
    y.view(np.uint8).reshape(4, 6, -1)[2, 3, -1] ^= 1
    assert np.argwhere(differ(x, y)).tolist() == [[2, 3]]
    assert not differ(x, x.copy()).any()
    assert np.argwhere(differ(x.T, y.T)).tolist() == [[3, 2]]


def test_equal_numbers_of_other_bits_differ() -> None:
    x, y = np.array([0.0, np.nan], np.float32), np.array([-0.0, np.nan], np.float32)
    assert differ(x, y).tolist() == [True, False]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 12])
def test_bytes_of_numbers(size: int) -> None:
    x = np.zeros((5, 3, size), np.bool_)
    x[1, 2, size - 1] = x[4, 0, 0] = True
    assert np.argwhere(any_byte(x)).tolist() == [[1, 2], [4, 0]]
    assert np.argwhere(any_byte(x[1::3])).tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize("n", [1, 64, 4096, 10_000, 50_001])
def test_what_a_hold_says(n: int) -> None:
    """Copies are in pieces of 16 KiB."""
    x = wp.array(np.arange(n), dtype=float)
    part = x[n // 3 :]
    hold = x.storage.hold(x.lo, x.hi, eager=True)
    assert differing(x, hold) is None and differing(part, hold) is None
    _put(x, n - 1)
    assert np.flatnonzero(_found(x, hold)).tolist() == [n - 1]
    assert np.flatnonzero(_found(part, hold)).tolist() == [n - 1 - n // 3]
    assert n == 1 or differing(x[: n - 1], hold) is None
    assert n == 1 or np.flatnonzero(_found(x[::-1], hold)).tolist() == [0]


def test_a_hold_of_nothing_and_a_lost_one() -> None:
    empty = wp.zeros(0, dtype=float)
    assert differing(empty, empty.storage.hold(empty.lo, empty.hi, eager=True)) is None
    x = wp.zeros(100_000, dtype=float)
    limit, wp.config.snapshot_limit_bytes = wp.config.snapshot_limit_bytes, 100
    try:
        hold = x.storage.hold(x.lo, x.hi, eager=True)
    finally:
        wp.config.snapshot_limit_bytes = limit
    _put(x, 3)
    assert hold.lost and differing(x, hold) is None


@pytest.mark.host("how copies of the host's memory are shared")
def test_copies_of_one_piece_are_shared() -> None:
    """Parts of one piece of memory that was not written in between have one copy."""
    x = wp.zeros(64, dtype=float)
    first = x.storage.hold(x.lo, x.lo + 16, eager=True)
    assert x.storage.hold(x.lo + 32, x.hi, eager=True) is first
    _put(x, 10)
    after = x.storage.hold(x.lo + 32, x.hi, eager=True)
    assert after is not first and differing(x[8:], after) is None
    assert np.flatnonzero(_found(x, first)).tolist() == [10]


def _put(x: Any, k: int) -> None:
    x.storage.before_write(x.lo, x.hi)
    x._parts[k] += 1


def _found(x: Any, hold: Any) -> Any:
    found = differing(x, hold)
    assert found is not None
    return found
