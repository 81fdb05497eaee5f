"""Arrays of one block of memory, known by different ways: what one writes, another had read."""

import ctypes
import gc
from multiprocessing import shared_memory

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.runtime import adopted, neighbours, storage

pytestmark = pytest.mark.host("memory of the host is handed in")

N = 6


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch):
    """Memory is known by what the test itself does: arrays of other tests that have outlived the
    memory that they show (those of addresses do not keep it) are not met where it is used again.
    """
    monkeypatch.setattr(adopted, "_external", {})
    known = neighbours.Neighbours()
    for module in (adopted, storage):
        monkeypatch.setattr(module, "neighbours", known)


@wp.kernel
def square(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def double(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


def shown(a, **options):
    return wp.array(a, dtype=wp.float64, copy=False, requires_grad=True, **options)


def at(address, n):
    return wp.array(ptr=address, dtype=wp.float64, shape=n, requires_grad=True)


class Described:
    """Another library's array: it says where it is, and no more."""

    def __init__(self, a):
        self.kept = a
        self.__array_interface__ = a.__array_interface__


def numbers():
    return np.arange(1.0, N + 1)


def own():
    return wp.array(numbers(), dtype=wp.float64, requires_grad=True)


# Each gives two arrays of one block, and what keeps it alive.
def engine_and_address():
    a = own()
    return a, at(a.ptr, N), a


def engine_and_address_within():
    a = own()
    return a, at(a.ptr + 16, 3), a


def engine_and_numpy():
    a = own()
    return a, shown(np.asarray(a)), a


def engine_and_numpy_within():
    a = own()
    return a[:4], shown(np.asarray(a)[1:]), a


def engine_and_memoryview():
    a = own()
    return a, shown(np.frombuffer(memoryview(a.numpy())[2:])), a


def engine_and_dlpack():
    a = own()
    return a[:4], shown(np.from_dlpack(a)[1:]), a


def engine_and_ctypes():
    a = own()
    c = (ctypes.c_double * N).from_address(a.ptr)
    return a, shown(np.ctypeslib.as_array(c)), a


def addresses_alike():
    a = numbers()
    return at(a.ctypes.data, N), at(a.ctypes.data, N), a


def addresses_that_begin_alike():
    a = numbers()
    return at(a.ctypes.data, 4), at(a.ctypes.data, N), a


def addresses_that_overlap():
    a = numbers()
    return at(a.ctypes.data, 4), at(a.ctypes.data + 16, 4), a


def address_around():
    a = numbers()
    return at(a.ctypes.data + 16, 2), at(a.ctypes.data, N), a


def buffers():
    a = numbers()
    data = memoryview(a)
    return shown(np.frombuffer(data, count=4)), shown(np.frombuffer(data, offset=8)), a


def strided():
    a = numbers()
    odd = np.lib.stride_tricks.as_strided(a[1:], (4,), (8,))
    return shown(a[:4]), shown(odd), a


def described():
    a = numbers()
    return shown(a[:4]), shown(Described(a[1:5])), a


def dlpack():
    a = numbers()
    return shown(np.from_dlpack(a[:4])), wp.from_dlpack(a[1:5]), a


def between_processes():
    a = shared_memory.SharedMemory(create=True, size=8 * N)
    np.ndarray(N, buffer=a.buf)[:] = numbers()
    first = shown(np.ndarray(4, buffer=a.buf))
    a.unlink()
    return first, shown(np.ndarray(N, buffer=a.buf)), a


WAYS = (
    engine_and_address, engine_and_address_within, engine_and_numpy, engine_and_numpy_within,
    engine_and_memoryview, engine_and_dlpack, engine_and_ctypes, addresses_alike,
    addresses_that_begin_alike, addresses_that_overlap, address_around, buffers, strided,
    described, dlpack, between_processes,
)  # fmt: skip


def by_launch(a):
    wp.launch(double, dim=a.shape[0], inputs=[a])


def by_copy(a):
    wp.copy(a, wp.full(a.shape[0], 7.0, dtype=wp.float64))


WRITES = (by_launch, by_copy, lambda a: a.fill_(9.0), lambda a: a.zero_(),
          lambda a: a.assign(np.full(a.shape[0], 5.0)))  # fmt: skip


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("write", WRITES, ids=("launch", "copy", "fill", "zero", "assign"))
@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
def test_what_was_read_is_restored(way, write, flip):
    first, second, kept = way()
    read, other = (second, first) if flip else (first, second)
    if not read.requires_grad:
        read.requires_grad = True
    before = read.numpy().copy()
    out = wp.zeros(read.shape[0], dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=read.shape[0], inputs=[read, out])
        write(other)
    assert not np.array_equal(read.numpy(), before)
    tape.backward(grads={out: wp.ones_like(out)})
    np.testing.assert_array_equal(read.grad.numpy(), 2 * before)
    del first, second, read, other, kept


@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
def test_it_is_refused_where_that_is_asked_for(way, monkeypatch):
    monkeypatch.setattr(config, "overwrites", "error")
    read, other, kept = way()
    out = wp.zeros(read.shape[0], dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=read.shape[0], inputs=[read, out])
        by_launch(other)
    with pytest.raises(wp.TapeError, match="E408"):
        tape.backward(grads={out: wp.ones_like(out)})
    del kept


def test_pieces_that_do_not_meet_stay_apart():
    a = numbers()
    low, high = at(a.ctypes.data, 3), at(a.ctypes.data + 24, 3)
    assert low.storage is not high.storage


def test_read_only_memory_is_not_written_through_what_may_be():
    a = numbers()
    fixed = a.view()
    fixed.flags.writeable = False
    free, bound = shown(a), shown(fixed)
    by_launch(free)
    with pytest.raises(wp.LaunchError, match="E206"):
        by_launch(bound)
    np.testing.assert_array_equal(a, 2 * numbers())


def test_what_a_block_became_keeps_its_parts_alive():
    a = np.arange(1.0, 101.0)
    data = memoryview(a)
    part, rest = shown(np.frombuffer(data[:50])), shown(np.frombuffer(data[25:]))
    assert part.storage is rest.storage
    del a, data, rest
    gc.collect()
    np.testing.assert_array_equal(part.numpy(), np.arange(1.0, 51.0))


def test_nothing_is_kept_of_memory_that_is_gone(monkeypatch):
    monkeypatch.setattr(neighbours, "_LEAST", 16)
    known = neighbours.Neighbours()
    for module in (adopted, storage):
        monkeypatch.setattr(module, "neighbours", known)
    for _ in range(500):
        wp.zeros(3).numpy()
    assert len(known._new) <= 16
    for n in range(1, 500):
        a = np.arange(float(n))
        assert at(a.ctypes.data, n).storage.nbytes == 8 * n
    assert known._count == sum(map(len, known._by.values())) <= 64


def test_windows_of_a_block_do_not_grow_it():
    a = np.arange(100.0)
    whole = at(a.ctypes.data, 100)
    owner = whole.storage.owner
    for k in range(50):
        assert shown(np.frombuffer(memoryview(a), offset=8 * k, count=5)).storage is whole.storage
    first = whole.storage.owner
    shown(np.frombuffer(memoryview(a), offset=16, count=5))
    assert owner is None and whole.storage.owner is first


def test_blocks_are_found_beside_a_brute_force_search():
    rng = np.random.default_rng(3)

    class Block:
        def __init__(self, lo, nbytes):
            self.lo, self.nbytes = lo, nbytes

    known = neighbours.Neighbours()
    blocks = []
    for _ in range(400):
        blocks.append(Block(int(rng.integers(1, 5000)), int(2 ** rng.uniform(0, 11))))
        known.add(blocks[-1])
        if rng.random() < 0.3:
            del blocks[int(rng.integers(len(blocks)))]
        if rng.random() < 0.1:  # it was widened
            b = blocks[int(rng.integers(len(blocks)))]
            b.lo, b.nbytes = b.lo - 1, b.nbytes * 2 + 1
            known.add(b)
            del b
        lo = int(rng.integers(0, 6000))
        hi = lo + int(2 ** rng.uniform(0, 10))
        found = known.meeting(lo, hi)
        wanted = {id(b) for b in blocks if b.lo < hi and lo < b.lo + b.nbytes}
        assert {id(b) for b in found} == wanted and len(found) == len(wanted)
