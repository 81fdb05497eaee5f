"""Holds: what memory contained, copied only when it changes."""

import gc
import weakref

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.runtime import chunks, events


def hold(a, eager=False):
    return a.storage.hold(a.lo, a.hi, eager)


def read(h, a):
    parts = a._parts
    return h.read(a.ptr, parts.shape, parts.strides, parts.dtype)


def test_nothing_is_copied_until_a_write():
    a = wp.ones(4)
    h = hold(a)
    assert not h.chunks
    a.fill_(2.0)
    assert h.chunks
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
    assert not h.chunks
    a[0].fill_(5.0)
    assert read(h, a[0]).tolist() == [1, 1]


def test_a_dead_hold_costs_nothing():
    a = wp.ones(4)
    h = hold(a)
    del h
    gc.collect()
    a.fill_(2.0)
    assert a.storage._hold is None


@pytest.fixture
def careful(monkeypatch):
    """Memory that may change unseen is copied when it is held."""
    monkeypatch.setattr(config, "snapshot_exposed_bytes", 1 << 20)


def test_numpy_view_before_the_hold(careful):
    a = wp.ones(4)
    view = a.numpy()
    h = hold(a)
    view[0] = 9
    assert read(h, a).tolist() == [1, 1, 1, 1]


def test_numpy_view_after_the_hold(careful):
    a = wp.ones(4)
    h = hold(a)
    a.numpy()[1:][0] = 9
    assert read(h, a).tolist() == [1, 1, 1, 1]


@pytest.mark.host("arrays of NumPy that are views")
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


@pytest.mark.host("memory of the host")
def test_wrapped_memory_is_always_exposed(careful):
    n = np.ones(4)
    a = wp.array(n, copy=False)
    h = hold(a)
    n[0] = 5
    assert read(h, a).tolist() == [1, 1, 1, 1]
    assert read(hold(a), a).tolist() == [5, 1, 1, 1]


@pytest.mark.parametrize("limit", [0, 31])
@pytest.mark.host("memory of the host")
def test_memory_that_may_change_unseen_is_not_copied_unless_asked_for(monkeypatch, limit):
    monkeypatch.setattr(config, "snapshot_exposed_bytes", limit)
    n = np.ones(4)
    a = wp.array(n, copy=False)
    before = chunks.held()
    h = hold(a)
    assert chunks.held() == before and h.unseen and not h.lost
    assert not a.storage.unchanged(h)  # it may have been written
    n[0] = 5  # unseen: taken to have been there
    a.fill_(7)
    assert chunks.held() > before
    assert read(h, a).tolist() == [5, 1, 1, 1]
    assert read(hold(a, eager=True), a).tolist() == [7, 7, 7, 7]


@pytest.mark.host("arrays of NumPy that are views")
def test_a_view_that_comes_later_costs_nothing(monkeypatch):
    monkeypatch.setattr(config, "snapshot_exposed_bytes", 0)
    own = wp.ones(100)
    h = hold(own)
    before = chunks.held()
    view = own.numpy()
    assert chunks.held() == before
    assert not own.storage.unchanged(h)
    view[0] = 3
    del view
    gc.collect()
    assert not own.storage.unchanged(h)


def test_whoever_watches_sees_each_write_and_has_exposed_memory_copied():
    a = wp.ones(4)
    view = a.numpy()
    seen = []

    class Watcher(events.Observer):
        keeps = True

        def writing(self, *write):
            seen.append(write)

    with events.observing(Watcher()):
        h = hold(a)
        view[0] = 9
        assert read(h, a).tolist() == [1, 1, 1, 1]
        a.zero_()
    assert seen == [(a.storage, a.lo, a.hi)]


@pytest.mark.host("memory of the host")
def test_copies_share_what_did_not_change():
    size = 10 * chunks.SIZE
    a = wp.zeros(size, dtype=wp.uint8)
    before = chunks.held()
    holds, expected = [], []
    for k in range(5):
        a[k * chunks.SIZE : k * chunks.SIZE + 7].fill_(k + 1)
        for view in (a, a[100 : 3 * chunks.SIZE], a[5::-2]):
            holds.append((hold(view, eager=True), view))
            expected.append(view._parts.copy())
    for (h, view), e in zip(holds, expected, strict=True):
        assert np.array_equal(read(h, view), e)
    # Each write changes one piece, or two where it lies across a border.
    assert chunks.held() - before <= size + 4 * 2 * chunks.SIZE
    del holds, h
    gc.collect()
    assert chunks.held() == before


def test_a_hold_does_not_keep_the_memory_alive():
    a = wp.ones(1000)
    alive = weakref.ref(a.storage)
    h = hold(a, eager=True)
    read_as = a.ptr, a.shape, a.strides, np.float32
    del a
    gc.collect()
    assert alive() is None
    assert h.read(*read_as).tolist() == [1.0] * 1000


@pytest.mark.host("memory of the host")
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
    assert h.chunks
    assert hold(a, eager=True) is h
    a.fill_(2.0)
    assert hold(a, eager=True) is not h


@pytest.mark.host("arrays of NumPy that are views")
def test_writes_through_a_view_that_is_gone_are_seen():
    a = wp.ones(4)
    for value in (2.0, 3.0, 3.0, 4.0):
        before = hold(a, eager=True)
        expected = a.numpy().copy()
        a.numpy()[:] = value  # nobody is told of that
        assert read(hold(a, eager=True), a).tolist() == [value] * 4
        assert np.array_equal(read(before, a), expected)


def test_limit(monkeypatch):
    monkeypatch.setattr(config, "snapshot_limit_bytes", 0)
    a = wp.ones(4)
    h = hold(a)
    a.fill_(2.0)
    assert "0 bytes (engine.config.snapshot_limit_bytes)" in h.lost
    assert read(h, a) is None


@pytest.mark.parametrize("index", [slice(None, None, -1), slice(None, None, 2)])
def test_strided_reads(index):
    a = wp.array(np.arange(5.0))
    v = a[index]
    h = hold(v)
    expected = v.numpy().copy()
    a.zero_()
    assert np.array_equal(read(h, v), expected)
