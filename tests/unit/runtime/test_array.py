"""Arrays: data, shapes, dtypes, host access, gradients."""

import copy
import gc
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine as wp
from engine import LaunchError
from engine.lang import types as t
from engine.runtime.annotation import ArrayAnnotation


def code(error):
    return error.value.diagnostics[0].code


@pytest.mark.parametrize(
    ("data", "dtype", "shape", "found"),
    [
        ([1.0, 2.0], None, (2,), wp.float64),
        ([1, 2], None, (2,), wp.int64),
        ([True, False], None, (2,), wp.bool),
        ([], None, (0,), wp.float64),
        ([], float, (0,), wp.float32),
        ((1, 2, 3), float, (3,), wp.float32),
        (np.arange(3), None, (3,), wp.int64),
        (np.arange(3, dtype=np.uint8), None, (3,), wp.uint8),
        (np.array(3.0), None, (1,), wp.float64),
        ([[1, 2], [3, 4]], float, (2, 2), wp.float32),
        ([[1, 2, 3], [4, 5, 6]], wp.vec3, (2,), wp.vec3),
        ([1, 2, 3], wp.vec3, (1,), wp.vec3),
        ([1, 2, 3, 4, 5, 6], wp.vec3, (2,), wp.vec3),
        ([wp.vec3(1, 2, 3)] * 2, wp.vec3, (2,), wp.vec3),
        ([wp.vec3(1, 2, 3)] * 2, None, (2, 3), wp.float32),
        (np.zeros((5, 2, 3)), wp.vec3, (5, 2), wp.vec3),
        (np.zeros((2, 2, 2)), wp.mat22, (2,), wp.mat22),
        (np.zeros((2, 4)), wp.mat22, (2,), wp.mat22),
        (np.zeros((2, 2)), wp.mat22, (1,), wp.mat22),
        (np.arange(6, dtype=">f4"), None, (6,), wp.float32),
        (range(4), int, (4,), wp.int32),
    ],
)
def test_data(data, dtype, shape, found):
    if getattr(getattr(data, "dtype", None), "byteorder", "") == ">":
        a = wp.array(data, dtype=float)
    else:
        a = wp.array(data, dtype=dtype)
    assert a.shape == shape
    assert a.dtype is found
    assert len(a) == shape[0]
    assert a.ndim == len(shape)
    assert np.array_equal(a.numpy().ravel(), np.asarray(data).ravel())


def test_shape_argument():
    assert wp.array(np.arange(6), shape=(2, 3), dtype=float).shape == (2, 3)
    assert wp.array(np.zeros(6), shape=2, dtype=wp.vec3).shape == (2,)
    assert wp.array(shape=3, dtype=float).shape == (3,)
    assert wp.array2d(np.zeros((2, 2))).shape == (2, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: wp.array(3.0),
        lambda: wp.array([[1, 2], [3]]),
        lambda: wp.array(["a"]),
        lambda: wp.array(np.zeros(3, complex)),
        lambda: wp.array(np.zeros(3, np.longdouble)),
        lambda: wp.array([1, 2, 3, 4, 5], dtype=wp.vec3),
        lambda: wp.array(np.zeros((3, 2)), dtype=wp.mat33),
        lambda: wp.array(np.zeros((1,) * 5)),
        lambda: wp.array([1, 2, 3], shape=4),
        lambda: wp.array([1, 2, 3], shape=(2, 2), dtype=float),
        lambda: wp.array2d([1, 2, 3]),
        lambda: wp.array(shape=3),
        lambda: wp.array(),
        lambda: wp.array([1, 2], dtype=int, grad=wp.zeros(2, dtype=int)),
        lambda: wp.zeros(-1),
        lambda: wp.zeros((2, -1)),
        lambda: wp.zeros(2.5),
        lambda: wp.zeros(()),
        lambda: wp.zeros((1,) * 5),
        lambda: wp.zeros(None),
        lambda: wp.array(dtype=float, ndim=5),
    ],
)
def test_bad_data_is_an_error_with_a_place(make):
    with pytest.raises(LaunchError) as e:
        make()
    assert code(e) == "E206"
    assert e.value.diagnostics[0].span.file == __file__


def test_wrong_shape_says_expected_and_got():
    with pytest.raises(LaunchError, match="expected 4 elements of float32, got 3"):
        wp.array([1, 2, 3], shape=(2, 2), dtype=float)


@pytest.mark.parametrize("shape", [(1 << 30, 1 << 15), (1 << 30, 1 << 30, 1 << 30)])
def test_too_large_is_out_of_memory(shape):
    with pytest.raises(LaunchError) as e:
        wp.empty(shape, dtype=wp.mat44d)
    assert code(e) == "E209"


@pytest.mark.host("memory of the host")
def test_sizes_beyond_32_bits():
    large = np.broadcast_to(np.zeros(1, np.int8), (1 << 20, 1 << 13))
    a = wp.array(large, copy=False)
    assert a.size == 1 << 33
    assert a.strides == (0, 0)
    assert a[-1, -1] == 0


LONG = np.broadcast_to(np.zeros(1, np.int8), (1 << 31,))


@pytest.mark.parametrize(
    "make",
    [
        lambda: wp.zeros(1 << 31, dtype=wp.int8),
        lambda: wp.empty((2, 1 << 40), dtype=wp.int8),
        lambda: wp.array(LONG, copy=False),
        lambda: wp.array(LONG.reshape(1, -1), copy=False),
        pytest.param(
            lambda: wp.array(LONG.reshape(1 << 16, -1), copy=False).reshape(-1),
            marks=pytest.mark.host("memory of the host"),
        ),
        pytest.param(
            lambda: wp.array(LONG.reshape(1 << 16, -1), copy=False).flatten(),
            marks=pytest.mark.host("memory of the host"),
        ),
        lambda: wp.array(ptr=8, shape=1 << 31, dtype=wp.int8),
    ],
)
def test_a_dimension_is_no_longer_than_kernels_can_count(make):
    """Kernels see extents as int32; it would be negative there."""
    with pytest.raises(LaunchError, match="2147483647") as e:
        make()
    assert code(e) == "E206"


# ---- annotations


def test_annotations():
    assert wp.array(dtype=float).__ir_type__ == t.ArrayType(t.FLOAT32, 1)
    assert wp.array(dtype=wp.vec3, ndim=2).__ir_type__.ndim == 2
    assert wp.array[float].__ir_type__ == t.ArrayType(t.FLOAT32, 1)
    assert wp.array2d(dtype=int).__ir_type__ == t.ArrayType(t.INT32, 2)
    assert wp.array3d[float].__ir_type__.ndim == 3
    assert wp.array4d(dtype=float).__ir_type__.ndim == 4
    assert repr(wp.array2d(dtype=float)) == "array(dtype=float32, ndim=2)"
    assert wp.array(dtype=float) == wp.array[float]
    assert isinstance(wp.array(dtype=float), ArrayAnnotation)
    assert not isinstance(wp.array(dtype=float), wp.array)


def test_annotations_stand_beside_others_in_either_order():
    for made in wp.array[float], wp.indexedarray[wp.vec3]:
        assert (made | None) is made and (None | made) is made and (float | made) is made


def test_annotations_take_attributes():
    a = wp.array(dtype=float, ndim=2)
    a.shape = ("rows", 3)
    assert a.shape == ("rows", 3) and not hasattr(wp.array(dtype=float, ndim=2), "shape")
    assert a == wp.array2d(dtype=float)
    b = wp.indexedarray[float]
    b.unit = "m"
    assert b.unit == "m" and b == wp.indexedarray(dtype=float) and b.ndim == 1
    assert wp.indexedarray[wp.vec3, 2] == wp.indexedarray2d(dtype=wp.vec3)


def test_annotation_of_a_bad_type():
    with pytest.raises(LaunchError):
        wp.array(dtype=str)


# ---- NumPy


@pytest.mark.host("memory of the host")
def test_numpy_is_a_writable_view():
    a = wp.zeros((2, 3), dtype=wp.vec2)
    view = a.numpy()
    assert view.shape == (2, 3, 2)
    view[1, 2, 0] = 5.0
    assert a[1, 2] == wp.vec2(5, 0)


def test_numpy_outlives_its_array():
    view = wp.full(1000, 3.0).numpy()
    gc.collect()
    assert (view == 3).all()


@pytest.mark.host("memory of the host")
def test_copy_false_shares_memory():
    n = np.arange(3.0)
    a = wp.array(n, copy=False)
    n[0] = 9
    assert a[0] == 9
    assert wp.array(n)[0] == 9
    b = wp.array(n)
    n[0] = 1
    assert b[0] == 9


@pytest.mark.host("memory of the host")
def test_copy_false_keeps_the_memory_alive():
    a = wp.array(np.full(100000, 2.0), copy=False)
    gc.collect()
    assert (a.numpy() == 2).all()


@pytest.mark.host("memory of the host")
def test_copy_false_with_strides_and_components():
    n = np.arange(12.0).reshape(3, 4)
    a = wp.array(n[:, ::2], copy=False)
    assert a.strides == (32, 16)
    assert not a.is_contiguous
    v = wp.array(n[:, :2], copy=False, dtype=wp.vec2d)
    assert v.strides == (32,)
    assert v[2] == wp.vec2d(8, 9)
    with pytest.warns(UserWarning, match="made a copy"):  # components apart
        spread = wp.array(n[:, ::2], copy=False, dtype=wp.vec2d)
    assert spread.is_contiguous
    assert spread[1] == wp.vec2d(4, 6)


@pytest.mark.host("memory of the host")
def test_copy_false_converts_by_copying():
    n = np.arange(3)
    with pytest.warns(UserWarning, match="made a copy: the memory of a ndarray is not that of"):
        a = wp.array(n, dtype=float, copy=False)
    n[0] = 9
    assert a[0] == 0


@pytest.mark.host("memory of the host")
def test_array_interface():
    a = wp.array([[1.0, 2.0, 3.0]], dtype=wp.vec3)
    assert np.asarray(a).shape == (1, 3)
    assert np.asarray(a).ctypes.data == a.ptr


def test_from_another_array():
    a = wp.array([[1.0, 2.0, 3.0]], dtype=wp.vec3, requires_grad=True)
    b = wp.array(a)
    assert b.dtype is wp.vec3
    assert not b.requires_grad
    b.zero_()
    assert a[0] == wp.vec3(1, 2, 3)
    assert wp.array(a, copy=False).ptr == a.ptr
    assert wp.array(a, dtype=wp.vec3d)[0] == wp.vec3d(1, 2, 3)


@pytest.mark.host("memory of the host")
def test_pointer():
    n = np.arange(4, dtype=np.float32)
    a = wp.array(ptr=n.ctypes.data, shape=4, dtype=float)
    assert a.list() == [0, 1, 2, 3]
    b = wp.array(ptr=n.ctypes.data, shape=2, strides=(8,), dtype=float)
    assert b.list() == [0, 2]


@wp.struct
class Pixel:
    half: wp.float16
    colour: wp.vec3


@pytest.mark.host("memory of the host")
def test_c_pointers():
    p = Pixel(1.5, wp.vec3(1.0, 2.0, 3.0))
    pixels = wp.array([p, p], dtype=Pixel).cptr()
    assert pixels[1].colour == p.colour
    assert pixels[1].half == p.__ctype__().half == 0x3E00  # the bits of 1.5
    numbers = wp.array([1, 2, 3], dtype=int)
    pointer = numbers.cptr()
    pointer[1] = 9
    assert numbers.list() == [1, 9, 3] and wp.zeros(0).cptr() is None
    assert list(wp.array([[1.0, 2.0]], dtype=wp.vec2).cptr()[0]) == [1.0, 2.0]
    made = wp.array([7.0, 8.0], dtype=wp.float64).cptr()  # its memory lives as long
    assert (made[0], made[1]) == (7.0, 8.0)
    with pytest.raises(LaunchError, match=r"E206.*contiguous"):
        numbers[::2].cptr()


def test_text():
    a = wp.array([1.0, 2.0], dtype=float)
    assert str(a) == "[1. 2.]"
    assert repr(a) == "array(shape=(2,), dtype=float32)"


def test_list():
    assert wp.array([[1, 2], [3, 4]], dtype=int).list() == [1, 2, 3, 4]
    assert wp.array([[1, 2]], dtype=wp.vec2).list() == [wp.vec2(1, 2)]
    assert wp.zeros((2, 2))[:, 0].list() == [0, 0]


def test_identity_equality():
    a, b = wp.zeros(1), wp.zeros(1)
    assert a != b
    assert {a: 1, b: 2}[a] == 1
    assert bool(a)


# ---- gradients


def test_gradient_is_made_once_and_zero():
    a = wp.zeros((2, 3), dtype=wp.vec3, requires_grad=True)
    assert a.existing_grad is None
    assert a.grad is a.grad
    assert a.grad.shape == (2, 3)
    assert a.grad.dtype is wp.vec3
    assert not a.grad.numpy().any()
    assert not a.grad.requires_grad
    assert wp.zeros(1).grad is None


def test_setting_requires_grad():
    a = wp.zeros(2)
    a.requires_grad = True
    assert a.grad is not None
    a.requires_grad = False
    assert a.grad is None


def test_requires_grad_of_integers_is_warned_of_and_means_nothing():
    with pytest.warns(UserWarning, match="elements of type int32 have no gradient") as seen:
        a = wp.array([1, 2], dtype=int, requires_grad=True)
    assert seen[0].filename == __file__
    assert not a.requires_grad and a.grad is None
    with pytest.raises(LaunchError, match="have no gradient"):
        a.grad = wp.zeros(2, dtype=int)


def test_setting_grad():
    a = wp.zeros(2)
    g = wp.ones(2)
    a.grad = g
    assert a.requires_grad
    assert a.grad is g
    a.grad = None
    assert not a.requires_grad
    a.grad = np.ones(2, np.float32)
    assert a.grad.list() == [1, 1]
    for bad in (wp.ones(3), wp.ones(2, dtype=wp.float64)):
        with pytest.raises(LaunchError):
            a.grad = bad
    assert wp.array([1.0, 2.0], dtype=float, grad=g).grad is g


def test_gradient_of_a_view_is_a_view_of_the_gradient():
    a = wp.zeros((3, 2), requires_grad=True)
    row, column = a[1], a[:, 1]
    row.grad.fill_(2.0)
    assert a.grad.list() == [0, 0, 2, 2, 0, 0]
    assert column.grad.list() == [0, 2, 0]
    assert a.reshape(6)[2:4].grad.list() == [2, 2]
    assert a.transpose()[1].grad.list() == [0, 2, 0]


def test_gradient_of_a_view_follows_the_parent():
    a = wp.zeros(4, requires_grad=True)
    v = a[1:3]
    a.grad = wp.full(4, 7.0)
    assert v.grad.list() == [7, 7]
    a.requires_grad = False
    assert v.grad is None
    assert not v.requires_grad
    v.requires_grad = True
    assert v.grad.list() == [0, 0]


@pytest.mark.host("memory of the host")
def test_gradient_of_strided_memory():
    n = np.zeros((3, 4), np.float32)
    a = wp.array(n[:, ::2], copy=False, requires_grad=True)
    a[1].grad.fill_(1.0)
    assert a.grad.numpy().tolist() == [[0, 0], [1, 1], [0, 0]]


def test_gradient_of_a_retyped_view():
    a = wp.zeros(2, dtype=wp.mat22, requires_grad=True)
    v = a.view(wp.vec4)
    v.grad.fill_(3.0)
    assert (a.grad.numpy() == 3).all()
    assert a.view(wp.vec4i).grad is None


# ---- copies


def test_deepcopy_and_pickle():
    a = wp.array([[1, 2, 3]], dtype=wp.vec3, requires_grad=True, retain_grad=True)
    a.grad.fill_(5.0)
    for b in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert b.dtype is wp.vec3
        assert b.list() == a.list()
        assert b.grad.list() == a.grad.list()
        assert b.retain_grad
        assert b.ptr != a.ptr
    c = copy.copy(a)
    assert c.ptr == a.ptr
    assert c.grad.ptr == a.grad.ptr


@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    kind=st.sampled_from([wp.float32, wp.int8, wp.bool, wp.vec3d, wp.mat22]),
)
def test_zeros_of_any_shape(shape, kind):
    a = wp.zeros(tuple(shape), dtype=kind)
    expected = np.zeros((*shape, *t.shape_of(kind.__ir_type__)), wp.dtype_to_numpy(kind))
    got = a.numpy()
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert a.is_contiguous
    assert a.size == int(np.prod(shape))
