"""Numbers on their way into an array: they arrive as they are, or are refused."""

import math

import numpy as np
import pytest

import engine as wp
from engine import LaunchError

INTEGERS = [wp.int8, wp.int16, wp.int32, wp.int64, wp.uint8, wp.uint16, wp.uint32, wp.uint64]


def written(make):
    def write(dtype, value):
        a = wp.zeros(2, dtype=dtype)
        make(a, value)
        return a

    return write


WAYS = {
    "array of a list": lambda t, v: wp.array([v, 0], dtype=t),
    "array of NumPy data": lambda t, v: wp.array(np.array([v, v]), dtype=t),
    "array without a copy": lambda t, v: wp.array(np.array([v, v]), dtype=t, copy=False),
    "from_numpy": lambda t, v: wp.from_numpy(np.array([v, v]), dtype=t),
    "full": lambda t, v: wp.full(2, v, dtype=t),
    "full_like": lambda t, v: wp.full_like(wp.zeros(2, dtype=t), v),
    "fill_": written(lambda a, v: a.fill_(v)),
    "an element": written(lambda a, v: a.__setitem__(0, v)),
    "a slice": written(lambda a, v: a.__setitem__(slice(0, 1), [v])),
    "assign": written(lambda a, v: a.assign([v, 0])),
    "assign of NumPy data": written(lambda a, v: a.assign(np.array([v, v]))),
    "an indexed array": written(
        lambda a, v: wp.indexedarray(a, [wp.array([0], dtype=int)]).fill_(v)
    ),
}


def values(dtype):
    """At the ends of a type's range, beyond them, and what is no integer at all."""
    info = np.iinfo(wp.dtype_to_numpy(dtype))
    ends = [int(info.min), int(info.max), int(info.min) - 1, int(info.max) + 1, 0, 1, -1]
    floats = [1e30, -1e30, math.nan, math.inf, -math.inf, float(info.max) * 4]
    return [v for v in ends if -(1 << 63) <= v < 1 << 64] + floats


@pytest.mark.filterwarnings("ignore:.*copy=False. made a copy:UserWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_integer_that_does_not_fit_is_refused(dtype, way):
    info = np.iinfo(wp.dtype_to_numpy(dtype))
    for value in values(dtype):
        fits = not isinstance(value, float) and info.min <= value <= info.max
        if fits:
            assert WAYS[way](dtype, value).numpy()[0] == value
            continue
        with pytest.raises(LaunchError) as e:
            WAYS[way](dtype, value)
        assert e.value.diagnostics[0].code in ("E202", "E206"), value


def component(dtype, value):
    v = wp.types.vector(2, dtype)()
    v[0] = value
    return v


VECTORS = {
    "made": lambda t, v: wp.types.vector(2, t)(v, 0),
    "filled": lambda t, v: wp.types.vector(2, t)(v),
    "a component": component,
    "in an array": lambda t, v: wp.full(1, [v, v], dtype=wp.types.vector(2, t)).list()[0],
}


@pytest.mark.parametrize("way", VECTORS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_so_is_a_component(dtype, way):
    info = np.iinfo(wp.dtype_to_numpy(dtype))
    for value in values(dtype):
        if isinstance(value, float) or not info.min <= value <= info.max:
            with pytest.raises(LaunchError):
                VECTORS[way](dtype, value)
        else:
            assert VECTORS[way](dtype, value)[0] == value


@pytest.mark.parametrize("dtype", INTEGERS)
def test_fractions_are_cut_off_and_ends_of_ranges_count_as_in(dtype):
    info = np.iinfo(wp.dtype_to_numpy(dtype))
    low = float(info.min)
    assert wp.array([1.75, low], dtype=dtype).list() == [1, info.min]
    below = np.nextafter(2.0 ** (info.bits - (info.min < 0)), 0.0)
    assert wp.array([below], dtype=dtype).list() == [int(below)]


@pytest.mark.parametrize("dtype", [wp.float16, wp.float32, wp.float64])
def test_floats_take_every_number(dtype):
    got = wp.array([math.nan, math.inf, -math.inf, 1e300, -0.0], dtype=dtype).numpy()
    assert np.isnan(got[0])
    assert np.isposinf(got[1])
    assert np.isneginf(got[2])
    assert np.signbit(got[4])
