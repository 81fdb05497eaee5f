"""Functions that make arrays, devices, and the small public functions."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import LaunchError


def test_zeros_ones_empty():
    assert wp.zeros(3).list() == [0, 0, 0]
    assert wp.zeros(3).dtype is wp.float32
    assert (wp.ones(2, dtype=wp.mat22).numpy() == 1).all()
    assert wp.empty((2, 3), dtype=wp.vec3).shape == (2, 3)
    assert wp.zeros(shape=0).size == 0
    assert wp.zeros(n=4).shape == (4,)
    assert wp.zeros(3, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2, wp.int32),
        (2.0, wp.float32),
        (True, wp.bool),
        (wp.vec3(1, 2, 3), wp.vec3),
        (wp.float64(2.0), wp.float64),
        (np.int8(3), wp.int8),
        (wp.mat22d(1.0), wp.mat22d),
    ],
)
def test_full_takes_the_type_of_its_value(value, dtype):
    a = wp.full(3, value)
    assert a.dtype is dtype
    assert np.array_equal(a.numpy()[1], np.asarray(value))


def test_full_with_dtype():
    assert wp.full(2, [1, 2, 3], dtype=wp.vec3).list() == [wp.vec3(1, 2, 3)] * 2
    assert wp.full(2, 1, dtype=float, requires_grad=True).requires_grad
    with pytest.raises(LaunchError):
        wp.full(2, 1.5, dtype=int)
    with pytest.raises(LaunchError):
        wp.full(2, "a")


def test_likes():
    a = wp.ones((2, 3), dtype=wp.vec3, requires_grad=True)
    for b in (wp.zeros_like(a), wp.ones_like(a), wp.empty_like(a), wp.full_like(a, 2.0)):
        assert (b.shape, b.dtype, b.requires_grad) == (a.shape, a.dtype, True)
    assert not wp.zeros_like(a, requires_grad=False).requires_grad
    assert wp.zeros_like(a[:, 0]).is_contiguous
    assert wp.zeros_like(np.zeros(3)).dtype is wp.float64


def test_from_numpy():
    n = np.arange(6.0).reshape(2, 3)
    assert wp.from_numpy(n).shape == (2, 3)
    assert wp.from_numpy(n, dtype=wp.vec3).shape == (2,)
    assert wp.from_numpy(n, dtype=float, shape=6, requires_grad=True).grad is not None


def test_unknown_keyword():
    with pytest.raises(TypeError):
        wp.zeros(3, color="red")


@pytest.mark.host("the CPU is the device")
def test_devices():
    assert wp.get_device() == "cpu"
    assert str(wp.get_device("cpu")) == "cpu"
    assert wp.get_preferred_device().is_cpu
    assert not wp.is_cuda_available()
    assert wp.get_devices() == ["cpu"]
    with wp.ScopedDevice("cpu") as d:
        assert d.alias == "cpu"
    wp.set_device("cpu")
    wp.init()
    wp.synchronize()
    assert wp.zeros(1, device="cpu").device == "cpu"


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "tpu", 3])
def test_unknown_devices(name):
    with pytest.raises(LaunchError) as e:
        wp.zeros(1, device=name)
    assert e.value.diagnostics[0].code == "E208"


def test_names_of_warp_that_are_missing_say_so():
    with pytest.raises(LaunchError, match=r"E112.*textures"):
        wp.Texture2D(3)
    assert not hasattr(wp, "no_such_name")


def test_import_is_light():
    import subprocess
    import sys

    heavy = ("torch", "jax", "cupy", "matplotlib", "graphviz", "rich", "typer", "engine.autograd")
    text = f"import sys, engine; sys.exit(any(m in sys.modules for m in {heavy!r}))"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


def test_all_names_exist():
    for name in wp.__all__:
        assert getattr(wp, name) is not None


def test_star_import_keeps_pythons_names():
    scope = {}
    exec("from engine import *", scope)
    assert "max" not in scope
    assert "sin" in scope


def test_empty_data_has_the_dimensions_that_are_asked_for():
    for data in ([], np.array([]), ()):
        assert wp.array(data, dtype=int, ndim=2).shape == (0, 0)
        assert wp.array(data, dtype=wp.vec3, ndim=3).shape == (0, 0, 0)
        assert wp.array(data, dtype=float, ndim=1).shape == (0,)
    assert wp.empty((2, 3), dtype=wp.vec3, ndim=2).shape == (2, 3)
    for make in (
        lambda: wp.array([1.0], dtype=float, ndim=2),
        lambda: wp.array([], dtype=float, ndim=5),
        lambda: wp.zeros(3, dtype=float, ndim=2),
    ):
        with pytest.raises(LaunchError) as e:
            make()
        assert e.value.diagnostics[0].code == "E206"


def test_components_in_any_axes():
    for shape, dtype, want in (
        ((5, 2, 1), wp.vec2, (5,)),
        ((5, 1, 2), wp.vec2, (5, 1)),
        ((2, 3, 4), wp.vec2, (2, 3, 2)),
        ((2, 2, 1), wp.mat22, (1,)),
        ((5, 4), wp.mat22, (5,)),
    ):
        data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        made = wp.array(data, dtype=dtype)
        assert made.shape == want and made.numpy().ravel().tolist() == data.ravel().tolist()


def test_strides_of_new_arrays():
    a = wp.zeros((2, 3), dtype=float, strides=(4, 8))
    assert (a.strides, a.capacity, a.is_contiguous) == ((4, 8), 24, False)
    a.assign([[1, 2, 3], [4, 5, 6]])
    assert a.transpose().is_contiguous
    assert a.list() == [1, 2, 3, 4, 5, 6]
    gaps = wp.full((3, 3), 7, dtype=int, strides=(16, 12))
    assert gaps.capacity == 4 + 2 * 16 + 2 * 12
    assert wp.empty((0, 3), dtype=int, strides=(4, 16)).capacity == 0
    for strides in ((4,), (16, -4), "ab"):
        with pytest.raises(LaunchError, match="E206"):
            wp.empty((3, 3), dtype=int, strides=strides)


def test_several_vectors_in_a_row():
    found = np.arange(24, dtype=np.float32).reshape(4, 6)
    a = wp.array(found, dtype=wp.vec3)
    assert a.shape == (4, 2)
    assert np.array_equal(a.numpy(), found.reshape(4, 2, 3))
    assert wp.array(found, dtype=wp.vec3, shape=(2, 2, 2)).shape == (2, 2, 2)
    assert wp.array(found, dtype=Any).dtype is wp.float32
    with pytest.raises(LaunchError, match="E206"):
        wp.array(found, dtype=wp.vec4)


def test_a_gradient_can_be_retained_where_there_is_one():
    with pytest.raises(LaunchError, match="E206"):
        wp.zeros(2, retain_grad=True)
    with pytest.raises(LaunchError, match="E206"):
        wp.array([1.0], dtype=float, retain_grad=True)
    a = wp.zeros(2)
    with pytest.raises(ValueError, match="no gradient that could be retained"):
        a.retain_grad = True
    a.requires_grad = True
    a.retain_grad = True
    assert a.retain_grad
    a.requires_grad = False
    assert not a.retain_grad


@pytest.mark.host("memory of the host")
def test_memory_of_somebody_else():
    memory = np.arange(6, dtype=np.float32)
    at = memory.ctypes.data
    a = wp.array(ptr=at, shape=(2, 2), strides=(12, 4), dtype=float)
    a[1, 0] = 9.0
    assert memory.tolist() == [0, 1, 2, 9, 4, 5]
    pointer = np.array([at], np.uint64)
    with pytest.warns(DeprecationWarning, match="from_ptr is deprecated"):
        b = wp.from_ptr(pointer.ctypes.data, 6)
    assert b.list() == memory.tolist()
    for length, dtype in ((-3, float), ("a", float), (3, "a")):  # refused, and nothing is read
        with pytest.warns(DeprecationWarning), pytest.raises(wp.LaunchError, match=r"E20[26]"):
            wp.from_ptr(64, length, dtype)
    assert wp.handle is wp.uint64


def test_no_structs_are_ones():
    """The addresses of their arrays would be 1."""

    @wp.struct
    class Holder:
        x: wp.array(dtype=float)

    with pytest.raises(LaunchError, match="cannot fill elements"):
        wp.ones(2, dtype=Holder)
    assert wp.ones(1, dtype=wp.vec2).list() == [wp.vec2(1.0, 1.0)]
    assert wp.ones(1, dtype=bool).list() == [True]


def test_only_a_tape_is_checked():
    with pytest.raises(LaunchError, match="gradcheck_tape takes a tape, got None"):
        wp.autograd.gradcheck_tape(None)
