"""Atomic updates, their gradients, and search in sorted arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.ir import interp

Vectors = wp.array(dtype=wp.vec2)


@wp.kernel
def bits(n: wp.array(dtype=wp.uint32), old: wp.array2d(dtype=wp.uint32)):
    i = wp.tid()
    old[i, 0] = wp.atomic_and(n, 0, ~(wp.uint32(1) << wp.uint32(i)))
    old[i, 1] = wp.atomic_or(n, 1, wp.uint32(2) << wp.uint32(i))
    old[i, 2] = wp.atomic_xor(n, 2, wp.uint32(5))
    old[i, 3] = wp.atomic_exch(n, 3, wp.uint32(i + 7))
    old[i, 4] = wp.atomic_cas(n, 4, wp.uint32(i), wp.uint32(2 * i + 1))
    n[5] &= wp.uint32(6)
    n[6] |= wp.uint32(i)
    n[7] ^= wp.uint32(i)


@wp.kernel
def of_vectors(n: wp.array(dtype=wp.vec2i), v: wp.array(dtype=wp.vec2), old: Vectors):
    i = wp.tid()
    wp.atomic_or(n, 0, wp.vec2i(i, 2 * i))
    wp.atomic_exch(v, 0, wp.vec2(float(i), 1.0))
    # Only components that agree are replaced.
    old[i] = wp.atomic_cas(v, 1, wp.vec2(0.0, float(i)), wp.vec2(5.0, float(i + 1)))


@wp.kernel
def exchanged(x: wp.array(dtype=float), last: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    before = wp.atomic_exch(last, 0, x[i] * x[i])
    y[i] = before * x[i]


@wp.kernel
def swapped(x: wp.array(dtype=float), place: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    # The first thread that finds 0 leaves its value.
    before = wp.atomic_cas(place, i // 2, 0.0, 3.0 * x[i])
    wp.atomic_cas(place, 2, 1.0, x[i])
    y[i] = before * x[i] + x[i]


@wp.kernel
def searched(a: wp.array(dtype=float), b: wp.array(dtype=wp.int64), v: wp.array(dtype=float),
             out: wp.array2d(dtype=int)):  # fmt: skip
    i = wp.tid()
    out[i, 0] = wp.lower_bound(a, v[i])
    out[i, 1] = wp.lower_bound(a, 2, 5, v[i])
    out[i, 2] = wp.lower_bound(b, wp.int64(v[i]))
    out[i, 3] = wp.lower_bound(b, 3)
    out[i, 4] = wp.lower_bound(a, 2, 2, v[i])


@pytest.mark.host("the order of threads")
def test_bits() -> None:
    start = np.uint32([255, 0, 3, 1, 0, 15, 0, 0])
    n, old = wp.array(start, dtype=wp.uint32), wp.zeros((4, 5), dtype=wp.uint32)
    wp.launch(bits, dim=4, inputs=[n, old])
    assert n.list() == [255 - 15, 2 + 4 + 8 + 16, 3, 10, 7, 6, 3, 0]
    np.testing.assert_array_equal(
        old.numpy().T,
        [[255, 254, 252, 248], [0, 2, 6, 14], [3, 6, 3, 6], [1, 7, 8, 9], [0, 1, 3, 3]],
    )
    again, before = start.copy(), np.zeros((4, 5), np.uint32)
    interp.run(bits.plan.variants.ir, [again, before], 4)
    np.testing.assert_array_equal(again, n.numpy())
    np.testing.assert_array_equal(before, old.numpy())


def test_vectors_count_by_component() -> None:
    n, v = wp.zeros(1, dtype=wp.vec2i), wp.zeros(2, dtype=wp.vec2)
    old = wp.zeros(3, dtype=wp.vec2)
    wp.launch(of_vectors, dim=3, inputs=[n, v, old])
    assert n.numpy().tolist() == [[3, 6]]
    assert v.numpy().tolist() == [[2, 1], [5, 3]]
    assert old.numpy().tolist() == [[0, 0], [5, 1], [5, 2]]


@pytest.mark.parametrize(
    ("kernel", "start"),
    [(exchanged, [0.5]), (swapped, [0.0, 0.25, 1.0])],
)
def test_gradients(kernel: Any, start: list[float]) -> None:
    """Through the value that is stored, and through the one that it replaces."""
    x = wp.array([1.5, -2.0, 0.5, 3.0], dtype=float, requires_grad=True)
    place = wp.array(start, dtype=float, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=4, inputs=[x, place], outputs=[y])
    wp.autograd.gradcheck_tape(tape, show_summary=False)
    g = np.float32([1.0, 2.0, -1.0, 0.5])
    tape.backward(grads={y: wp.array(g, dtype=float)})
    a = x.numpy()
    if kernel is exchanged:
        before = np.concatenate([start, a[:-1] ** 2])
        expected = g * before + np.append(g[1:] * a[1:], 0) * 2 * a
        assert place.grad.numpy()[0] == g[0] * a[0]
    else:
        before = np.float32([0, 3 * a[0], 0.25, 0.25])
        expected = g * (before + 1) + np.float32([3 * g[1] * a[1], 0, 0, 0])
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    v, w = np.float32([0.3, -1.0, 2.0, 0.7]), np.full(len(start), 0.5, np.float32)
    moved = wp.autograd.jvp(tape, tangents={x: v, place: w})
    both = np.dot(x.grad.numpy(), v) + np.dot(place.grad.numpy(), w)
    np.testing.assert_allclose(np.dot(g, np.asarray(moved[y])), both, rtol=1e-5)


def test_lower_bound() -> None:
    a = np.float32([1, 2, 2, 3, 5, 8])
    v = np.float32([-1, 1, 1.5, 2, 2.5, 5, 8, 9, np.inf])
    out = wp.zeros((len(v), 5), dtype=int)
    wp.launch(searched, dim=len(v), inputs=[wp.array(a), wp.array([1, 4, 9], dtype=wp.int64),
                                            wp.array(v), out])  # fmt: skip
    got = out.numpy()
    np.testing.assert_array_equal(got[:, 0], np.minimum(np.searchsorted(a, v), 5))
    inside = np.minimum(2 + np.searchsorted(a[2:5], v), 4)
    np.testing.assert_array_equal(got[:, 1], inside)
    assert np.all(got[:, 3] == 1) and np.all(got[:, 4] == 2)
    assert got[:, 2].tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]


def test_only_arrays_are_searched() -> None:
    with pytest.raises(wp.EngineError, match="lower_bound"):
        wp.lower_bound(1.0, 2.0)
