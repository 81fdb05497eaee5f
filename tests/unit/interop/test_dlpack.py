"""DLPack: memory is shared both ways, kept alive, and what cannot be shared is refused."""

import gc

import numpy as np
import pytest

import engine as wp
from engine.types import int_types

pytestmark = pytest.mark.host("DLPack of a GPU is CuPy's own")

KINDS = [wp.bool, wp.float16, wp.float32, wp.float64, *int_types]


@wp.struct
class Pair:
    a: float


class Old:
    """A tensor that knows the first version of the protocol only."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, stream=None):
        return self.data.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind) -> None:
    a = wp.ones((3, 4), dtype=kind)[:, ::2]
    for b in (wp.from_dlpack(wp.to_dlpack(a)), wp.from_dlpack(a), wp.from_dlpack(a, dtype=kind)):
        assert (b.ptr, b.shape, b.strides, b.dtype) == (a.ptr, a.shape, a.strides, kind)
    b.zero_()
    assert not a.numpy().any()
    seen = np.from_dlpack(a)
    seen[...] = 1
    assert a.numpy().all()
    assert seen.dtype == wp.dtype_to_numpy(kind)


@pytest.mark.parametrize(("kind", "inner"), [(wp.vec3, (3,)), (wp.mat22d, (2, 2)), (wp.quat, (4,))])
def test_components_are_the_last_axes(kind, inner) -> None:
    a = wp.zeros(5, dtype=kind)
    flat = wp.from_dlpack(a)
    assert flat.shape == (5, *inner)
    back = wp.from_dlpack(flat, dtype=kind)
    back.fill_(3.0)
    assert (back.shape, back.dtype) == ((5,), kind)
    assert (a.numpy() == 3.0).all()


def test_numpy_and_old_tensors() -> None:
    x = np.arange(6.0).reshape(2, 3)
    a = wp.from_dlpack(x)
    a.fill_(2.0)
    assert (x == 2.0).all()
    b = wp.from_dlpack(Old(x))
    b.fill_(4.0)
    assert (x == 4.0).all()
    y = np.ones(3)
    y.flags.writeable = False
    with pytest.raises(wp.LaunchError, match="read-only"):
        wp.from_dlpack(y).zero_()
    assert (y == 1.0).all()


def test_memory_outlives_its_owner() -> None:
    capsule = wp.to_dlpack(wp.full(1000, 7.0, dtype=wp.float64))
    gc.collect()
    a = wp.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert (a.numpy() == 7.0).all()
    b = wp.from_dlpack(np.full(1000, 5.0))
    gc.collect()
    assert (b.numpy() == 5.0).all()


def test_integers_and_booleans_as_one_another() -> None:
    a = wp.array([True, False])
    assert wp.from_dlpack(a, dtype=wp.uint8).numpy().tolist() == [1, 0]
    b = wp.array([-1], dtype=wp.int32)
    assert wp.from_dlpack(b, dtype=wp.uint32).numpy().tolist() == [2**32 - 1]
    with pytest.raises(
        RuntimeError, match="Incompatible data types: DLPack bool8 and Warp float32"
    ):
        wp.from_dlpack(a, dtype=float)
    with pytest.raises(RuntimeError, match="DLPack int32 and Warp float32"):
        wp.from_dlpack(b, dtype=float)


def test_refusals() -> None:
    class Elsewhere:
        def __dlpack_device__(self):
            return (123, 7)

        def __dlpack__(self, stream=None):
            raise AssertionError

    a = wp.zeros(3, dtype=float)
    used = wp.to_dlpack(a)
    wp.from_dlpack(used)
    for source, match in [
        (Elsewhere(), "device_type=123, device_id=7"),
        (object(), "valid DLPack capsule, got object"),
        (used, "valid DLPack capsule"),
    ]:
        with pytest.raises(TypeError, match=match):
            wp.from_dlpack(source)
    with pytest.raises(wp.LaunchError, match="no DLPack tensors of Pair"):
        wp.to_dlpack(wp.zeros(1, dtype=Pair))
    with pytest.raises(wp.LaunchError, match="takes an array, got list"):
        wp.to_dlpack([1])
    with pytest.raises(wp.LaunchError, match="do not lie in one piece"):
        wp.from_dlpack(np.zeros((3, 6))[:, ::2], dtype=wp.vec3d)
    for stream in (0, 1, "x"):
        with pytest.raises(TypeError, match="stream must be None or -1"):
            a.__dlpack__(stream=stream)
    assert a.__dlpack_device__() == (1, 0)
