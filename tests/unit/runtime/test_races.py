"""Races between the threads of one launch: both threads, both places, element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import Fault
from engine.runtime import races

N = 8


@wp.kernel
def last_wins(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = x[i]


@wp.kernel
def summed(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = y[0] + x[i]


@wp.kernel
def in_place(x: wp.array(dtype=float)):
    i = wp.tid()
    if i + 1 < x.shape[0]:
        x[i] = x[i + 1] * 0.5


@wp.kernel
def scattered(index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[index[i]] = float(i + 1)


@wp.kernel
def normalised(x: wp.array(dtype=float), total: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])
    y[i] = x[i] / total[0]


@wp.kernel
def least(x: wp.array(dtype=float), best: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] < best[0]:
        wp.atomic_min(best, 0, x[i])


@wp.kernel
def flagged(x: wp.array(dtype=float), flag: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 2.0:
        flag[0] = 1.0


@wp.kernel
def numbered(count: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    k = wp.atomic_add(count, 0, 1)
    y[k] = float(i)


@wp.kernel
def halves(v: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    v[i / 2][i % 2] = float(i)


@wp.kernel
def two_arrays(a: wp.array(dtype=float), b: wp.array(dtype=float), by: int):
    i = wp.tid()
    b[i] = a[i + by] + 1.0


@wp.kernel
def accumulated(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] += x[i]


Look = Callable[..., list[Fault]]


@pytest.fixture
def look() -> Iterator[Look]:
    """Launches a kernel; gives the races that are told."""
    faults: list[Fault] = []

    def launch(kernel: Any, *args: Any, dim: Any = N) -> list[Fault]:
        faults.clear()
        wp.launch(kernel, dim=dim, inputs=list(args))
        return [f for f in faults if f.kind != "outside"]

    for kernel in (scattered, in_place, last_wins):
        kernel.plan.variants.derived.clear()  # what was looked at by other tests
    with wp.watching(faults.append, races=True):
        yield launch


def floats(n: int = N) -> Any:
    return wp.array(np.arange(1.0, n + 1.0), dtype=float)


def told(f: Fault) -> tuple[Any, ...]:
    return f.kind, f.name, f.index, (f.other, f.other_access), (f.thread, f.access)


@pytest.mark.host("the order of threads")
def test_two_stores(look: Look) -> None:
    y = wp.zeros(2, dtype=float)
    (found,) = look(last_wins, floats(), y)
    assert told(found) == ("race", "y", (0,), ((0,), "store"), ((1,), "store"))
    assert found.span == found.other_span and found.span.file == __file__
    assert found.count == N - 1
    assert y.numpy()[0] == N, "the launch itself is as it would have been"


def test_a_store_and_a_read(look: Look) -> None:
    y = wp.zeros(1, dtype=float)
    read, write = look(summed, floats(), y)
    assert told(read) == ("race", "y", (0,), ((0,), "store"), ((1,), "load"))
    assert told(write)[3:] == (((0,), "store"), ((1,), "store"))
    assert y.numpy()[0] == 36.0


def test_what_another_thread_reads_before(look: Look) -> None:
    (found,) = look(in_place, floats())
    assert told(found) == ("race", "x", (1,), ((0,), "load"), ((1,), "store"))
    assert found.other_span is not None and found.other_span.line == found.span.line


def test_indices_decide(look: Look) -> None:
    """The launch with the bad indices is looked at, whichever it is; element by element."""
    y = wp.zeros(N, dtype=float)
    for shift in range(3):
        assert look(scattered, wp.array(np.roll(np.arange(N), shift), dtype=int), y) == []
    index = np.arange(N)
    index[6] = 2
    (found,) = look(scattered, wp.array(index, dtype=int), y)
    assert told(found) == ("race", "y", (2,), ((2,), "store"), ((6,), "store"))


def test_shared_memory_of_two_arguments(look: Look) -> None:
    x = floats(2 * N)
    assert look(two_arrays, x[:N], x[N:], 0) == []
    assert look(two_arrays, x[:N], x[:N], 0) == [], "each thread has its own element"
    (found,) = look(two_arrays, x[: N + 1], x[:N], 1)
    assert told(found) == ("race", "b", (1,), ((0,), "load"), ((1,), "store"))


def test_what_is_proven_of_arrays_apart_is_not_believed_of_others(look: Look) -> None:
    """The same extents, each time at other addresses; then one array for both parameters."""
    for _ in range(3):
        assert look(two_arrays, floats(N + 1), floats(N), 1) == []
    x = floats(N + 1)
    (found,) = look(two_arrays, x, x[:N], 1)
    assert told(found)[:2] == ("race", "b")
    assert look(two_arrays, x, floats(N), 1) == []


def test_a_sum_that_is_read(look: Look) -> None:
    found = look(normalised, floats(), wp.zeros(1, dtype=float), wp.zeros(N, dtype=float))
    assert {f.kind for f in found} == {"race"} and {f.name for f in found} == {"total"}
    assert {f.access for f in found} == {"load", "atomic"}


def test_right_programs_are_left_alone(look: Look) -> None:
    x = floats()
    assert look(flagged, x, wp.zeros(1, dtype=float)) == []
    assert look(numbered, wp.zeros(1, dtype=int), wp.zeros(N, dtype=float)) == []
    assert look(halves, wp.zeros(N, dtype=wp.vec2), dim=2 * N) == []
    assert look(accumulated, x, wp.zeros(1, dtype=float)) == []
    assert look(last_wins, x, wp.zeros(1, dtype=float), dim=1) == []
    assert look(last_wins, x, wp.zeros(1, dtype=float), dim=0) == []


def test_what_is_less_than_a_race(look: Look) -> None:
    found = look(least, wp.array(np.arange(N, 0, -1.0), dtype=float), wp.full(1, 99.0))
    assert {told(f)[:3] for f in found} == {("mixed", "best", (0,))}
    (same,) = look(last_wins, wp.ones(N, dtype=float), wp.zeros(1, dtype=float))
    assert told(same)[:3] == ("same", "y", (0,))


@pytest.mark.host("the order of threads")
def test_large_launches(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 200_000
    index = np.arange(n)
    index[-1] = 7
    y = wp.zeros(n, dtype=float)
    (found,) = look(scattered, wp.array(index, dtype=int), y, dim=n)
    assert told(found) == ("race", "y", (7,), ((7,), "store"), ((n - 1,), "store"))
    monkeypatch.setattr(races, "SHADOW_BYTES", 1 << 20)
    index[-1] = 8
    (found,) = look(scattered, wp.array(index, dtype=int), y, dim=n)
    assert found.kind == "unwatched" and y.numpy()[8] == n


def test_strides(look: Look) -> None:
    """Elements that lie among each other are told apart."""
    whole = wp.zeros(2 * N, dtype=float)
    (found,) = look(last_wins, floats(), whole[::2])
    assert found.index == (0,)
    index = wp.array([0, 1, 2, 3, 4, 5, 6, 6], dtype=int)
    (found,) = look(scattered, index, whole[1::2])
    assert told(found) == ("race", "y", (6,), ((6,), "store"), ((7,), "store"))


@pytest.mark.host("the order of threads")
def test_a_gradient_that_is_refused_goes_on() -> None:
    """E407 is told, and the gradient is that of the order in which the threads ran."""
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    faults: list[Fault] = []
    with wp.watching(faults.append), wp.Tape() as tape:
        wp.launch(last_wins, dim=3, inputs=[x, y])
        tape.backward(y)
    assert [(f.kind, f.name, f.other, f.thread) for f in faults] == [("race", "y", (0,), (2,))]
    assert x.grad.numpy().tolist() == [0.0, 0.0, 1.0]
