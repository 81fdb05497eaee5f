"""Positions of views by numbers alone, against NumPy."""

import random

import numpy as np
import pytest

import engine as wp
from engine import LaunchError
from engine.runtime import views
from engine.runtime.placement import SAME, Placed, Reshaped, Sliced, Transposed

DTYPES = [float, wp.float64, wp.int8, wp.vec3, wp.mat22, wp.float16]


def _geometry(a):
    return a.shape, a.strides, a.ptr, a.lo, a.hi, a.is_contiguous, a.size, a._packed


def _asked(a, operation):
    """The view, by NumPy; or the class of the error."""
    try:
        return _geometry(views.apply(a, lambda v: operation(v)))
    except (LaunchError, IndexError, TypeError, ValueError, KeyError) as e:
        return type(e)


def _known(a, operation):
    try:
        return _geometry(views.apply(a, operation))
    except (LaunchError, IndexError, TypeError, ValueError, KeyError) as e:
        return type(e)


def _arrays():
    """Contiguous, strided, backward, broadcast and empty ones."""
    for dtype in DTYPES:
        for shape in [(1,), (5,), (1, 4), (3, 4), (2, 1, 3), (2, 3, 2, 2), (0,), (3, 0), (0, 2, 1)]:
            a = wp.zeros(shape, dtype=dtype)
            yield a
            yield a.transpose()
            yield a[::-1]
            yield a[1::2]
            yield a[..., ::2]
            if a.size:
                flat = (0,) * a.ndim
                yield wp.array(ptr=a.ptr, dtype=dtype, shape=shape, strides=flat)


def _part(r, n):
    bounds = [None, 0, 1, -1, n, -n, n + 3, -n - 2, 1 << 70, np.int64(1)]
    kind = r.randrange(8)
    if kind < 3:
        return r.randint(-n - 1, n)
    if kind == 3:
        return r.choice([None, ...])
    return slice(r.choice(bounds), r.choice(bounds), r.choice([None, 1, -1, 2, -3, 1 << 40, 0]))


def test_slices_lie_where_numpys_do():
    r = random.Random(3)
    found = {}
    for a in _arrays():
        for _ in range(40):
            key = tuple(_part(r, r.choice(a.shape)) for _ in range(r.randint(1, a.ndim)))
            if sum(isinstance(p, int) for p in key) == a.ndim:
                key += (None,)  # as `kept` asks for one element
            expected = _asked(a, Sliced(key))
            assert _known(a, Sliced(key)) == expected, (a.shape, a.strides, key)
            found[isinstance(expected, tuple)] = found.get(isinstance(expected, tuple), 0) + 1
    assert min(found.values()) > 500


def test_other_shapes_lie_where_numpys_do():
    for a in _arrays():
        n = a.size
        half = n // 2
        for target in [(n,), (1, n), (n, 1, 1), (2, half), (n // 3, 3), (1, 2, half, 1), (0, n)]:
            if np.prod(target) == n:
                operation = Reshaped(target, views._reshaped)
                assert _known(a, operation) == _asked(a, operation), (a.shape, a.strides, target)


def test_transposed_views_lie_where_numpys_do():
    for a in _arrays():
        orders = [None, tuple(range(a.ndim)), (*range(1, a.ndim), 0)]
        for operation in [SAME, *map(Transposed, orders)]:
            assert _known(a, operation) == _asked(a, operation), (a.shape, a.strides)


def test_most_views_ask_nobody(monkeypatch):
    a = wp.zeros((4, 6), dtype=wp.vec3, requires_grad=True)
    monkeypatch.setattr(views, "_opaque", None)
    seen = [a[1], a[-1], a[1:3], a[:, 2], a[::2, ::-1], a[1:, 1:3], a.flatten(), a.reshape((6, 4)),
            a.reshape([3, 8]), a.reshape((-1, 2)), a.transpose(), a.transpose((0, 1)),
            a.view(wp.vec3)]  # fmt: skip
    for v in seen:
        assert isinstance(v._origin[1], Placed)
        assert v.requires_grad
        assert v.grad.storage is a.grad.storage
        assert v.grad.ptr - a.grad.ptr == v.ptr - a.ptr


def test_views_of_gradients_that_lie_otherwise():
    a = wp.zeros((4, 6), dtype=float, requires_grad=True)
    row, flat = a[2], a.flatten()
    whole = wp.zeros((6, 4), dtype=float)
    a.grad = whole.transpose()
    row.grad.fill_(1.0)
    assert whole.numpy()[:, 2].tolist() == [1.0] * 6
    assert whole.numpy().sum() == 6.0
    with pytest.raises(LaunchError, match="cannot be viewed as shape"):
        _ = flat.grad


@pytest.mark.parametrize("shape", [(3.0, 8), ("24",), (25,), (-2, 12), (), (2, 2, 2, 3, 1), None])
def test_shapes_that_are_refused(shape):
    with pytest.raises(LaunchError) as e:
        wp.zeros((4, 6)).reshape(shape)
    assert e.value.diagnostics[0].code == "E206"


def test_shapes_that_are_odd_and_fit():
    a = wp.zeros((4, 6))
    for shape in [(True, 24), (np.int64(4), 6), [24], 24, np.int32(24), (24, -1)]:
        found = a.reshape(shape)
        assert found.size == 24
        assert all(type(n) in (int, bool) for n in found.shape)
    assert wp.zeros((0, 3)).reshape(-1).shape == (0,)
    assert wp.zeros((0, 3)).flatten().shape == (0,)


def test_true_is_one():
    a = wp.array(np.arange(6).reshape(2, 3), dtype=int)
    assert a[True].ptr == a[1].ptr
    assert (a[True, True], a[True, False]) == (4, 3)


def test_views_of_arrays_of_a_subclass_are_of_it():
    class Mine(wp.array):
        pass

    a = Mine(np.zeros((2, 3), np.float32), dtype=float)
    assert [type(v) for v in (a[0], a[:1], a.flatten(), a.transpose())] == [Mine] * 4


@pytest.mark.host("memory of the host")
def test_views_keep_memory_and_flags():
    a = wp.zeros((2, 3), dtype=float, requires_grad=True, retain_grad=True)
    v = a[1]
    assert v.retain_grad
    a.requires_grad = False
    assert not v.requires_grad
    n = np.zeros((2, 3), np.float32)
    n.flags.writeable = False
    seen = wp.array(n, dtype=float, copy=False)[1]
    with pytest.raises(LaunchError, match="read-only"):
        seen.fill_(1.0)
    assert seen.storage is not None
