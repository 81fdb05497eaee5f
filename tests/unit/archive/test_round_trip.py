"""Tapes that go through an archive, and its JSON, give the check that they gave before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from adtool import codec
from engine.archive import (
    Archive,
    ArchiveError,
    NotPacked,
    only,
    pack,
    unpack,
    with_contents,
    with_dim,
    with_length,
)
from engine.autograd import TapeResult, Witness, check_tape


class Memory:
    """Contents by digest, in memory."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}

    def put(self, values: np.ndarray[Any, Any]) -> str:
        values = np.array(values)
        digest = hashlib.sha256(
            repr((values.shape, values.dtype)).encode() + values.tobytes()
        ).hexdigest()
        self.arrays[digest] = values
        return digest

    def get(self, digest: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        found = self.arrays.get(digest)
        if found is None or found.shape != tuple(shape) or found.dtype != dtype:
            raise ArchiveError("contents do not fit")
        return found


@wp.struct
class Body:
    mass: float
    at: wp.vec3


@wp.struct
class World:
    gravity: wp.vec3
    weights: wp.array(dtype=float)


@wp.func
def soft(x: float):
    return wp.sqrt(x * x + 0.1)


@wp.func_grad(soft)
def adj_soft(x: float, adj_ret: float):
    wp.adjoint[x] += x / wp.sqrt(x * x + 0.1) * adj_ret * 1.5  # wrong


@wp.func_native("return x * x * x;", adj_snippet="adj_x += 3.0f * x * x * adj_ret;")
def native_cube(x: float) -> float: ...


@wp.kernel
def loops(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for k in range(n):
        if k == 3:
            continue
        s += x[i] * float(k)
        while s > 50.0:
            s = s * 0.5
    y[i] = s


@wp.kernel
def structs(b: wp.array(dtype=Body), w: World, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = b[i].mass * wp.dot(b[i].at, w.gravity) * w.weights[i]


@wp.kernel
def indexed(x: wp.indexedarray(dtype=float), m: wp.mat22, q: wp.quat, y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i] = m * wp.vec2(x[i], q[0] * x[i] * x[i])


@wp.kernel
def softened(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = soft(x[i])


@wp.kernel
def cubed(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = native_cube(x[i])


@wp.kernel
def in_place(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, x[wp.tid()] * 2.0)


@wp.kernel
def types(
    a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float16), c: wp.array(dtype=wp.uint8),
    flag: bool, big: wp.int64, z: wp.array2d(dtype=wp.float64),
):  # fmt: skip
    i, j = wp.tid()
    if flag:
        z[i, j] = a[i] * wp.float64(b[j]) + wp.float64(c[j]) * wp.float64(big) * wp.float64(1e-9)


def values(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(0.5, 2.0, n).astype(np.float32)


def program_of_loops() -> None:
    x = wp.array(values(8), requires_grad=True)
    y = wp.zeros(8, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(loops, 8, [x, 6], [y])
    tape.backward(grads={y: wp.ones(8)})


def program_of_structs() -> None:
    b = wp.zeros(4, dtype=Body, requires_grad=True)
    b.assign(np.array([(m, (m, 1.0, 2.0)) for m in values(4)], dtype=Body.numpy_dtype()))
    w = World()
    w.gravity, w.weights = wp.vec3(0.0, -9.8, 0.5), wp.array(values(4, 1), requires_grad=True)
    y = wp.zeros(4, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(structs, 4, [b, w], [y])
    tape.backward(grads={y: wp.ones(4)})


def program_of_views() -> None:
    data = wp.array(values(12), requires_grad=True)
    x = wp.indexedarray(data, [wp.array([5, 0, 3], dtype=int)])
    y = wp.zeros(3, dtype=wp.vec2, requires_grad=True)
    half = wp.zeros(5, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(indexed, 3, [x, wp.mat22(1.0, 2.0, 3.0, 4.0), wp.quat(0.5, 0.5, 0.5, 0.5)], [y])
        wp.launch(softened, 5, [data[::2]], [half])
    tape.backward(grads={y: wp.ones(3, dtype=wp.vec2), half: wp.ones(5)})


def program_that_overwrites() -> None:
    x = wp.array(values(6), requires_grad=True)
    kept, loss = wp.zeros(6, requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(kept, x)
        wp.launch(in_place, 6, [kept])
        wp.launch(in_place, 6, [kept])
        wp.launch(total, 6, [kept], [loss])
        kept.zero_()
    tape.backward(loss)


def program_of_types() -> None:
    a = wp.array(values(3).astype(np.float64), requires_grad=True)
    b = wp.array(values(2).astype(np.float16), requires_grad=True)
    c, z = wp.array([3, 250], dtype=wp.uint8), wp.zeros((3, 2), wp.float64, requires_grad=True)
    none = wp.zeros(0, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(types, (3, 2), [a, b, c, True, -(2**33)], [z])
        wp.launch(in_place, 0, [none])
    tape.backward(grads={z: wp.ones((3, 2), dtype=wp.float64)})


def program_of_functions() -> None:
    x = wp.array(values(4), requires_grad=True)
    y, loss = wp.zeros(4, requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(softened, 4, [x], [y])
        tape.record_func(lambda: None, [x, y])
        wp.launch(total, 4, [y], [loss])
    tape.backward(loss)


def program_at_present_contents() -> None:
    before, wp.config.overwrites = wp.config.overwrites, "present"
    try:
        program_that_overwrites()
    finally:
        wp.config.overwrites = before


def program_of_native_code() -> None:
    x, y = wp.array(values(4), requires_grad=True), wp.zeros(4, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cubed, 4, [x], [y])
        wp.launch(softened, 4, [x], [y])
    tape.backward(grads={y: wp.ones(4)})


PROGRAMS = [
    program_of_loops, program_of_structs, program_of_views, program_that_overwrites,
    program_of_types, program_of_functions, program_at_present_contents, program_of_native_code,
]  # fmt: skip


def captured(program: Callable[[], None]) -> list[Any]:
    with wp.capturing(watcher=Witness()) as capture:
        program()
    return [t for t in capture.tapes if t.records]


def packed(program: Callable[[], None]) -> tuple[list[Any], Archive, Memory]:
    tapes, store = captured(program), Memory()
    archive, _ = pack(tapes, store)
    text = codec.dumps(archive)
    assert codec.dumps(codec.loads(Archive, text)) == text
    return tapes, codec.loads(Archive, text), store


def results(tapes: list[Any]) -> list[TapeResult]:
    with wp.watching(None, races=False):
        return [check_tape(t) for t in tapes]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_check_is_the_same(program: Callable[[], None]) -> None:
    tapes, archive, store = packed(program)
    again = unpack(archive, store, trust=True)
    before = results(tapes)
    assert sum(t.checked for t in before) > 0
    assert codec.dumps(tuple(results(again))) == codec.dumps(tuple(before))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_same_program_gives_the_same_archive(program: Callable[[], None]) -> None:
    first, second = packed(program), packed(program)
    assert first[1] == second[1]
    assert sorted(first[2].arrays) == sorted(second[2].arrays)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_archive_of_an_archive_is_itself(program: Callable[[], None]) -> None:
    _, archive, store = packed(program)
    more = Memory()
    again, files = pack(unpack(archive, store, trust=True), more)
    assert again == archive
    assert sorted(more.arrays) == sorted(store.arrays)
    assert list(files) == list(files.values()) == list(archive.files)


def test_native_code_is_left_out_unless_it_is_trusted() -> None:
    _, archive, store = packed(program_of_native_code)
    (found,) = results(unpack(archive, store))
    assert [bool(x.skipped) for x in found.launches] == [True, False]
    assert "C++ code of the capture, in `native_cube`" in found.launches[0].skipped
    assert found.launches[1].pairs[0].verdict == "fail"
    assert found.whole is not None and "cannot be run" in found.whole.reason


def test_too_much_is_refused_before_it_is_written() -> None:
    with pytest.raises(NotPacked):
        pack(captured(program_of_loops), Memory(), limit=16)


def test_a_launch_stands_by_itself() -> None:
    _, archive, store = packed(program_of_functions)
    small = only(archive, 0, [0])
    assert [f.name for f in small.functions if f.is_kernel] == ["softened"]
    assert len(small.tapes[0].arrays) == 2 and small.tapes[0].backward is None
    small = with_length(with_dim(small, 0, (1,)), store, 0, 0, 1)
    small = with_contents(small, store, 0, np.ones_like)
    (found,) = results(unpack(small, store))
    assert found.launches[0].dim == (1,)
    worst = found.launches[0].pairs[0].worst
    assert worst is not None and np.isclose(worst.oracle, 1 / np.sqrt(1.1), rtol=1e-6)
    assert np.isclose(worst.ad, 1.5 / np.sqrt(1.1), rtol=1e-6)


@pytest.mark.parametrize("records", [[], [7], [-1]])
def test_what_is_not_there_cannot_be_kept(records: list[int]) -> None:
    _, archive, _ = packed(program_of_functions)
    with pytest.raises(ArchiveError):
        only(archive, 0, records)
    with pytest.raises(ArchiveError):
        only(archive, 1, [0])
