"""Holds: what memory contained, copied only when it changes."""

import gc

import numpy as np
import pytest

import engine as wp
from engine import config


def hold(a, eager=False):
    return a.storage.hold(a.lo, a.hi, eager)


def read(h, a):
    parts = a._parts
    return h.read(a.ptr, parts.shape, parts.strides, parts.dtype)


def test_nothing_is_copied_until_a_write():
    a = wp.ones(4)
    h = hold(a)
    assert h.data is None
    a.fill_(2.0)
    assert h.data is not None
    assert read(h, a).tolist() == [1, 1, 1, 1]
    a.fill_(3.0)
    assert read(h, a).tolist() == [1, 1, 1, 1]


def test_one_copy_for_all_holders():
    a = wp.ones(4)
    assert hold(a) is hold(a)
    first = hold(a)
    a.zero_()
    assert hold(a) is not first


def test_writes_elsewhere_copy_nothing():
    a = wp.ones((4, 2))
    h = hold(a[0])
    a[1:].fill_(5.0)
    assert h.data is None
    a[0].fill_(5.0)
    assert read(h, a[0]).tolist() == [1, 1]


def test_a_dead_hold_costs_nothing():
    a = wp.ones(4)
    h = hold(a)
    del h
    gc.collect()
    a.fill_(2.0)
    assert a.storage._hold is None


def test_numpy_view_before_the_hold():
    a = wp.ones(4)
    view = a.numpy()
    h = hold(a)
    view[0] = 9
    assert read(h, a).tolist() == [1, 1, 1, 1]


def test_numpy_view_after_the_hold():
    a = wp.ones(4)
    h = hold(a)
    a.numpy()[1:][0] = 9
    assert read(h, a).tolist() == [1, 1, 1, 1]


def test_views_are_tracked_while_they_live():
    a = wp.ones(4)
    view = a.numpy()
    part = view[1:]
    del view
    gc.collect()
    assert a.storage.exposed
    del part
    gc.collect()
    assert not a.storage.exposed


def test_wrapped_memory_is_always_exposed():
    n = np.ones(4)
    a = wp.array(n, copy=False)
    h = hold(a)
    n[0] = 5
    assert read(h, a).tolist() == [1, 1, 1, 1]
    assert read(hold(a), a).tolist() == [5, 1, 1, 1]


def test_two_wrappers_share_a_storage():
    n = np.ones(4)
    a, b = wp.array(n, copy=False), wp.array(n[1:], copy=False)
    assert a.storage is b.storage
    assert wp.array(a.numpy(), copy=False).storage is a.storage
    own = wp.ones(3)
    assert wp.array(own.numpy()[1:], copy=False).storage is own.storage


def test_eager_holds_share_what_did_not_change():
    a = wp.ones(4)
    h = hold(a, eager=True)
    assert h.data is not None
    assert hold(a, eager=True) is h
    a.fill_(2.0)
    assert hold(a, eager=True) is not h


def test_limit(monkeypatch):
    monkeypatch.setattr(config, "snapshot_limit_bytes", 0)
    a = wp.ones(4)
    h = hold(a)
    a.fill_(2.0)
    assert h.lost
    assert read(h, a) is None


@pytest.mark.parametrize("index", [slice(None, None, -1), slice(None, None, 2)])
def test_strided_reads(index):
    a = wp.array(np.arange(5.0))
    v = a[index]
    h = hold(v)
    expected = v.numpy().copy()
    a.zero_()
    assert np.array_equal(read(h, v), expected)
