"""Slices and other views."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine as wp
from engine import LaunchError

index = st.one_of(
    st.integers(-3, 2),
    st.slices(3),
)


@given(st.lists(index, min_size=1, max_size=3))
def test_indexing_is_numpys(parts):
    n = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    a = wp.array(n, requires_grad=True)
    key = tuple(parts)
    expected = n[key]
    got = a[key]
    if isinstance(expected, np.ndarray):
        assert got.shape == expected.shape
        assert np.array_equal(got.numpy(), expected)
        got.grad.fill_(1.0)
        whole = np.zeros_like(n)
        whole[key] = 1
        assert np.array_equal(a.grad.numpy(), whole)
    else:
        assert got == expected


def test_full_index_gives_values():
    assert wp.array([1.0, 2.0], dtype=float)[1] == 2.0
    assert wp.array([[1, 2, 3]], dtype=wp.vec3)[0] == wp.vec3(1, 2, 3)
    assert list(wp.array([1, 2, 3])) == [1, 2, 3]
    assert [row.list() for row in wp.array([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("bad", [2, -3, (0, 3), (0, 0, 0)])
def test_out_of_range(bad):
    with pytest.raises(IndexError):
        wp.zeros((2, 3))[bad]


@pytest.mark.parametrize("bad", [None, [0, 1], "a", 1.0, np.array([True, False])])
def test_other_indices(bad):
    with pytest.raises(LaunchError):
        wp.zeros((2, 3))[bad]


def test_assignment():
    a = wp.zeros((3, 2))
    a[0, 1] = 5
    a[1] = [1, 2]
    a[2:] = wp.full((1, 2), 7.0)
    assert a.numpy().tolist() == [[0, 5], [1, 2], [7, 7]]
    v = wp.zeros(2, dtype=wp.vec3)
    v[1] = (1, 2, 3)
    assert v.list() == [wp.vec3(), wp.vec3(1, 2, 3)]


def test_reshape():
    a = wp.array(np.arange(6))
    assert a.reshape((2, -1)).shape == (2, 3)
    assert a.reshape((2, 3)).ptr == a.ptr
    assert a.reshape((2, 3)).flatten().shape == (6,)
    for bad in ((4, 2), (-1, -1), (4, -1)):
        with pytest.raises(LaunchError):
            a.reshape(bad)
    with pytest.raises(LaunchError, match="contiguous"):
        a.reshape((2, 3)).transpose().flatten()
    assert wp.zeros((0, 3)).reshape(0).shape == (0,)


def test_transpose():
    a = wp.array(np.arange(24).reshape(2, 3, 4))
    assert np.array_equal(a.transpose().numpy(), a.numpy().T)
    assert np.array_equal(a.transpose((1, 0, 2)).numpy(), a.numpy().transpose(1, 0, 2))
    with pytest.raises(LaunchError):
        a.transpose((0, 0, 1))


def test_view_as_another_type():
    a = wp.array([1.0], dtype=float)
    assert a.view(wp.int32).list() == [0x3F800000]
    with pytest.raises(LaunchError):
        a.view(wp.float64)


def test_contiguous():
    a = wp.array(np.arange(6).reshape(2, 3))
    assert a.contiguous() is a
    c = a.transpose().contiguous()
    assert c.is_contiguous
    assert np.array_equal(c.numpy(), a.numpy().T)
    assert a.to(a.device) is a


def test_vectors_as_scalars_and_back():
    v = wp.array(np.arange(24).reshape(2, 3, 4), dtype=wp.vec4, requires_grad=True)
    s = v.view(float)
    assert (s.shape, s.strides) == ((2, 3, 4), (48, 16, 4))
    assert np.array_equal(s.numpy(), v.numpy())
    columns = v[:, 1].view(float)  # with steps between them
    assert np.array_equal(columns.numpy(), v.numpy()[:, 1])
    again = s[:, ::2].view(wp.vec4)
    assert again.shape == (2, 2)
    assert np.array_equal(again.numpy(), v.numpy()[:, ::2])
    s.grad.fill_(1.0)
    again.grad.fill_(2.0)
    expected = np.ones((2, 3, 4))
    expected[:, ::2] = 2.0
    assert np.array_equal(v.grad.numpy(), expected)
    m = wp.array(np.arange(8).reshape(2, 2, 2), dtype=float).view(wp.mat22)
    assert m.shape == (2,)
    assert m[1] == wp.mat22(4, 5, 6, 7)
    assert m.view(wp.vec4)[1] == wp.vec4(4, 5, 6, 7)
    for wrong in (
        lambda: v.view(wp.float64),
        lambda: s.view(wp.vec3),
        lambda: s[:, :, ::2].view(wp.vec2),
        lambda: wp.zeros(4).view(wp.vec4),
        lambda: v.view(wp.vec3),
    ):
        with pytest.raises(LaunchError, match="E206"):
            wrong()
