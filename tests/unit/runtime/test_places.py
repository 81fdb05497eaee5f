"""Values that cannot be memory are refused at their place (E206), in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import LaunchError

KEPT = np.arange(64, dtype=np.float32)
AT = KEPT.ctypes.data
pytestmark = pytest.mark.host("memory of the host")

# Places of 4 floats where there is no memory: address and strides, in bytes.
NOWHERE: dict[str, tuple[int, int]] = {
    "below zero": (-1, 4),
    "far below zero": (-(1 << 70), 4),
    "zero": (0, 4),
    "the last one of 64 bits": ((1 << 64) - 4, 4),
    "the upper half": (1 << 63, 4),
    "into the upper half": ((1 << 63) - 4, 4),
    "past 64 bits": (1 << 64, 4),
    "far past 64 bits": (1 << 70, 4),
    "a large stride": (AT, 1 << 62),
    "a large stride back": (AT, -(1 << 62)),
    "a stride that wraps around": (AT, 1 << 63),
    "a stride past 64 bits": (AT, 1 << 70),
    "back across zero": (8, -4),
}
UNALIGNED = {"an odd address": (AT + 1, 4), "an odd stride": (AT, 6), "half a stride": (AT, 2)}


class Tells:
    """Something that tells NumPy where its memory is."""

    def __init__(self, address: int, stride: int) -> None:
        self.__array_interface__ = {
            "version": 3, "shape": (4,), "typestr": "<f4", "data": (address, False),
            "strides": (stride,),
        }  # fmt: skip


class TellsGpus:
    """The same for GPUs."""

    def __init__(self, address: int, stride: int) -> None:
        self.__cuda_array_interface__ = Tells(address, stride).__array_interface__


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


WAYS: dict[str, Any] = {
    "array": lambda at, step: wp.array(ptr=at, shape=4, strides=(step,), dtype=float),
    "array of vectors": lambda at, step: wp.array(ptr=at, shape=4, strides=(3 * step,),
                                                  dtype=wp.vec3),
    "an interface": lambda at, step: wp.array(Tells(at, step), copy=False),
    "an interface, copied": lambda at, step: wp.array(Tells(at, step), dtype=float),
    "an interface, converted": lambda at, step: wp.array(Tells(at, step), dtype=wp.float64),
    "an interface of a GPU": lambda at, step: wp.array(TellsGpus(at, step)),
    "a launch": lambda at, step: wp.launch(double, 4, [Tells(at, step)]),
}  # fmt: skip


def refused(call: Any) -> LaunchError:
    with pytest.raises(LaunchError) as caught:
        call()
    (found,) = caught.value.diagnostics
    assert found.help
    return caught.value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", NOWHERE)
def test_where_there_is_no_memory(place: str, way: str) -> None:
    address, stride = NOWHERE[place]
    found = refused(lambda: WAYS[way](address, stride)).diagnostics[0]
    # NumPy itself refuses some of what is told, which is then no argument of a launch.
    assert found.code == "E206" or (way == "a launch" and found.code == "E202")


@pytest.mark.parametrize("place", NOWHERE)
def test_pointers_to_pointers(place: str) -> None:
    address, _ = NOWHERE[place]
    if address == AT or place in ("zero", "back across zero"):
        pytest.skip("this is memory, or none")
    with pytest.warns(DeprecationWarning):
        assert refused(lambda: wp.from_ptr(address, 4)).diagnostics[0].code == "E206"


def test_a_pointer_to_nowhere() -> None:
    held = np.array([5], np.uint64)
    with pytest.warns(DeprecationWarning):
        assert wp.from_ptr(0, 0).shape == (0,)
    held[0] = 1 << 63
    with pytest.warns(DeprecationWarning):
        assert refused(lambda: wp.from_ptr(held.ctypes.data, 4)).diagnostics[0].code == "E206"


@pytest.mark.parametrize("strides", [s for _, s in NOWHERE.values() if s > 4])
def test_arrays_of_numpy(strides: int) -> None:
    if strides >= 1 << 63:
        pytest.skip("NumPy has no such arrays")
    seen = np.lib.stride_tricks.as_strided(KEPT, (4,), (strides,))
    for call in (lambda: wp.array(seen, copy=False), lambda: wp.launch(double, 4, [seen]),
                 lambda: wp.from_dlpack(seen)):  # fmt: skip
        assert refused(call).diagnostics[0].code == "E206"


@pytest.mark.parametrize("place", UNALIGNED)
def test_numbers_at_multiples_of_their_size(place: str) -> None:
    address, stride = UNALIGNED[place]
    for dtype in (float, wp.vec2, wp.mat22):
        found = refused(lambda d=dtype: wp.array(ptr=address, shape=4, strides=(stride,), dtype=d))
        assert "multiple" in found.diagnostics[0].message
    assert wp.array(ptr=address, shape=4, strides=(stride,), dtype=wp.int8).size == 4
    found = refused(lambda: wp.array(TellsGpus(address, stride)))
    assert "multiple" in found.diagnostics[0].message
    if address == AT:
        refused(lambda: wp.zeros(4, dtype=float, strides=(stride,)))


def test_structs_at_multiples_of_their_alignment() -> None:
    @wp.struct
    class Mixed:
        a: wp.int8
        b: wp.float64

    data = np.zeros(4, np.float64)
    assert wp.array(ptr=data.ctypes.data, shape=2, dtype=Mixed).size == 2
    refused(lambda: wp.array(ptr=data.ctypes.data + 4, shape=1, dtype=Mixed))
    refused(lambda: wp.array(ptr=data.ctypes.data, shape=2, strides=(20,), dtype=Mixed))


@pytest.mark.parametrize("value", [True, np.True_, 1.5, np.float64(8), "8", b"8", [8], (8,), 8j])
def test_addresses_are_integers(value: Any) -> None:
    for call in (
        lambda: wp.array(ptr=value, shape=4, dtype=float),
        lambda: wp.array(ptr=AT, shape=4, strides=(value,), dtype=float),
        lambda: wp.zeros(4, dtype=float, strides=(value,)),
    ):
        assert refused(call).diagnostics[0].code == "E206"


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64, np.intp])
def test_integers_of_numpy(kind: Any) -> None:
    a = wp.array(ptr=kind(AT + 8), shape=4, strides=(kind(8),), dtype=float)
    assert type(a.ptr) is int and [type(s) for s in a.strides] == [int]
    np.testing.assert_array_equal(a.numpy(), KEPT[2:10:2])
    np.testing.assert_array_equal(wp.clone(a).numpy(), KEPT[2:10:2])


def test_places_that_are_memory() -> None:
    back = wp.array(ptr=AT + 12, shape=4, strides=(-4,), dtype=float)
    np.testing.assert_array_equal(back.numpy(), KEPT[3::-1])
    same = wp.array(ptr=AT, shape=4, strides=(0,), dtype=float)
    np.testing.assert_array_equal(same.numpy(), KEPT[[0] * 4])
    # Of one element, no stride is taken; without elements, no memory is.
    assert wp.array(ptr=AT, shape=1, strides=(1 << 62,), dtype=float).numpy()[0] == KEPT[0]
    assert wp.array(ptr=0, shape=0, dtype=float).numpy().shape == (0,)
    assert wp.array(ptr=0, shape=(3, 0), dtype=wp.vec3).size == 0


def test_strides_of_no_elements() -> None:
    """A shape may be empty, and its strides too large for 64 bits all the same."""
    assert refused(lambda: wp.zeros((0, 1 << 30, 1 << 30, 1 << 30))).diagnostics[0].code == "E206"
    assert wp.zeros((0, 1 << 20, 1 << 20)).size == 0
