"""Indexed arrays on the host and in launches."""

import numpy as np
import pytest

import engine as wp
from engine import LaunchError


def data():
    return wp.array(np.arange(12).reshape(3, 4), dtype=float, requires_grad=True)


def test_what_it_shows():
    x = data()
    rows = wp.array([2, 0], dtype=int)
    a = wp.indexedarray(x, [rows, None])
    assert a.shape == (2, 4) and a.ndim == 2 and a.size == 8 and len(a) == 2
    assert a.dtype is wp.float32 and a.data is x and a.indices[0] is rows and a.indices[1] is None
    np.testing.assert_array_equal(a.numpy(), x.numpy()[[2, 0]])
    np.testing.assert_array_equal(x[rows].numpy(), x.numpy()[[2, 0]])
    np.testing.assert_array_equal(wp.indexedarray(x, [None, [1]]).numpy(), x.numpy()[:, [1]])
    both = x[rows, wp.array([3, 1], dtype=int)]
    np.testing.assert_array_equal(both.numpy(), x.numpy()[np.ix_([2, 0], [3, 1])])
    assert both.contiguous().shape == (2, 2) and wp.clone(both).shape == (2, 2)
    assert both.list() == [11.0, 9.0, 3.0, 1.0]
    assert wp.indexedarray2d(x, [None, rows]).shape == (3, 2)
    assert wp.indexedarray(x).shape == (3, 4)
    assert repr(both) == "indexedarray(shape=(2, 2), dtype=float32)"


def test_writes_from_the_host():
    x = data()
    a = wp.indexedarray(x, [[1], None])
    a.fill_(5.0)
    a.assign(np.full((1, 4), 6.0))
    assert x.numpy()[1].tolist() == [6.0] * 4 and x.numpy()[0].tolist() == [0, 1, 2, 3]
    a.zero_()
    assert x.numpy()[1].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda x: wp.indexedarray(x, [[7], None]), "outside"),
        (lambda x: wp.indexedarray(x, [[-1], None]), "outside"),
        (lambda x: wp.indexedarray(x, [None, None, None]), "3 arrays of indices"),
        (lambda x: wp.indexedarray(x, [[0.5], None]), "integers"),
        (lambda x: wp.indexedarray(x, [wp.array([1.0], dtype=float)]), "array(dtype=int32"),
        (lambda x: wp.indexedarray([1.0], [None]), "needs an array"),
        (lambda x: wp.indexedarray(x, [None], dtype=int), "dtype"),
        (lambda x: wp.indexedarray3d(x), "3 dimensions"),
        (lambda x: x[wp.array([1], dtype=int), 4], "outside an array of shape (3, 4)"),
        (lambda x: x[wp.array([1], dtype=int), ..., ...], "only once"),
        (lambda x: x[wp.array([1], dtype=int), 0, 0], "too many indices"),
        (lambda x: x[wp.array([3], dtype=int), 1:], "outside"),
    ],
)
def test_what_does_not_fit(make, word):
    with pytest.raises(LaunchError) as caught:
        make(data())
    assert caught.value.diagnostics[0].code == "E206" and word in str(caught.value)


@wp.kernel
def squares(a: wp.indexedarray2d(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a[i, 0] * a[i, -1] + float(a.shape[0])


def test_gradients_flow_to_the_underlying_array():
    x = data()
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, dim=2, inputs=[x[wp.array([2, 0], dtype=int)], out])
    assert out.list() == [8.0 * 11.0 + 2.0, 2.0]
    tape.backward(grads={out: np.ones(2, np.float32)})
    assert x.grad.numpy().tolist() == [[3, 0, 0, 0], [0, 0, 0, 0], [11, 0, 0, 8]]


def test_indices_beside_slices_and_numbers():
    values = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    x = wp.array(values, requires_grad=True)
    i, j = wp.array([4, 0], dtype=int), wp.array([3, 0, 1], dtype=int)
    v = values
    for got, expected in [
        (x[i, 1:, 2], v[[4, 0], 1:, 2]), (x[1, ..., j], v[1][:, [3, 0, 1]]),
        (x[..., j], v[..., [3, 0, 1]]), (x[i, ::-1], v[[4, 0], ::-1]),
        (x[1:4, :, j], v[1:4][:, :, [3, 0, 1]]), (x[i, 2, j], v[[4, 0], 2][:, [3, 0, 1]]),
    ]:  # fmt: skip
        assert type(got) is wp.indexedarray
        np.testing.assert_array_equal(got.numpy(), expected)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    part = x[i, 2, 1:]
    with wp.Tape() as tape:
        wp.launch(squares, dim=2, inputs=[part, out])
    tape.backward(grads={out: wp.array([1.0, 10.0], dtype=float)})
    expected = np.zeros_like(values)
    expected[4, 2, [1, 3]], expected[0, 2, [1, 3]] = v[4, 2, [3, 1]], 10 * v[0, 2, [3, 1]]
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_arrays_like_them():
    x = wp.zeros((3, 2), dtype=wp.vec3h, requires_grad=True)
    part = x[wp.array([2], dtype=int)]
    for made in (wp.zeros_like(part), wp.empty_like(part), wp.full_like(part, wp.vec3h(1.0))):
        assert (made.shape, made.dtype, made.requires_grad) == ((1, 2), wp.vec3h, True)
    assert wp.zeros_like(part, requires_grad=False).requires_grad is False
    nothing = x[wp.empty(0, dtype=int)]
    assert wp.ones_like(nothing).shape == (0, 2)


def test_launches_refuse_other_arrays():
    out = wp.zeros(2, dtype=float)
    for wrong, code in ((data(), "E202"), (wp.indexedarray(wp.zeros(3, dtype=float)), "E203"),
                        (wp.indexedarray(wp.zeros((3, 3), dtype=int)), "E202"),
                        (3.0, "E202")):  # fmt: skip
        with pytest.raises(LaunchError) as caught:
            wp.launch(squares, dim=1, inputs=[wrong, out])
        assert caught.value.diagnostics[0].code == code
        assert "'a'" in str(caught.value) and "indexedarray(dtype=float32" in str(caught.value)


def rows_of(x, *rows):
    return x[wp.array(rows, dtype=int)]


def test_copies_from_and_to_indexed_arrays():
    x = data()
    before = x.numpy().copy()
    y = wp.zeros((2, 4), dtype=float)
    wp.copy(y, rows_of(x, 2, 0))
    assert np.array_equal(y.numpy(), before[[2, 0]])
    wp.copy(rows_of(x, 1, 2), y)
    assert np.array_equal(x.numpy(), before[[0, 2, 0]])
    wp.copy(rows_of(x, 0, 1), rows_of(x, 1, 2))
    assert np.array_equal(x.numpy(), before[[2, 0, 0]])
    assert np.array_equal(wp.clone(rows_of(x, 1)).numpy(), before[[0]])
    wide = wp.zeros((1, 4), dtype=wp.float64)
    wp.copy(wide, rows_of(x, 0))
    wp.copy(rows_of(x, 2), wide)
    assert np.array_equal(x.numpy(), before[[2, 0, 2]])
    for wrong in (
        lambda: wp.copy(y, rows_of(x, 0)),
        lambda: wp.copy(y, rows_of(x, 0, 1), count=1),
        lambda: wp.copy(rows_of(x, 0, 1), wp.zeros((2, 4), dtype=wp.vec3)),
    ):
        with pytest.raises(LaunchError, match=r"E20[67]"):
            wrong()


@pytest.mark.host("the order of threads")
def test_gradients_of_copies():
    x = data()
    z = wp.zeros((3, 4), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        part = rows_of(x, 2, 0).contiguous()
        wp.copy(rows_of(z, 1, 1), part)  # the last one stays
        rows_of(z, 0).fill_(7.0)
        y = wp.clone(rows_of(z, 1, 2))
    assert part.requires_grad
    assert np.array_equal(y.numpy(), [x.numpy()[0], np.zeros(4)])
    tape.backward(grads={y: np.full((2, 4), 3.0, np.float32)})
    assert np.array_equal(x.grad.numpy(), [[3.0] * 4, [0.0] * 4, [0.0] * 4])


def test_copies_in_captured_graphs():
    x, y = data(), wp.zeros((2, 4), dtype=float)
    with wp.ScopedCapture() as capture:
        wp.copy(y, rows_of(x, 1, 0))
        wp.copy(rows_of(x, 2), y[:1])
    assert not y.numpy().any()
    x.fill_(5.0)
    wp.capture_launch(capture.graph)
    assert y.list() == [5.0] * 8
