"""Watched launches: accesses outside of arrays are told, and damage nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import Fault, LaunchError

N = 8


@wp.struct
class Body:
    mass: float
    at: wp.vec3


@wp.struct
class Table:
    values: wp.array(dtype=float)
    n: int


@wp.func
def doubled(a: wp.array(dtype=float), k: int):
    return a[k * 2]


@wp.kernel
def shifted(x: wp.array(dtype=float), by: int, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i + by] * 2.0


@wp.kernel
def scattered(x: wp.array(dtype=float), by: int, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i + by] = x[i]


@wp.kernel
def counted(index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, index[i], 1.0)


@wp.kernel
def next_row(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i, j = wp.tid()
    wp.atomic_add(y, i, x[i, j])


@wp.kernel
def called(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = doubled(x, i)


@wp.kernel
def components(x: wp.array(dtype=wp.mat33), k: int, y: wp.array(dtype=float)):
    i = wp.tid()
    m = x[i]
    m[k, 0] = 5.0
    row = m[k]
    x[i][0, k] = 2.0
    y[i] = m[0, k] + row[0]


@wp.kernel
def part(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    inner = x[0][1:3]
    y[i] = inner[i]


@wp.kernel
def local_row(k: int, y: wp.array(dtype=float)):
    i = wp.tid()
    a = wp.zeros(shape=(2, 3), dtype=float)
    a[0, k] = 1.0
    y[i] = a[1, 0]


@wp.kernel
def structs(bodies: wp.array(dtype=Body), t: Table, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = bodies[i + 1].mass + bodies[i].at[t.n]
    t.values[i + 2] = 1.0


@wp.kernel
def optional(x: wp.array(dtype=float), use: int, y: wp.array(dtype=float)):
    i = wp.tid()
    if use > 0:
        y[i] = x[i]


@wp.kernel
def indexed(x: wp.indexedarray(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel
def guarded(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    left = x[wp.max(i - 1, 0)]
    right = x[wp.min(i + 1, x.shape[0] - 1)]
    y[i] = right - left + x[-1] + x[i - x.shape[0]]


@wp.kernel
def total(x: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, index[i], wp.sin(x[index[i] * 3]))


@wp.func_native("return x[i + 1000000000];")
def far(x: wp.array(dtype=float), i: int) -> float: ...


@wp.kernel
def native(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = far(x, i)


Watched = Callable[..., list[Fault]]


@pytest.fixture
def watched() -> Iterator[Watched]:
    """Launches a kernel; gives what is told of it."""
    faults: list[Fault] = []

    def launch(kernel: Any, *args: Any, dim: Any = N) -> list[Fault]:
        faults.clear()
        wp.launch(kernel, dim=dim, inputs=list(args))
        return list(faults)

    with wp.watching(faults.append):
        yield launch


def floats(n: int = N, **more: Any) -> Any:
    return wp.array(np.arange(1.0, n + 1.0), dtype=float, **more)


def told(faults: list[Fault]) -> list[tuple[Any, ...]]:
    return [(f.access, f.name, f.thread, f.index, f.shape, f.count) for f in faults]


def test_a_load_gives_zero(watched: Watched) -> None:
    y = wp.full(N, 7.0, dtype=float)
    (fault,) = watched(shifted, floats(), 1, y)
    assert told([fault]) == [("load", "x", (7,), (8,), (8,), 1)]
    assert (fault.kind, fault.kernel, fault.form) == ("outside", "shifted", "forward")
    assert fault.span.file == __file__ and fault.span.col == 12
    assert fault.site is not None and fault.site.file == __file__
    assert y.numpy().tolist() == [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 0.0]


def test_indices_from_the_end(watched: Watched) -> None:
    """-1 is the last element; what is below -n is outside, under its own number."""
    y = wp.zeros(N, dtype=float)
    assert watched(shifted, floats(), -N, y) == []
    assert y.numpy()[0] == 2.0
    assert told(watched(shifted, floats(), -N - 2, y)) == [("load", "x", (0,), (-10,), (8,), 2)]


def test_a_store_far_away_does_nothing(watched: Watched) -> None:
    x, y = floats(), wp.zeros(N, dtype=float)
    for by in (1 << 29, -(1 << 29)):
        assert told(watched(scattered, x, by, y)) == [("store", "y", (0,), (by,), (8,), 8)]
    assert not y.numpy().any()


def test_an_atomic(watched: Watched) -> None:
    y = wp.zeros(4, dtype=float)
    index = wp.array([0, 1, 4, -4, -5, 4], dtype=int)
    assert told(watched(counted, index, y, dim=6)) == [("atomic", "y", (2,), (4,), (4,), 3)]
    assert y.numpy().tolist() == [2.0, 1.0, 0.0, 0.0]


def test_the_next_row_and_a_neighbour_of_a_slice(watched: Watched) -> None:
    """The memory is there; it is outside all the same."""
    y = wp.zeros(2, dtype=float)
    x = wp.ones((2, 3), dtype=float)
    assert told(watched(next_row, x, y, dim=(2, 4))) == [
        ("load", "x", (0, 3), (0, 3), (2, 3), 2)
    ]  # fmt: skip
    assert y.numpy().tolist() == [3.0, 3.0]
    whole = floats(2 * N)
    assert told(watched(shifted, whole[:N], 1, wp.zeros(N, dtype=float))) == [
        ("load", "x", (7,), (8,), (8,), 1)
    ]  # fmt: skip


def test_in_a_function(watched: Watched) -> None:
    (fault,) = watched(called, floats(), wp.zeros(N, dtype=float))
    assert told([fault]) == [("load", "a", (4,), (8,), (8,), 4)]
    assert fault.kernel == "called"


def test_components(watched: Watched) -> None:
    x, y = wp.zeros(1, dtype=wp.mat33), wp.zeros(1, dtype=float)
    assert watched(components, x, -3, y, dim=1) == []
    x.zero_()
    assert told(watched(components, x, 3, y, dim=1)) == [
        ("component", "m", (0,), (3, 0), (3, 3), 1),
        ("component", "m", (0,), (3,), (3,), 1),
        ("component", "x", (0,), (0, 3), (3, 3), 1),
        ("component", "m", (0,), (0, 3), (3, 3), 1),
    ]
    assert not x.numpy().any() and not y.numpy().any()


def test_parts_of_arrays(watched: Watched) -> None:
    y = wp.zeros(4, dtype=float)
    x = wp.ones((2, 6), dtype=float)
    assert watched(part, x, y, dim=2) == []
    assert told(watched(part, x, y, dim=4)) == [("view", "x", (2,), (2,), (2,), 2)]
    assert y.numpy().tolist() == [1.0, 1.0, 0.0, 0.0]


def test_rows_of_local_arrays(watched: Watched) -> None:
    y = wp.full(1, 5.0, dtype=float)
    assert told(watched(local_row, 3, y, dim=1)) == [("view", "a", (0,), (3,), (3,), 1)]
    assert y.numpy()[0] == 0.0
    assert watched(local_row, -3, y, dim=1) == []


def test_structs(watched: Watched) -> None:
    t = Table()
    t.values, t.n = wp.zeros(N, dtype=float), 3
    found = watched(structs, wp.zeros(N, dtype=Body), t, wp.zeros(N, dtype=float))
    assert told(found) == [
        ("load", "bodies.mass", (7,), (8,), (8,), 1),
        ("component", "bodies.at", (0,), (3,), (3,), 8),
        ("store", "t.values", (6,), (8,), (8,), 2),
    ]


def test_no_array_and_an_empty_one(watched: Watched) -> None:
    y = wp.ones(2, dtype=float)
    for x in (None, wp.zeros(0, dtype=float)):
        assert watched(optional, x, 0, y, dim=2) == []
        (fault,) = watched(optional, x, 1, y, dim=2)
        assert told([fault]) == [("load", "x", (0,), (0,), (0,), 2)]
        assert "`x` is None or empty" in fault.words


def test_indexed_arrays(watched: Watched) -> None:
    index = wp.array([0, 1, 2], dtype=int)
    x, y = wp.indexedarray(floats(), [index]), wp.zeros(4, dtype=float)
    assert watched(indexed, x, y, dim=3) == []
    assert told(watched(indexed, x, y, dim=4)) == [("load", "x", (3,), (3,), (3,), 1)]
    index.assign([0, 8, -1])
    assert told(watched(indexed, x, y, dim=3)) == [("load", "x", (1,), (8,), (8,), 2)]


def test_right_programs_are_left_alone(watched: Watched) -> None:
    y = wp.zeros(N, dtype=float)
    assert watched(guarded, floats(), y) == []
    assert watched(shifted, floats(), 0, y) == []
    assert watched(shifted, floats(), 5, y, dim=0) == []


def test_native_text_is_kept_inside(watched: Watched) -> None:
    y = wp.zeros(2, dtype=float)
    assert watched(native, floats(), y, dim=2) == []
    assert np.isnan(y.numpy()).all()


def test_adjoints_and_tangents(watched: Watched) -> None:
    """The gradient is that of what ran, and its adjoint keeps inside of its arrays."""
    x, y = floats(requires_grad=True), wp.zeros(N, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        assert len(watched(shifted, x, 1 << 28, y)) == 1
        assert len(watched(scattered, x, 1, y)) == 1
    tape.backward(grads={y: wp.ones_like(y)})
    assert x.grad.numpy().tolist() == [1.0] * 7 + [0.0]
    tangents = wp.autograd.jvp(tape, tangents={x: wp.ones_like(x)})
    assert tangents[y].numpy().tolist() == [0.0] + [1.0] * 7


def test_an_index_that_changes_before_the_backward_pass() -> None:
    """The adjoint reads it as it is by then: no memory is damaged, and it is told."""
    faults: list[Fault] = []
    index = wp.array([0, 1, 2, 3], dtype=int)
    x, y = floats(12, requires_grad=True), wp.zeros(4, dtype=float, requires_grad=True)
    with wp.watching(faults.append):
        with wp.Tape() as tape:
            wp.launch(total, dim=4, inputs=[x, index, y])
        assert faults == []
        index.assign([1 << 27] * 4)
        tape.backward(grads={y: wp.ones_like(y)})
    assert faults and {f.form for f in faults} == {"adjoint"}
    assert not x.grad.numpy().any()


def test_the_same_bits() -> None:
    """A watched launch gives what the launch gives, in many parts, and so does its adjoint."""
    n = 30_000
    rng = np.random.default_rng(5)
    index = wp.array(rng.integers(0, n // 3, size=n), dtype=int)

    def run() -> tuple[Any, Any]:
        x = wp.array(np.linspace(0.0, 9.0, n), dtype=float, requires_grad=True)
        y = wp.zeros(n, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(total, dim=n, inputs=[x, index, y])
        tape.backward(grads={y: wp.array(np.linspace(1.0, 2.0, n), dtype=float)})
        return y.numpy().copy(), x.grad.numpy().copy()

    plain = run()
    faults: list[Fault] = []
    with wp.watching(faults.append, races=True):
        seen = run()
    assert faults == []
    for a, b in zip(plain, seen, strict=True):
        assert a.any() and a.tobytes() == b.tobytes()


def test_nobody_watches_afterwards(watched: Watched) -> None:
    with wp.watching():  # who is told nothing is safe all the same
        assert len(watched(shifted, floats(), 1, wp.zeros(N, dtype=float))) == 1
    inner: list[Fault] = []
    with pytest.raises(ZeroDivisionError), wp.watching(inner.append):
        raise ZeroDivisionError
    watched(shifted, floats(), 1, wp.zeros(N, dtype=float))
    assert inner == []


def test_debug_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "mode", "debug")

    @wp.kernel
    def debugged(x: wp.array(dtype=float), k: int, y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i * k]

    x, y = floats(requires_grad=True), wp.zeros(N, dtype=float, requires_grad=True)
    wp.launch(debugged, dim=N, inputs=[x, 1, y])
    assert y.numpy().tolist() == x.numpy().tolist()
    with wp.Tape() as tape, pytest.raises(LaunchError) as caught:
        wp.launch(debugged, dim=N, inputs=[x, 2, y])
    (problem,) = caught.value.diagnostics
    assert problem.code == "E211" and problem.span is not None and problem.span.file == __file__
    assert "'debugged' reads `x[8]` outside of its shape (8,)" in problem.message.replace(
        problem.message.split("'")[1], "debugged"
    )
    assert problem.notes[:2] == ("in thread 4", "3 more such accesses in the same launch")
    assert len(tape.records) == 1, "the launch ran to its end"
