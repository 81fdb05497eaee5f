"""Scatters, whose threads ask for memory before they need it: where, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import outline
from engine.codegen.ahead import AHEAD
from engine.runtime.stages import kernel_stage
from tests.parts import cut

pytestmark = pytest.mark.whole  # it cuts launches itself
F = wp.array(dtype=float)
I = wp.array(dtype=int)
V = wp.array(dtype=wp.vec3)
THREADS = (1, 2, 7)


@wp.kernel
def meshed(x: V, faces: wp.array2d(dtype=int), w: F, y: V):
    i = wp.tid()
    a, b = faces[i, 0], faces[i, 1]
    wp.atomic_add(y, a, x[b] * w[i])


@wp.kernel
def flat(x: V, ends: I, w: F, y: V):
    """Indices side by side in one array; some say that there is nothing to do."""
    i = wp.tid()
    a, b = ends[2 * i], ends[2 * i + 1]
    if a == -1 or b == -1:
        return
    wp.atomic_add(y, a, x[b] * w[i])


@wp.kernel
def paired(x: V, ends: wp.array(dtype=wp.vec2i), w: F, y: V):
    i = wp.tid()
    ab = ends[i]
    wp.atomic_add(y, ab[0], x[ab[1]] * w[i])


@wp.kernel
def guarded(x: V, first: I, second: I, w: F, n: int, y: V):
    i = wp.tid()
    if i >= n:
        return
    wp.atomic_add(y, first[i], x[second[i]] * w[i])


@wp.func
def ends_of(ends: I, i: int):
    return ends[2 * i], ends[2 * i + 1]


@wp.func
def add_to(y: V, x: V, at: int, from_: int, w: float):
    i = from_
    wp.atomic_add(y, at, x[i] * w)


@wp.kernel
def called(x: V, ends: I, w: F, y: V):
    """By functions, whose variables have the names of other ones here."""
    i = wp.tid()
    a, b = ends_of(ends, i)
    add_to(y, x, a, b, w[i])


@wp.kernel
def turned(x: V, ends: I, w: F, y: V):
    """In turns of a loop, of which there are as many as are written."""
    i = wp.tid()
    for k in range(1, 3):
        add_to(y, x, ends[2 * i + k - 1], ends[2 * i + 2 - k], w[i] * 0.5)


@wp.kernel
def batched(x: wp.array2d(dtype=float), first: I, second: I, y: wp.array2d(dtype=float)):
    """Threads follow each other along the last axis of the grid."""
    k, i = wp.tid()
    wp.atomic_add(y, k, first[i], x[k, second[i]])


@wp.kernel
def near(x: V, first: I, second: I, y: V):
    """What is added to is beside what is read, if it is touched at all."""
    i = wp.tid()
    a, b = first[i], second[i]
    d = x[b] - x[a]
    if wp.dot(d, d) < 1.0:
        wp.atomic_add(y, a, d)


def text(kernel: Any) -> str:
    """A kernel as C++, in the form of a launch on a tape, and its adjoint."""
    return "\n".join(line.text for line in kernel_stage(kernel, "cpp").lines)


def asked(kernel: Any) -> set[str]:
    """Arrays of which a kernel or its adjoint asks for elements."""
    found = (line.split("(v_")[1] for line in text(kernel).split("\n") if "eng::ask(" in line)
    return {name.split(",")[0] for name in found}


@pytest.mark.parametrize("kernel", [meshed, flat, paired, guarded, called, turned, batched, near])
def test_scatters_ask_for_what_they_need(kernel: Any) -> None:
    assert asked(kernel) == {"x", "y", "adj_x", "adj_y"}
    # Adjoints have no memory of their own, and run upwards too.
    assert f"later = k{1 if kernel is batched else 0} + {AHEAD};" in text(kernel)
    assert f"- {AHEAD}" not in text(kernel)


def test_each_turn_of_a_loop_asks() -> None:
    _, asking, *_ = text(turned).split("do {")
    assert "v_k" in asking.partition("eng::ask(")[0]


def test_branches_ask_for_themselves() -> None:
    """Threads that leave, or do not take a branch, ask for nothing that only others need."""
    head, _, _ = text(flat).partition("eng::ask(")
    assert "return;" in head
    head, _, rest = text(near).partition("eng::ask(")
    assert "if (v_t" in head and "eng::ask(v_x" in f"eng::ask({rest.partition('}')[0]}"


@wp.kernel
def gathered(x: V, first: I, y: V):
    i = wp.tid()
    y[i] = x[first[i]]


@wp.kernel
def own(x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, i, x[i] * x[i + 1])


@wp.kernel
def changed(x: F, first: I, y: F):
    """The indices are written by the launch."""
    i = wp.tid()
    first[i] = first[i] + 1
    wp.atomic_add(y, first[i], x[i])


@wp.kernel
def over_all(x: F, first: I, y: F):
    """Turns of a loop add to one element."""
    i = wp.tid()
    for k in range(x.shape[0]):
        wp.atomic_add(y, first[i], x[k])


@wp.kernel
def by_row(x: F, first: I, y: F):
    """Threads of a row need the same."""
    i, j = wp.tid()
    wp.atomic_add(y, first[i], x[j])


@pytest.mark.parametrize("kernel", [own, changed, by_row, over_all])
def test_what_is_near_or_not_known_is_not_asked_for(kernel: Any) -> None:
    assert not asked(kernel)


def test_adjoints_of_gathers_ask() -> None:
    assert asked(gathered) == {"adj_x"}


@wp.kernel
def pointed(x: F, order: I, first: I, y: F):
    """An index of an index: the latter is known."""
    i = wp.tid()
    k = order[i]
    wp.atomic_add(y, first[k], x[k])


def test_indices_of_indices_are_asked_for_themselves() -> None:
    assert "y" not in asked(pointed)


def drawn(kind: str, count: int, size: int) -> tuple[Any, Any]:
    """Two indices for each thread."""
    rng = np.random.default_rng(7)
    first, second = (rng.integers(-size, size, count).astype(np.int32) for _ in range(2))
    if kind == "sorted":
        first.sort()
        second = np.minimum(first + 3, size - 1).astype(np.int32)
    elif kind == "equal":
        first[:], second[:] = size // 2, size // 3
    elif kind == "few":
        first, second = (np.where(a % 5 == 0, a, a % 2).astype(np.int32) for a in (first, second))
    return first, second


KINDS = ("random", "sorted", "equal", "few")


def launched(
    kernel: Any, count: Any, inputs: Callable[[Any], list[Any]], x: Any, y: Any, seed: Any,
    dtype: Any, threads: int,
) -> tuple[Any, Any]:  # fmt: skip
    """The result of a scatter, and the gradient of what it reads."""
    x_in, y_in = (wp.array(a, dtype=dtype, requires_grad=True) for a in (x, y))
    with cut(threads), wp.Tape() as tape:
        wp.launch(kernel, count, inputs(x_in), [y_in])
        tape.backward(grads={y_in: wp.array(seed, dtype=dtype)})
    return y_in.numpy(), x_in.grad.numpy()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, AHEAD, AHEAD + 1, 3000])
def test_vectors_are_added_where_indices_say(kind: str, count: int) -> None:
    """Of whole numbers, which any order adds up to the same."""
    rng = np.random.default_rng(5)
    size = max(count // 2, 1)
    first, second = drawn(kind, count, size)
    x, y, seed = (rng.integers(-9, 9, (size, 3)).astype(np.float32) for _ in range(3))
    w = rng.integers(-4, 4, count).astype(np.float32)
    ends = np.stack([first, second], 1)

    def right(some: Any) -> tuple[Any, Any]:
        forward, back = y.astype(np.float64), np.zeros_like(x, dtype=np.float64)
        f, s, u = first[some], second[some], w[some, None]
        np.add.at(forward, f, x[s] * u)
        np.add.at(back, s, seed[f] * u)
        return forward, back

    def ints(a: Any, dtype: Any = int) -> Any:
        return wp.array(a, dtype=dtype)

    u = wp.array(w, dtype=float)
    every = np.arange(count)
    some = every[~(ends == -1).any(axis=1)]
    cases = [
        (meshed, lambda x: [x, ints(ends), u], every),
        (flat, lambda x: [x, ints(ends.reshape(-1)), u], some),
        (paired, lambda x: [x, ints(ends, wp.vec2i), u], every),
        (called, lambda x: [x, ints(ends.reshape(-1)), u], every),
        (guarded, lambda x: [x, ints(first), ints(second), u, count // 3], every[: count // 3]),
    ]  # fmt: skip
    for kernel, inputs, threads_of in cases:
        forward, back = right(threads_of)
        for threads in THREADS:
            got = launched(kernel, count, inputs, x, y, seed, wp.vec3, threads)
            np.testing.assert_array_equal(got[0], forward)
            np.testing.assert_array_equal(got[1], back)


@wp.kernel
def both(x: V, ends: I, y: V):
    """Each of two turns adds to one end what the other one is."""
    i = wp.tid()
    for k in range(2):
        add_to(y, x, ends[2 * i + k], ends[2 * i + 1 - k], 2.0)


@pytest.mark.parametrize("kind", KINDS)
def test_turns_of_loops_add_where_indices_say(kind: str) -> None:
    rng = np.random.default_rng(4)
    first, second = drawn(kind, 900, 300)
    x, y, seed = (rng.integers(-9, 9, (300, 3)).astype(np.float32) for _ in range(3))
    forward, back = y.copy(), np.zeros_like(x)
    for a, b in ((first, second), (second, first)):
        np.add.at(forward, a, 2.0 * x[b])
        np.add.at(back, b, 2.0 * seed[a])
    ends = wp.array(np.stack([first, second], 1).reshape(-1), dtype=int)
    for threads in THREADS:
        got = launched(both, 900, lambda x: [x, ends], x, y, seed, wp.vec3, threads)
        np.testing.assert_array_equal(got[0], forward)
        np.testing.assert_array_equal(got[1], back)


@wp.kernel
def force(x: wp.array(dtype=Any), first: I, second: I, y: wp.array(dtype=Any)):
    """Springs between points, in any precision."""
    i = wp.tid()
    a, b = first[i], second[i]
    d = x[b] - x[a]
    f = d * wp.dot(d, d)
    wp.atomic_add(y, a, f)
    wp.atomic_sub(y, b, f)


def of_springs(x: Any, first: Any, second: Any, seed: Any) -> tuple[Any, Any]:
    """Their forces and gradient, in float64."""
    d = x[second] - x[first]
    s = (d * d).sum(axis=1, keepdims=True)
    forces, back = np.zeros_like(x), np.zeros_like(x)
    np.add.at(forces, first, d * s)
    np.subtract.at(forces, second, d * s)
    w = seed[first] - seed[second]
    by = w * s + 2.0 * d * (w * d).sum(axis=1, keepdims=True)
    np.add.at(back, second, by)
    np.subtract.at(back, first, by)
    return forces, back


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [3, 700])
@pytest.mark.parametrize("bits", [32, 64])
def test_any_number_of_threads_adds_up_the_same(bits: int, size: int, kind: str) -> None:
    vector = wp.vec3f if bits == 32 else wp.vec3d
    rng = np.random.default_rng(9)
    x, seed = (rng.uniform(-1.0, 1.0, (size, 3)).astype(f"f{bits // 8}") for _ in range(2))
    first, second = drawn(kind, 4000, size)
    i, j = wp.array(first, dtype=int), wp.array(second, dtype=int)
    found = [
        launched(force, 4000, lambda x: [x, i, j], x, np.zeros_like(x), seed, vector, threads)
        for threads in THREADS
    ]
    right = of_springs(x.astype(np.float64), first, second, seed.astype(np.float64))
    for k in (0, 1):
        for other in found[1:]:
            np.testing.assert_array_equal(found[0][k], other[k])
        most = 4000 * np.finfo(x.dtype).eps
        np.testing.assert_allclose(found[0][k], right[k], most, most * max(abs(right[k]).max(), 1))


@pytest.mark.parametrize("threads", THREADS)
def test_what_no_cache_holds(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches as they are, of more points than caches hold; parts have copies of all of them."""
    monkeypatch.setattr(wp.config, "num_threads", threads)
    size = 1_500_000
    first, second = drawn("random", size, size)
    rng = np.random.default_rng(2)
    x, seed = (rng.integers(-4, 5, (size, 3)).astype(np.float32) for _ in range(2))
    x_in = wp.array(x, dtype=wp.vec3, requires_grad=True)
    y = wp.zeros(size, dtype=wp.vec3, requires_grad=True)
    with wp.Tape() as tape:
        ends = [wp.array(a, dtype=int) for a in (first, second)]
        wp.launch(force, size, [x_in, *ends], [y])
    tape.backward(grads={y: wp.array(seed, dtype=wp.vec3)})
    forces, back = of_springs(x.astype(np.float64), first, second, seed.astype(np.float64))
    np.testing.assert_array_equal(y.numpy(), forces)
    np.testing.assert_array_equal(x_in.grad.numpy(), back)


def test_pieces_of_large_kernels_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "LARGE", 18)
    monkeypatch.setattr(outline, "PIECE", 4)

    @wp.kernel(module="unique")
    def cut_up(x: V, faces: wp.array2d(dtype=int), w: F, y: V):
        i = wp.tid()
        a, b = faces[i, 0], faces[i, 1]
        wp.atomic_add(y, a, x[b] * w[i] + x[a] * 2.0)
        wp.atomic_add(y, b, x[a] * w[i] - x[b] * 2.0)

    assert "eng::ask(F.v_" in text(cut_up)
    rng = np.random.default_rng(6)
    first, second = drawn("few", 400, 90)
    x, y, seed = (rng.integers(-9, 9, (90, 3)).astype(np.float32) for _ in range(3))
    w = rng.integers(-4, 4, (400, 1)).astype(np.float32)
    forward, back = y.copy(), np.zeros_like(x)
    for a, b, k in ((first, second, 2.0), (second, first, -2.0)):
        np.add.at(forward, a, x[b] * w + x[a] * k)
        np.add.at(back, b, seed[a] * w)
        np.add.at(back, a, seed[a] * k)
    faces = wp.array(np.stack([first, second], 1), dtype=int)
    u = wp.array(w[:, 0].copy(), dtype=float)
    for threads in THREADS:
        got = launched(cut_up, 400, lambda x: [x, faces, u], x, y, seed, wp.vec3, threads)
        np.testing.assert_array_equal(got[0], forward)
        np.testing.assert_array_equal(got[1], back)


def test_rows_of_a_grid() -> None:
    rng = np.random.default_rng(3)
    first, second = drawn("random", 500, 90)
    x, y, seed = (rng.integers(-9, 9, (6, 90)).astype(np.float32) for _ in range(3))
    forward, back = y.copy(), np.zeros_like(x)
    for k in range(6):
        np.add.at(forward[k], first, x[k, second])
        np.add.at(back[k], second, seed[k, first])
    i, j = wp.array(first, dtype=int), wp.array(second, dtype=int)
    for threads in THREADS:
        got = launched(batched, (6, 500), lambda x: [x, i, j], x, y, seed, float, threads)
        np.testing.assert_array_equal(got[0], forward)
        np.testing.assert_array_equal(got[1], back)
