"""References into arrays that a launch gives the same memory: refused; right where they differ."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.frontend import lower_kernel

Floats = wp.array(dtype=float)


@wp.struct
class Pair:
    first: float
    second: float


@wp.func
def mix(p: wp.ref[float], q: wp.ref[float]):
    p = p * q
    q = q + p * p


@wp.func
def add_first(p: wp.ref[float], a: Floats):
    p += a[0] * p


@wp.func
def mix_at(a: Floats, b: Floats, i: int):
    mix(a[i], b[i])


@wp.kernel
def direct(a: Floats, b: Floats, o: Floats):
    i = wp.tid()
    mix(a[i], b[i])
    o[i] = a[i] * 2.0 + b[i] * 3.0


@wp.kernel
def within(a: Floats, b: Floats, o: Floats):
    i = wp.tid()
    mix_at(a, b, i)
    o[i] = a[i] * 2.0 + b[i] * 3.0


@wp.kernel
def beside(a: Floats, b: Floats, o: Floats):
    i = wp.tid()
    add_first(a[i], b)
    o[i] = a[i] * 2.0 + b[i] * 3.0


@wp.kernel
def fields(s: wp.array(dtype=Pair), o: Floats):
    i = wp.tid()
    mix(s[i].first, s[i].second)
    o[i] = s[i].first * 2.0 + s[i].second * 3.0


@wp.kernel
def one_array(a: Floats):
    mix_at(a, a, wp.tid())


def mixed(v: np.ndarray) -> np.ndarray:
    p = v[:2] * v[2:]
    return 2.0 * p + 3.0 * (v[2:] + p * p)


def with_first(v: np.ndarray) -> np.ndarray:
    return 2.0 * (v[:2] + v[2] * v[:2]) + 3.0 * v[2:]


@pytest.mark.parametrize(
    ("kernel", "want"), [(direct, mixed), (within, mixed), (beside, with_first)]
)
def test_arrays_that_meet_are_refused_and_others_are_right(kernel, want) -> None:
    v = np.array([1.3, 0.7, 0.4, -1.1])
    whole = wp.array(v, dtype=float, requires_grad=True)
    o = wp.zeros(2, dtype=float, requires_grad=True)
    for a, b in ((whole[:2], whole[:2]), (whole[:2], whole[1:3])):
        for record_cmd in (False, True):
            with pytest.raises(wp.LaunchError, match="'a' and 'b' share memory") as e:
                wp.launch(kernel, 2, inputs=[a, b], outputs=[o], record_cmd=record_cmd)
            assert e.value.diagnostics[0].code == "E206"
            assert e.value.diagnostics[0].span.file == __file__
    np.testing.assert_array_equal(whole.numpy(), v.astype(np.float32))
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, 2, inputs=[whole[:2], whole[2:]], outputs=[o])
    np.testing.assert_allclose(o.numpy(), want(v), rtol=1e-6)
    weights = np.array([1.0, -0.5])
    tape.backward(grads={o: weights})
    steps = np.eye(4) * 1e-6
    expected = [(want(v + d) - want(v - d)) @ weights / 2e-6 for d in steps]
    np.testing.assert_allclose(whole.grad.numpy(), expected, rtol=1e-5)


def test_elements_that_take_turns_do_not_meet() -> None:
    v = np.array([1.3, 0.4, 0.7, -1.1], np.float32)
    whole = wp.array(v, dtype=float)
    o, p = wp.zeros(2, dtype=float), wp.zeros(2, dtype=float)
    wp.launch(direct, 2, inputs=[whole[::2], whole[1::2]], outputs=[o])
    s = wp.array(v.view(Pair.numpy_dtype()), dtype=Pair)
    wp.launch(fields, 2, inputs=[s], outputs=[p])
    np.testing.assert_allclose(o.numpy(), mixed(v[[0, 2, 1, 3]]), rtol=1e-6)
    np.testing.assert_array_equal(o.numpy(), p.numpy())


def test_one_array_for_both_is_refused_by_the_kernel() -> None:
    with pytest.raises(wp.KernelError, match="which are both `a` here") as e:
        lower_kernel(one_array.func)
    assert e.value.diagnostics[0].code == "E104"
    assert "mix_at(a, a, wp.tid())" in str(e.value)
