"""NumPy's memory: shared, copied or refused by one rule, as docs/frameworks.md says it."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.types import float_types, int_types

ADD, ADD2, TOTAL = "add", "add2", "total"


@wp.kernel
def add(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


@wp.kernel
def add2(x: wp.array(dtype=float, ndim=2)):
    i, j = wp.tid()
    x[i, j] += 1.0


@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, x[wp.tid()])


@wp.struct
class Body:
    mass: float
    at: wp.vec3


@wp.kernel
def heavier(bodies: wp.array(dtype=Body)):
    bodies[wp.tid()].mass += 1.0


def numbers() -> Any:
    return np.arange(6, dtype=np.float32)


def read_only() -> Any:
    x = numbers()
    x.flags.writeable = False
    return x


class Tagged(np.ndarray):
    pass


class Interface:
    """What has only the array interface."""

    def __init__(self) -> None:
        self.data = numbers()
        self.__array_interface__ = self.data.__array_interface__


def misaligned() -> Any:
    return np.zeros(6, np.dtype([("a", "u1"), ("x", "f4")]))["x"]


# What is given; what a launch that writes it does, one that reads it, `array(x, copy=False)`, and
# `array(x)`. S: shares; C: copies; a code: refuses; W: copies, and warns.
TABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "plain": (numbers, "S S S C"),
    "a slice": (lambda: np.arange(12, dtype=np.float32)[::2], "S S S C"),
    "backwards": (lambda: numbers()[::-1], "S S S C"),
    "columns first": (lambda: np.asfortranarray(np.ones((2, 3), np.float32)), "S - S C"),
    "transposed": (lambda: np.ones((3, 2), np.float32).T, "S - S C"),
    "a matrix": (lambda: np.matrix(np.ones((2, 3), np.float32)), "S - S C"),
    "a subclass": (lambda: numbers().view(Tagged), "S S S C"),
    "the interface alone": (Interface, "S S S C"),
    "read-only": (read_only, "E206 S S C"),
    "one number for all": (
        lambda: np.broadcast_to(np.float32(2), 6), "E206 S S C"),
    "many in one place": (
        lambda: np.lib.stride_tricks.as_strided(numbers(), (6,), (0,)), "E206 S S C"),
    "nothing": (lambda: np.zeros(0, np.float32), "S S S C"),
    "no axes": (lambda: np.array(1.0, np.float32), "E203 E203 S C"),
    "another float": (lambda: np.arange(6.0), "E202 E202 W C"),
    "integers": (lambda: np.arange(6), "E202 E202 W C"),
    "another order of bytes": (lambda: numbers().astype(">f4"), "E202 E202 W C"),
    "not aligned": (misaligned, "E202 E202 W C"),
    "too many axes": (lambda: np.ones((1, 1, 1, 1, 1), np.float32), "E203 E203 E206 E206"),
    "complex": (lambda: np.ones(6, np.complex64), "E202 E202 E206 E206"),
    "dates": (lambda: np.zeros(6, "datetime64[s]"), "E202 E202 E206 E206"),
    "objects": (lambda: np.array([1.0, 2.0], object), "E202 E202 E206 E206"),
    "text": (lambda: np.array(["1", "2"]), "E202 E202 E206 E206"),
    "records": (lambda: np.zeros(6, [("x", "f4")]), "E202 E202 E206 E206"),
    "masked": (lambda: np.ma.masked_array(numbers(), numbers() > 2), "E202 E202 E206 E206"),
}  # fmt: skip


def outcome(use: Callable[[], str]) -> str:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # of numpy.matrix
        try:
            got = use()
        except wp.LaunchError as e:
            (found,) = e.diagnostics
            assert found.span is not None and found.span.file == __file__
            return found.code
    return "W" if seen else got


@pytest.mark.parametrize("name", TABLE)
def test_one_rule(name: str) -> None:
    make, expected = TABLE[name]
    writes, reads, shares, copies = expected.split()

    def data(x: Any) -> Any:
        return getattr(x, "data", x) if isinstance(x, Interface) else x

    def written() -> str:
        x = make()
        before = np.array(data(x))
        wp.launch(add2 if before.ndim == 2 else add, before.shape[:4] or 1, [x])
        return "S" if (np.asarray(data(x)) == before + 1).all() else "C"

    def read() -> str:
        x, out = make(), wp.zeros(1, dtype=float)
        wp.launch(total, np.size(data(x)), [x, out])
        assert out.numpy()[0] == np.sum(data(x))
        return "S"

    def made(copy: bool) -> str:
        x = make()
        a = wp.array(x, dtype=float, copy=copy)
        assert (a.numpy().reshape(np.shape(data(x))) == np.asarray(data(x))).all()
        assert a.dtype is wp.float32
        if not a.size:
            return "C" if copy else "S"
        return "S" if np.shares_memory(a.numpy(), np.asarray(data(x))) else "C"

    assert outcome(written) == writes
    if reads != "-":
        assert outcome(read) == reads
    assert outcome(lambda: made(False)) == shares
    assert outcome(lambda: made(True)) == copies


def test_the_table_is_in_the_documents() -> None:
    text = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
    words = {"S": "shared", "C": "copied", "W": "copied, warns", "-": ""}
    for name, (_, expected) in TABLE.items():
        cells = [words.get(x, x) for x in expected.split()]
        cells[1] = cells[1] or "shared"
        assert f"| {name} | {' | '.join(cells)} |" in text, (name, cells)


def test_read_only_memory_stays_as_it_is() -> None:
    """By any way, and also where a writable view of it is shared, too."""
    x = numbers()
    seen = x.view()
    seen.flags.writeable = False
    whole, part = wp.array(x, copy=False), wp.array(seen, copy=False)
    assert not part.numpy().flags.writeable and whole.numpy().flags.writeable
    ways: list[Callable[[], Any]] = [
        lambda: part.fill_(1.0),
        lambda: part.zero_(),
        lambda: part.assign(numbers()),
        lambda: wp.copy(part, whole),
        lambda: wp.launch(add, 6, [part]),
        lambda: wp.launch(add, 6, [seen]),
        lambda: part.__setitem__(0, 2.0),
        lambda: setattr(whole, "grad", part),
    ]
    for way in ways:
        with pytest.raises(wp.LaunchError, match="E206"):
            way()
    assert (x == numbers()).all()
    wp.launch(add, 6, [x])
    assert (part.numpy() == numbers() + 1).all()


def test_maps_of_files(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    numbers().tofile(path)
    for mode, refused in (("r+", False), ("c", False), ("r", True)):
        mapped = np.memmap(path, np.float32, mode)
        if refused:
            with pytest.raises(wp.LaunchError, match=r"E206.*read-only"):
                wp.launch(add, 6, [mapped])
            assert (wp.array(mapped, copy=False).numpy() == mapped).all()
        else:
            wp.launch(add, 6, [mapped])
        del mapped
    assert (np.fromfile(path, np.float32) == numbers() + 1).all()  # by r+ alone


def test_records() -> None:
    x = np.zeros(3, wp.dtype_to_numpy(Body))
    wp.launch(heavier, 3, [x])
    assert (x["mass"] == 1.0).all()
    a = wp.array(x, dtype=Body, copy=False)
    wp.launch(heavier, 3, [a])
    assert (x["mass"] == 2.0).all()
    x.flags.writeable = False
    with pytest.raises(wp.LaunchError, match=r"E206.*read-only"):
        wp.launch(heavier, 3, [x])
    with pytest.raises(wp.LaunchError, match="E202"):
        wp.launch(heavier, 3, [np.zeros(3, [("mass", "f4")])])


@pytest.mark.parametrize("kind", [wp.bool, *float_types, *int_types])
def test_both_ways_without_a_copy(kind: Any) -> None:
    a = wp.zeros((2, 3), dtype=kind)
    for seen in (a.numpy(), np.asarray(a), a.__array__(), np.array(a, copy=False)):
        assert seen.dtype == wp.dtype_to_numpy(kind)
        assert np.shares_memory(seen, a.numpy()) and seen.shape == (2, 3)
        back = wp.array(seen, copy=False)
        assert (back.ptr, back.dtype) == (a.ptr, kind)
    assert wp.dtype_from_numpy(seen.dtype) is kind


def test_array_as_numpy_asks_for_it() -> None:
    a = wp.array([1.5, 2.5], dtype=float)
    assert a.__array__(np.float64).dtype == np.float64
    assert not np.shares_memory(a.__array__(copy=True), a.numpy())
    assert np.shares_memory(a.__array__(np.float32, copy=False), a.numpy())
    with pytest.raises(ValueError, match="float32 as float64 needs a copy"):
        a.__array__(np.float64, copy=False)
    assert np.asarray(a, np.int32).tolist() == [1, 2]
    assert np.add(a, 1.0).tolist() == [2.5, 3.5]
    halves = wp.array([1.5, 2.5], dtype=wp.bfloat16)
    assert np.asarray(halves).dtype == wp.dtype_to_numpy(wp.bfloat16)
    assert np.shares_memory(np.asarray(halves), halves.numpy())
    assert np.asarray(wp.array([Body()], dtype=Body)).dtype.names == ("mass", "at")
    assert np.asarray(wp.zeros((4, 6), dtype=wp.vec2)[::2, ::-1]).strides == (96, -8, 4)


def test_types() -> None:
    for dtype in (np.complex64, "datetime64[s]", object, "U3", ">f4", [("x", "f4")], None, 3, "no"):
        with pytest.raises(TypeError, match="E202") as e:
            wp.dtype_from_numpy(dtype)
        assert isinstance(e.value, wp.LaunchError)
    for dtype in (complex, wp.indexedarray(dtype=float), "float", None, 3):
        with pytest.raises(TypeError, match="E202") as e:
            wp.dtype_to_numpy(dtype)
        assert isinstance(e.value, wp.LaunchError)
    assert wp.dtype_from_numpy(np.dtype("float32")) is wp.float32
    assert wp.dtype_from_numpy("int64") is wp.int64
    assert wp.dtype_to_numpy(wp.mat33d) is np.float64
    assert wp.dtype_to_numpy(float) is np.float32
    assert wp.dtype_to_numpy(Body).names == ("mass", "at")


def test_memory_lives_as_long_as_somebody_sees_it() -> None:
    x = numbers()
    a = wp.array(x[1:4], copy=False)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is not None and a.numpy().tolist() == [1.0, 2.0, 3.0]
    seen = a.numpy()[1:]
    del a
    gc.collect()
    assert gone() is not None and seen.tolist() == [2.0, 3.0]
    del seen
    gc.collect()
    assert gone() is None


def test_from_numpy_copies() -> None:
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    a = wp.from_numpy(x, requires_grad=True)
    assert (a.dtype, a.shape, a.requires_grad) == (wp.float64, (2, 3), True)
    assert a.is_contiguous and not np.shares_memory(a.numpy(), x)
    assert wp.from_numpy(x, dtype=wp.vec3).numpy().dtype == np.float32
    assert wp.from_numpy(x.astype(">f8")).numpy().tolist() == x.tolist()
    assert wp.from_numpy(np.zeros((2, 2), bool)).dtype is wp.bool
