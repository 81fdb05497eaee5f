"""Accesses that a displaced float could send out of bounds."""

from __future__ import annotations

import numpy as np

import engine as wp
from engine import ad
from engine.autograd import check_tape
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


@wp.kernel
def by_component(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    v = x[i]
    k = int(v[0])
    u = wp.vec3(1.0, 2.0, 3.0)
    u[k] = v[k] * 2.0
    y[i] = u


@wp.kernel
def by_entry(x: wp.array(dtype=wp.mat22), y: wp.array(dtype=wp.mat22)):
    i = wp.tid()
    m = x[i]
    k = int(m[0, 0])
    m[k, 1] = m[1, k] + 10.0
    y[i] = m


@wp.kernel
def by_path(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    k = int(x[i][0])
    y[i][k] = x[i][k] * 2.0


@wp.kernel
def by_given(x: wp.array(dtype=wp.vec3), k: int, y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    v = x[i]
    v[k] = v[k] * 2.0
    y[i] = v


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


def test_components_outside_give_nan() -> None:
    x = np.array([[0.0, 5.0, 6.0], [2.0, 5.0, 6.0], [3.0, 5.0, 6.0], [-5.0, 5.0, 6.0]], np.float32)
    nothing = [np.nan] * 3
    y = ran(guarded(by_component), 4, x, np.zeros((4, 3), np.float32))[1]
    np.testing.assert_array_equal(y, [[0, 2, 3], [1, 2, 12], nothing, nothing])
    y = ran(guarded(by_path), 2, x, np.zeros((2, 3), np.float32))[1]
    np.testing.assert_array_equal(y, [[0, 0, 0], [0, 0, 12]])
    y = ran(guarded(by_path), 2, x[2:], np.ones((2, 3), np.float32))[1]
    np.testing.assert_array_equal(y, [nothing, [1, 1, 1]])  # as for any access outside


def test_entries_outside_give_nan() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 4.0]], [[2.0, 2.0], [3.0, 4.0]]], np.float32)
    y = ran(guarded(by_entry), 2, x, np.zeros((2, 2, 2), np.float32))[1]
    np.testing.assert_array_equal(y, [[[1, 2], [3, 14]], [[np.nan] * 2] * 2])


def test_components_that_no_float_decides_stay_as_they_are() -> None:
    assert guarded(by_given).body == by_given.ir.body


def test_derivatives_of_what_is_guarded_are_those_of_the_kernel() -> None:
    x = wp.array([[1.25, 5.0, 6.0], [2.5, 5.0, 6.0]], dtype=wp.vec3, requires_grad=True)
    for kernel in (by_component, by_path):
        y = wp.zeros(2, dtype=wp.vec3, requires_grad=True)
        assert wp.autograd.gradcheck(kernel, 2, [x], [y])


@wp.kernel
def ended_by_a_float(x: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    k = 0
    s = float(0.0)
    while k < 100000000:
        z[k] = 2.0
        s += x[i]
        if s >= 1.0:
            break
        k += 1


@wp.func
def tail(v: wp.vec3):
    return v[wp.tid()] + 0.0 * v[0]


@wp.kernel
def called(x: wp.array(dtype=float), v: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    r = x[i] * x[i]
    if x[i] < 1.0:
        r += tail(v[0])
    y[i] = r


@wp.kernel
def by_bytes(k: wp.array(dtype=wp.uint8), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 0.0:
        y[i] = x[k[i]] * 2.0


@wp.kernel
def binned(x: wp.array(dtype=float), bins: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    bins[i] = int((x[i] - 2.0) * 1.0e9)
    y[i] = x[i] * x[i]


@wp.kernel
def from_bins(bins: wp.array(dtype=int), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[bins[i]] = y[i] * 3.0


def floats(x):
    return wp.array(x, dtype=float, requires_grad=True)


def test_accesses_before_an_end_that_a_float_decides_are_guarded() -> None:
    y = ran(guarded(ended_by_a_float), 1, np.array([0.25], np.float32), np.zeros(2, np.float32))[1]
    np.testing.assert_array_equal(y, [np.nan, 2.0])  # further turns than there are elements
    x, z = floats([1.0]), floats([0.0, 0.0, 0.0])
    with wp.Tape() as tape:
        wp.launch(ended_by_a_float, 1, [x, z])
    assert check_tape(tape).passed  # and steps to below 1 do not damage memory


def test_accesses_of_a_function_that_a_float_calls_are_guarded() -> None:
    x, v = floats(np.linspace(1.0, 2.0, 2000)), wp.ones(1, dtype=wp.vec3, requires_grad=True)
    y = floats(np.zeros(2000))
    with wp.Tape() as tape:
        wp.launch(called, 2000, [x, v, y])
    assert {p.verdict for r in check_tape(tape).launches for p in r.pairs} <= {"pass", "kink"}


def test_narrow_indices_are_compared_with_long_arrays() -> None:
    k = wp.array(np.arange(256) % 251, dtype=wp.uint8)
    x = floats(np.linspace(0.5, 1.5, 300))
    _, _, y = ran(guarded(by_bytes), 256, k.numpy(), x.numpy(), np.zeros(256, np.float32))
    np.testing.assert_array_equal(y, 2.0 * x.numpy()[k.numpy()])


def test_indices_that_an_earlier_launch_made_of_floats_do_no_damage() -> None:
    x, y, z = floats([2.0]), floats([0.0]), floats([0.0] * 4)
    with wp.Tape() as tape:
        bins = wp.zeros(1, dtype=int)
        wp.launch(binned, 1, [x, bins, y])
        wp.launch(from_bins, 1, [bins, y, z])
    assert check_tape(tape).launches[0].pairs[0].verdict == "pass"
