"""DLPack: both versions of capsules, both ways, who keeps memory alive, and what is refused."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.types import float_types, int_types

KINDS = [wp.bool, *float_types, *int_types]
VERSIONS = [None, (0, 8), (1, 0), (1, 3)]
HALF = wp.dtype_to_numpy(wp.bfloat16)


class Producer:
    """What has DLPack alone. asked: how capsules were asked for."""

    def __init__(self, data: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.data, self.device = data, device
        self.asked: list[Any] = []

    def __dlpack__(self, **how: Any) -> Any:
        self.asked.append(how)
        return self.data.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class Old(Producer):
    """The same before there was a version to ask for."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.data.__dlpack__()


@wp.kernel
def add(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


def same(a: Any, b: Any) -> bool:
    return (a.ptr, a.shape, a.strides, a.dtype) == (b.ptr, b.shape, b.strides, b.dtype)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_types_and_versions(kind: Any, version: Any) -> None:
    a = wp.array(np.arange(12).reshape(3, 4) % 2, dtype=kind)[1:, ::2]
    capsule = a.__dlpack__(max_version=version)
    assert ("versioned" in repr(capsule)) == (version is not None and version >= (1, 0))
    b = wp.from_dlpack(capsule)
    assert same(a, b)
    assert "used" in repr(capsule)
    assert (b.numpy() == a.numpy()).all()


@pytest.mark.parametrize("kind", [wp.vec3, wp.mat22d, wp.quat, wp.types.vector(3, wp.bfloat16)])
def test_vectors_and_matrices(kind: Any) -> None:
    a = wp.ones((4, 2), dtype=kind)[1:, 1]
    parts = wp.from_dlpack(a.__dlpack__(max_version=(1, 0)))
    assert parts.shape == a.numpy().shape
    assert same(wp.from_dlpack(wp.to_dlpack(a), dtype=kind), a)
    assert same(wp.from_dlpack(parts, dtype=kind), a)
    one = wp.from_dlpack(np.ones(a.numpy().shape[1:], a.numpy().dtype), dtype=kind)
    assert (one.shape, one.dtype) == ((1,), kind)


def test_layouts() -> None:
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for view in (base, base.T, base[::-1, :, ::-2], base[:, 1:1], base[1, 2, 3:], base[0, 0, 0:1],
                 np.asfortranarray(base), np.broadcast_to(base[0], (5, 3, 4))):  # fmt: skip
        a = wp.from_dlpack(Producer(view))
        assert (a.shape, a.numpy().tolist()) == (view.shape, view.tolist())
        assert a.ptr == view.__array_interface__["data"][0] or not view.size
        back = np.asarray(a) if min(view.strides) < 0 else np.from_dlpack(a)
        assert back.tolist() == view.tolist()
        assert np.shares_memory(back, view) or not view.size
    assert wp.from_dlpack(Producer(np.array(3.0))).numpy().tolist() == [3.0]
    assert wp.from_dlpack(wp.zeros((0, 3))).shape == (0, 3)


def test_an_offset_in_bytes() -> None:
    """Some libraries put it beside the address: PyTorch does not, NumPy does as it is told."""
    import ctypes

    x = np.arange(8, dtype=np.float32)
    capsule = x.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = get(capsule, b"dltensor")
    shape = ctypes.c_int64.from_address(ctypes.c_void_p.from_address(at + 24).value)
    shape.value = 6
    ctypes.c_uint64.from_address(at + 40).value = 8
    assert wp.from_dlpack(capsule).numpy().tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_what_is_asked_for() -> None:
    p = Producer(np.ones(3))
    wp.from_dlpack(p)
    assert p.asked == [{"max_version": (1, 0)}]
    old = Old(np.ones(3, np.float32))
    wp.launch(add, 3, [wp.from_dlpack(old)])
    assert old.data.tolist() == [2.0] * 3
    a = wp.zeros(3)
    assert a.__dlpack_device__() == (1, 0)
    for how in ({"stream": None}, {"stream": -1}, {"dl_device": (1, 0)}, {"copy": False}):
        assert wp.from_dlpack(a.__dlpack__(**how)).ptr == a.ptr
    copied = wp.from_dlpack(a.__dlpack__(copy=True))
    copied.fill_(2.0)
    assert a.numpy().tolist() == [0.0] * 3
    for stream in (0, 1, 2, True, "no"):
        with pytest.raises(TypeError, match="stream"):
            a.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match=r"E206.*given away"):
        a.__dlpack__(dl_device=(2, 0))


def test_read_only_memory() -> None:
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    for source in (x, Producer(x)):
        a = wp.from_dlpack(source)
        with pytest.raises(wp.LaunchError, match=r"E206.*read-only"):
            wp.launch(add, 3, [a])
        with pytest.raises(wp.LaunchError, match=r"E206.*read-only"):
            a.zero_()
        for ask in (a.__dlpack__, lambda a=a: wp.to_dlpack(a)):
            with pytest.raises(BufferError, match=r"E206.*before version 1.0"):
                ask()
        again = wp.from_dlpack(a.__dlpack__(max_version=(1, 0)))
        assert again.ptr == a.ptr and not again.storage.writable
        assert not np.from_dlpack(a).flags.writeable
        free = wp.from_dlpack(a.__dlpack__(copy=True, max_version=(1, 0)))
        wp.launch(add, 3, [free])
    assert x.tolist() == [1.0] * 3
    assert wp.from_dlpack(np.ones(3).__dlpack__(max_version=(1, 0))).storage.writable


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("kind", [wp.float32, wp.bfloat16])
@pytest.mark.parametrize("order", ["array first", "capsule first", "reader first"])
def test_who_keeps_it_alive(order: str, kind: Any, version: Any) -> None:
    a = wp.full(1000, 7.0, dtype=kind)
    memory = weakref.ref(a.storage)
    capsule = a.__dlpack__(max_version=version)
    b = wp.from_dlpack(capsule)
    if order == "array first":
        del a
        gc.collect()
        assert memory() is not None and (b.numpy() == 7.0).all()
        del b, capsule
    elif order == "capsule first":
        del capsule, a
        gc.collect()
        assert memory() is not None and (b.numpy() == 7.0).all()
        del b
    else:
        del b
        gc.collect()
        assert memory() is not None and (a.numpy() == 7.0).all()
        del a, capsule
    gc.collect()
    assert memory() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_that_nobody_takes(version: Any) -> None:
    a = wp.zeros(1000)
    memory = weakref.ref(a.storage)
    capsules = [a.__dlpack__(max_version=version) for _ in range(5)]
    del a
    gc.collect()
    assert memory() is not None
    del capsules
    gc.collect()
    assert memory() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_capsules_are_taken_once(version: Any) -> None:
    capsule = wp.zeros(3).__dlpack__(max_version=version)
    first = wp.from_dlpack(capsule)
    with pytest.raises(wp.LaunchError, match=r"E206.*valid DLPack capsule[\s\S]*used once"):
        wp.from_dlpack(capsule)
    with pytest.raises(TypeError):
        wp.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert first.numpy().tolist() == [0.0] * 3


def test_memory_of_others_goes_when_nobody_has_it() -> None:
    x = np.arange(1000.0)
    gone = weakref.ref(x)
    a = wp.from_dlpack(Producer(x))
    view = a[10:20]
    del x, a
    gc.collect()
    assert gone() is not None and view.numpy()[0] == 10.0
    del view
    gc.collect()
    assert gone() is None


def test_a_capsule_that_failed_is_still_the_programs() -> None:
    """What is refused before the capsule is used may be tried again."""
    x = np.arange(6, dtype=np.float32)
    capsule = x.__dlpack__()
    with pytest.raises(wp.LaunchError, match="E202"):
        wp.from_dlpack(capsule, dtype="nothing")
    assert wp.from_dlpack(capsule).numpy().tolist() == x.tolist()


def test_threads() -> None:
    """Capsules made here are taken elsewhere, and what they show dies there."""
    found: list[float] = []

    def take(capsule: Any) -> None:
        a = wp.from_dlpack(capsule)
        found.append(float(a.numpy().sum()))
        del a
        gc.collect()

    arrays = [wp.full(100, float(i), dtype=wp.float64) for i in range(20)]
    memory = [weakref.ref(a.storage) for a in arrays]
    threads = [threading.Thread(target=take, args=[wp.to_dlpack(a)]) for a in arrays]
    del arrays
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [100.0 * i for i in range(20)]
    del threads, t
    gc.collect()
    assert [m() for m in memory] == [None] * 20


def test_one_memory_has_one_storage() -> None:
    """So that a tape knows that what comes back is what went out."""
    a = wp.zeros(3, dtype=float, requires_grad=True)
    assert wp.from_dlpack(wp.to_dlpack(a)).storage is a.storage
    assert wp.from_dlpack(a).storage is a.storage
    x = np.ones(3)
    assert wp.from_dlpack(x).storage is wp.from_dlpack(Producer(x)).storage


class Broken(Producer):
    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("no such luck")


class Nothing(Producer):
    def __dlpack__(self, **how: Any) -> Any:
        return object()


@pytest.mark.parametrize(
    ("source", "dtype", "text"),
    [
        (Producer(None, (2, 1)), None, "device_type=2, device_id=1"),
        (Broken(None), None, "Broken gives no tensor: no such luck"),
        (Nothing(None), None, "Expected a valid DLPack capsule, got object"),
        (3, None, "Expected a valid DLPack capsule, got int"),
        (Producer(np.ones(3, np.complex64)), None, "no arrays of complex64"),
        (Producer(np.ones(3, np.longdouble)), None, "from_dlpack: "),
        (np.ones(3, ">f4"), None, "no arrays of >f4"),
        (np.zeros(3, [("x", "f4")]), None, "no arrays of "),
        (Producer(np.ones((1,) * 5)), None, "1 to 4 dimensions"),
        (Producer(np.ones(3)), wp.float32, "DLPack float64 and Warp float32"),
        (Producer(np.ones((2, 4))), wp.vec3d, r"shape \(2, 4\) has no elements of vec3d"),
        (Producer(np.ones((2, 6))[:, ::2]), wp.vec3d, "do not lie in one piece"),
        (Producer(np.ones(3, np.float16)), wp.bfloat16, "DLPack float16 and Warp bfloat16"),
        (Producer(np.ones(3)), wp.int64, "DLPack float64 and Warp int64"),
    ],
)  # fmt: skip
def test_refusals(source: Any, dtype: Any, text: str) -> None:
    with pytest.raises(wp.LaunchError, match=text) as e:
        wp.from_dlpack(source, dtype)
    assert isinstance(e.value, TypeError) and isinstance(e.value, RuntimeError)
    (found,) = e.value.diagnostics
    assert found.code == "E206" and found.help
    assert found.span is not None and found.span.file == __file__


def test_types_that_dlpack_has_and_arrays_have_not() -> None:
    """A capsule that says so is refused by the words of DLPack, not by NumPy's."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    del ml_dtypes
    for kind in (torch.complex64, torch.complex128):
        with pytest.raises(wp.LaunchError, match="complex"):
            wp.from_dlpack(torch.utils.dlpack.to_dlpack(torch.zeros(3, dtype=kind)))
    eight = torch.zeros(3, dtype=torch.float8_e4m3fn)
    with pytest.raises(wp.LaunchError, match="E206"):
        wp.from_dlpack(torch.utils.dlpack.to_dlpack(eight))


def test_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for kind in KINDS:
        a = wp.array([[0, 1], [1, 0]], dtype=kind)
        for t in (torch.from_dlpack(a), torch.utils.dlpack.from_dlpack(wp.to_dlpack(a))):
            assert t.data_ptr() == a.ptr
            back = wp.from_dlpack(torch.utils.dlpack.to_dlpack(t))
            assert same(a, back)
            assert same(a, wp.from_dlpack(t))
            t.fill_(1)
            assert (a.numpy() == 1).all()
    with pytest.raises(wp.LaunchError, match="grad"):
        wp.from_dlpack(Producer(torch.zeros(3, requires_grad=True)))


def test_jax() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    for kind in (wp.bool, wp.bfloat16, wp.float16, wp.float32, wp.int8, wp.uint32):
        a = wp.array([[0, 1], [1, 0]], dtype=kind)
        j = jax.dlpack.from_dlpack(a)
        assert j.unsafe_buffer_pointer() == a.ptr
        assert same(a, wp.from_dlpack(j))
        with pytest.raises(wp.LaunchError, match=r"E206.*a JAX array, which is immut"):
            wp.from_dlpack(j).zero_()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_paddle() -> None:
    paddle = pytest.importorskip("paddle", reason="paddle is not installed")
    for kind in (wp.bool, wp.bfloat16, wp.float16, wp.float32, wp.float64, wp.int32):
        a = wp.array([[0, 1], [1, 0]], dtype=kind)
        take = paddle.utils.dlpack.from_dlpack
        for t in (take(a), take(wp.to_dlpack(a))):
            assert t.data_ptr() == a.ptr
            assert same(a, wp.from_dlpack(paddle.utils.dlpack.to_dlpack(t)))


@pytest.mark.parametrize("shape", [(4,), (3, 2), (2, 3, 2)])
def test_what_goes_backwards_is_refused_before_anybody_fails_at_it(shape: tuple[int, ...]) -> None:
    """PyTorch ends the process at steps below zero."""
    a = wp.array(np.arange(np.prod(shape)).reshape(shape), dtype=float)
    for axis in range(len(shape)):
        back = a[(slice(None),) * axis + (slice(None, None, -1),)]
        for give in (
            back.__dlpack__,
            lambda a=back: wp.to_dlpack(a),
            lambda a=back: np.from_dlpack(a),
        ):
            with pytest.raises(wp.LaunchError, match=r"E206.*backwards") as e:
                give()
            assert isinstance(e.value, BufferError)
            assert "copy=True" in str(e.value)
        assert (np.from_dlpack(back, copy=True) == back.numpy()).all()
        assert same(wp.from_dlpack(back), back)
        alone = a[(slice(None),) * axis + (slice(0, 1),)][
            (slice(None),) * axis + (slice(None, None, -1),)
        ]
        assert (np.from_dlpack(alone) == alone.numpy()).all()
    none = a[:0][::-1]
    assert np.from_dlpack(none).shape == none.shape


@pytest.mark.parametrize("device", [5, None, (1,), ("cpu", 0), (1, 0, 0)])
def test_devices_that_are_none_are_told(device: Any) -> None:
    with pytest.raises(wp.LaunchError, match=r"E206.*has the device"):
        wp.from_dlpack(Producer(np.ones(3, np.float32), device))
