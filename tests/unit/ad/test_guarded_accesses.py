"""Accesses that a displaced float could send out of bounds."""

from __future__ import annotations

import numpy as np

import engine as wp
from engine import ad
from engine.ir import nodes as n
from engine.ir.verify import verify
from tests.unit.ad.kernels import ran, statements


@wp.kernel
def by_index(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[int(x[i])]


@wp.kernel
def by_store(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[int(x[i])] = 1.0


@wp.kernel
def plain(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * 2.0


def guarded(kernel) -> n.Function:
    out = ad.guard_accesses(kernel.ir)
    verify(out)
    return out


def test_a_read_outside_gives_nan() -> None:
    x = np.array([1.0, 0.0, 7.0, -5.0], np.float32)
    _, y = ran(guarded(by_index), 4, x, np.zeros(4, np.float32))
    np.testing.assert_array_equal(y, [0.0, 1.0, np.nan, np.nan])


def test_a_write_outside_leaves_nan_in_the_first_element() -> None:
    inside, outside = np.array([1.0, 2.0], np.float32), np.array([1.0, 9.0], np.float32)
    assert ran(guarded(by_store), 2, inside, np.zeros(3, np.float32))[1].tolist() == [0, 1, 1]
    y = ran(guarded(by_store), 2, outside, np.zeros(3, np.float32))[1]
    np.testing.assert_array_equal(y, [np.nan, 1.0, 0.0])


def test_accesses_that_no_float_decides_stay_as_they_are() -> None:
    assert statements(guarded(plain), n.If) == []
    assert guarded(plain).body == plain.ir.body
