"""Functions without effect on arrays that are not there."""

from __future__ import annotations

import numpy as np

import engine as wp
from engine.ad.mute import Muted
from engine.ir import nodes as n
from tests.unit.ad.kernels import ran, statements


@wp.func
def inner(a: wp.array(dtype=float), b: wp.array(dtype=float), i: int):
    b[i] = b[i] + a[i]


@wp.kernel
def adds(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = a[i] + 1.0
    inner(a, b, i)
    b[i] = b[i] + float(b.shape[0])


def muted(*arrays: str) -> n.Function:
    return Muted().function(adds.ir, frozenset(arrays))


def test_stores_are_lost_and_reads_give_zero() -> None:
    a, b = np.full(2, 5, np.float32), np.full(2, 7, np.float32)
    assert [x.tolist() for x in ran(muted("a"), 2, a, b)] == [[5, 5], [9, 9]]
    assert [x.tolist() for x in ran(muted("b"), 2, a, b)] == [[6, 6], [7, 7]]
    assert [x.tolist() for x in ran(muted(), 2, a, b)] == [[6, 6], [15, 15]]


def test_through_calls_too() -> None:
    out = muted("a", "b")
    assert not any(statements(f, n.Load, n.Store) for f in (out, *n.callees(out)))


def test_each_is_made_once() -> None:
    pass_ = Muted()
    assert pass_.function(adds.ir, frozenset("a")) is pass_.function(adds.ir, frozenset("a"))
    assert pass_.function(adds.ir, frozenset()) is adds.ir
