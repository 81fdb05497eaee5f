"""Values that fill arrays: as they nearly always are, against all ways that there are."""

import math

import numpy as np
import pytest

import engine as wp
from engine import LaunchError
from engine.runtime import creation, events
from engine.runtime.data import element_value
from tests.unit.runtime.launching import alone
from tests.unit.runtime.test_bare_copies import natively

SCALARS = [wp.float16, wp.float32, wp.float64, wp.bool, wp.int8, wp.int16, wp.int32, wp.int64,
           wp.uint8, wp.uint16, wp.uint32, wp.uint64]  # fmt: skip
BIG = [k + d for k in (2**24, 2**31, 2**53, 2**63, 10**30) for d in (-1, 0, 1)]
NUMBERS = [0, 1, -1, 3, 127, 128, *BIG, *(-n for n in BIG), True, False, 0.0, -0.0, 0.1, 1e-45,
           3e38, 3.4028235e38, 3.4028236e38, 1e300, math.inf, -math.inf, math.nan, "1", None, [],
           1j]  # fmt: skip


def outcome(make, *args):
    """The bytes of what comes, or the error."""
    try:
        found = make(*args)
    except LaunchError as e:
        return e.diagnostics[0].code, e.diagnostics[0].message
    return found.dtype, found.shape, found.tobytes()


def plainly(monkeypatch, value, kind):
    """The same as for values of which nothing is known."""
    with monkeypatch.context() as m:
        m.setattr("engine.runtime.data._is_plain", lambda *_: False)
        m.setattr("engine.runtime.data._are_plain", lambda *_: False)
        return outcome(element_value, value, kind)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", SCALARS)
def test_numbers(monkeypatch, dtype):
    for kind in (dtype.__ir_type__, wp.types.vector(2, dtype).__ir_type__):
        for value in NUMBERS:
            assert outcome(element_value, value, kind) == plainly(monkeypatch, value, kind), value


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "dtype", [wp.vec2, wp.vec2d, wp.vec3, wp.vec2i, wp.vec2h, wp.mat22, wp.quat]
)
def test_rows(monkeypatch, dtype):
    kind = dtype.__ir_type__
    odd = [1e300, math.inf, math.nan, -0.0, 3.4028236e38, 1e-46, 5]
    rows = [(1.0, 2.0), [1.0, 2.0], (0.1, 0.2, 0.3), (1.0, 2.0, 3.0, 4.0), (1, 2), (), ("a", 1.0),
            [[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0, 3.0]], np.arange(4.0), 7.5, 7]  # fmt: skip
    rows += [(x, 1.0) for x in odd] + [(1.0, x) for x in odd] + [(math.nan, math.inf)]
    for value in rows:
        assert outcome(element_value, value, kind) == plainly(monkeypatch, value, kind), value


def test_values_of_the_type_itself():
    for v in [wp.vec3(1.0, math.nan, -0.0), wp.vec2h(1.0, 2.0), wp.mat22(1.0, 2.0, 3.0, 4.0),
              wp.quat(1.0, 2.0, 3.0, 4.0), wp.vec3i(1, 2, 3)]:  # fmt: skip
        a = wp.full(3, v)
        b = wp.zeros(3, dtype=type(v))
        b.fill_(v)
        for got in (a, b, wp.full_like(b, v)):
            assert got.numpy().tobytes() == 3 * np.ascontiguousarray(v).tobytes()
        v[0] = v[1]
        assert a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("other", [wp.vec3d(1.0, 2.0, 3.0), wp.vec2(1.0, 2.0), wp.vec3i(1, 2, 3)])
def test_values_of_other_types(monkeypatch, other):
    for dtype in (wp.vec3, wp.vec2i, float):
        kind = wp.zeros(1, dtype=dtype)._ir.element
        assert outcome(element_value, other, kind) == plainly(monkeypatch, other, kind)


@pytest.mark.parametrize("dtype", [*SCALARS, wp.vec3, wp.mat22, wp.bfloat16])
def test_new_arrays_that_are_filled(dtype):
    shapes = [0, 1, 7, (3, 5), (2, 0), (1, 2, 3, 2), 20_000, (40, 400)]
    for shape in 2 * shapes:  # the second is like the first
        for got, value in [
            (wp.ones(shape, dtype=dtype), 1), (wp.full(shape, 1, dtype=dtype), 1),
            (wp.ones_like(wp.zeros(shape, dtype=dtype)), 1),
        ]:  # fmt: skip
            expected = wp.zeros(shape, dtype=dtype)
            expected.fill_(value)
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            assert got.storage.version == 0
            assert got.storage.told
            assert got.numpy().tobytes() == expected.numpy().tobytes()


def test_filled_arrays_with_gradients():
    for _ in range(2):
        a = wp.ones(4, dtype=float, requires_grad=True)
        b = wp.full((2, 2), 3.0, requires_grad=True)
        assert a.requires_grad
        assert b.grad.numpy().tolist() == [[0, 0], [0, 0]]
        with pytest.warns(UserWarning, match="has no effect"):
            assert not wp.full(4, 1, requires_grad=True).requires_grad


@pytest.mark.parametrize("shape", [-1, None, (2, -1), (1,) * 5, 1.5, (2.0, 3), "a", (), 1 << 40])
def test_shapes_that_are_refused(shape):
    for make in (wp.ones, lambda s: wp.full(s, 2.0)):
        with pytest.raises(LaunchError) as e:
            make(shape)
        assert e.value.diagnostics[0].code in ("E206", "E209")


def test_values_that_are_refused():
    for _ in range(2):
        with pytest.raises(LaunchError, match="cannot fill"):
            wp.full(3, 1.5, dtype=int)
        with pytest.raises(LaunchError, match="cannot fill"):
            wp.full(3, 1 << 31, dtype=int)
        with pytest.raises(LaunchError, match="element type"):
            wp.full(3, "a")


def test_shapes_that_are_odd_and_fit():
    wp.full(1, 2.0)
    for shape in (True, (True,), np.int32(1), [1], np.array([1])):
        a = wp.full(shape, 2.0)
        assert a.list() == [2.0]
        assert a.shape == (1,)
    assert wp.full(2, True).dtype is wp.bool
    assert wp.full(2, np.float64(2.0)).dtype is wp.float64


def test_whoever_listens_hears_of_new_arrays():
    class Ear(events.Observer):
        def __init__(self):
            self.seen = []

        def made(self, a):
            self.seen.append(a)

    wp.full(3, 2.0)
    ear = Ear()
    with events.observing(ear):
        made = [wp.full(3, 2.0), wp.ones(3)]
    assert all(x is y for x, y in zip(ear.seen, made, strict=True))


@pytest.mark.host("what is not made there")
def test_small_arrays_are_like_earlier_ones(monkeypatch):
    natively(monkeypatch)
    with alone():
        wp.zeros(5), wp.zeros((2, 3), dtype=wp.float64)
        monkeypatch.setattr(creation, "_make", None)
        assert wp.full(5, 2.0).list() == [2.0] * 5
        assert wp.ones(5).list() == [1.0] * 5
        assert wp.full((2, 3), 0.1, dtype=wp.float64).list() == [0.1] * 6


def test_what_graphs_fill_with_is_what_it_was_then():
    v, a = wp.vec2(1.0, 2.0), wp.zeros(2, dtype=wp.vec2)
    with wp.ScopedCapture() as capture:
        a.fill_(v)
        b = wp.full(2, v)
    v[0] = 7.0
    wp.capture_launch(capture.graph)
    assert a.numpy().tolist() == b.numpy().tolist() == [[1, 2], [1, 2]]
