"""Structs in arrays that hold indexed arrays."""

import copy
import gc

import numpy as np
import pytest

import engine as wp
from engine import LaunchError
from engine.autograd import gradcheck_tape, jvp


@wp.struct
class Part:
    a: wp.indexedarray(dtype=float)
    k: float


@wp.struct
class Whole:
    part: Part
    rows: wp.indexedarray(dtype=wp.vec2, ndim=2)


@wp.func
def total(a: wp.indexedarray(dtype=float)):
    out = float(0.0)
    for i in range(a.shape[0]):
        out += a[i] * a[i]
    return out


@wp.kernel
def measure(parts: wp.array(dtype=Part), y: wp.array(dtype=float)):
    j = wp.tid()
    y[j] = total(parts[j].a) * parts[j].k


@wp.kernel
def change(parts: wp.array(dtype=Part), by: float):
    j, i = wp.tid()
    p = parts[j]
    if i < p.a.shape[0]:
        p.a[i] = p.a[i] * p.a[i] * by
        wp.atomic_add(p.a, i, 1.0)


@wp.kernel
def within(wholes: wp.array(dtype=Whole), y: wp.array(dtype=float)):
    w = wholes[0]
    for i in range(w.rows.shape[0]):
        for j in range(w.rows.shape[1]):
            y[0] += wp.length_sq(w.rows[i, j]) * w.part.a[i]


@wp.kernel
def beside(parts: wp.array(dtype=Part), x: wp.array(dtype=float)):
    x[0] = parts[0].a[0]


VALUES = np.arange(1.0, 7.0, dtype=np.float32)


def source():
    return wp.array(VALUES, dtype=float, requires_grad=True)


def part(x, indices, k=1.0):
    p = Part()
    p.a, p.k = wp.indexedarray(x, [wp.array(indices, dtype=int)]), k
    return p


def test_values_and_gradients():
    x = source()
    parts = wp.array([part(x, [1, 3, 5], 2.0), part(x, [0, 3], 3.0)], dtype=Part)
    gc.collect()
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(measure, 2, [parts, y])
    v = VALUES
    np.testing.assert_allclose(
        y.numpy(), [2 * (v[[1, 3, 5]] ** 2).sum(), 3 * (v[[0, 3]] ** 2).sum()]
    )
    tape.backward(grads={y: wp.array([1.0, 10.0], dtype=float)})
    slope = np.zeros(6)
    slope[[1, 3, 5]] += 4 * v[[1, 3, 5]]
    slope[[0, 3]] += 60 * v[[0, 3]]
    np.testing.assert_allclose(x.grad.numpy(), slope)
    assert gradcheck_tape(tape, show_summary=False)
    direction = np.linspace(-1.0, 1.0, 6, dtype=np.float32)
    tangent = jvp(tape, tangents={x: direction})[y]
    only = np.zeros((2, 6))
    only[0, [1, 3, 5]], only[1, [0, 3]] = 4 * v[[1, 3, 5]], 6 * v[[0, 3]]
    np.testing.assert_allclose(np.array(tangent), only @ direction, rtol=1e-5)


def test_what_a_kernel_changes():
    x = source()
    parts = wp.array([part(x, [4, 1])], dtype=Part)
    with wp.Tape() as tape:
        wp.launch(change, (1, 3), [parts, 10.0])
    expected = VALUES.copy()
    expected[[4, 1]] = 10.0 * VALUES[[4, 1]] ** 2 + 1.0
    np.testing.assert_allclose(x.numpy(), expected)
    np.testing.assert_allclose(parts[0].a.numpy(), expected[[4, 1]])
    tape.backward(grads={x: wp.ones(6, dtype=float)})
    slope = np.ones(6)
    slope[[4, 1]] = 20.0 * VALUES[[4, 1]]
    np.testing.assert_allclose(x.grad.numpy(), slope)


def test_nested_and_of_two_dimensions():
    x = source()
    grid = wp.array(np.arange(24.0).reshape(4, 3, 2), dtype=wp.vec2)
    w = Whole()
    w.part, w.rows = part(x, [2, 0]), grid[wp.array([3, 1], dtype=int), 1:]
    wholes = wp.array([w], dtype=Whole)
    for a in (wholes, wp.clone(wholes), copy.copy(wholes)):
        y = wp.zeros(1, dtype=float)
        wp.launch(within, 1, [a, y])
        seen = grid.numpy()[[3, 1], 1:]
        assert y.numpy()[0] == pytest.approx(((seen**2).sum((1, 2)) * VALUES[[2, 0]]).sum())
    assert wholes[0].rows is w.rows


def test_in_captured_graphs():
    x = source()
    parts = wp.array([part(x, [4, 1])], dtype=Part)
    y = wp.zeros(1, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(change, (1, 3), [parts, 1.0])
        wp.launch(measure, 1, [parts, y])
    for start in (VALUES, VALUES[::-1].copy()):
        x.assign(start)
        wp.capture_launch(capture.graph)
        expected = start.copy()
        expected[[4, 1]] = expected[[4, 1]] ** 2 + 1.0
        np.testing.assert_allclose(x.numpy(), expected)
        np.testing.assert_allclose(y.numpy()[0], (expected[[4, 1]] ** 2).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("launch", "word"),
    [(lambda x: wp.launch(change, (1, 3), [wp.array([part(x, [1, 1])], dtype=Part), 2.0]),
      "shows an element more than once"),
     (lambda x: wp.launch(change, (2, 3), [wp.array([part(x, [1, 2]), part(x, [2])], dtype=Part),
                                           2.0]), "with another such array"),
     (lambda x: wp.launch(beside, 1, [wp.array([part(x, [1])], dtype=Part), x]),
      "shares memory with argument 'x'")],
)  # fmt: skip
def test_what_copies_would_change_is_refused(launch, word):
    x = source()
    with pytest.raises(LaunchError) as caught:
        launch(x)
    assert caught.value.diagnostics[0].code == "E206" and word in str(caught.value)
    np.testing.assert_array_equal(x.numpy(), VALUES)


@wp.struct
class Both:
    p: wp.array(dtype=float)
    q: wp.array(dtype=float)


@wp.kernel
def one_then_other(s: wp.array(dtype=Both), out: wp.array(dtype=float)):
    s[0].q[0] = 7.0
    out[0] = s[0].p[0]


def test_fields_that_share_memory_are_refused_where_one_changes():
    x, y, z, out = (wp.zeros(2, dtype=float) for _ in range(4))
    with pytest.raises(LaunchError, match=r"E206.*shares memory"):
        wp.launch(one_then_other, 1, [wp.array([Both(x, x), Both(y, z)], dtype=Both), out])
    assert x.list() == [0, 0]
    wp.launch(one_then_other, 1, [wp.array([Both(x, z), Both(x, y)], dtype=Both), out])
    assert z.list() == [7, 0] and out.list() == [0, 0]
