"""Gradients of minima and maxima on a GPU: whose they are is decided as on the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cuda import winners
from engine.compile.pipeline import Variants
from engine.frontend import lower_kernel
from tests.backend.cuda.emulated import PLACES, place
from tests.backend.cuda.host import Memory, Program
from tests.unit.compile import test_winners as cpu
from tests.unit.compile.test_winners import F, gradients, values


@pytest.fixture(params=PLACES)
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    with place(request.param) as found:
        yield found


def on(device: Any, run: Any, *args: Any) -> Any:
    with wp.ScopedDevice(device):
        return run(*args)


@pytest.mark.parametrize("start", [-5.0, 0.1, 5.0, np.nan])
@pytest.mark.parametrize("kernel", cpu.KERNELS, ids=lambda k: k.key)
def test_the_gradient_is_that_of_one_thread_after_another(
    gpu: Any, kernel: Any, start: float
) -> None:
    """The fake of CuPy runs threads upwards and downwards by turns."""
    for seed, steps in ((1, 1024), (2, 8), (3, 1)):
        x = values(seed, steps)
        expected = on("cpu", gradients, kernel, x, start, seed)
        for _ in range(2):
            assert on(gpu, gradients, kernel, x, start, seed) == expected


def test_winners_that_are_not_told_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = values(2, 8)
    expected = on("cpu", gradients, cpu.bins, x, 0.1, 2)
    with place("emulated") as device:
        monkeypatch.setattr(winners.Claimed, "crown", lambda self: None)
        assert on(device, gradients, cpu.bins, x, 0.1, 2) != expected
        monkeypatch.setattr(winners.Claimed, "__init__", lambda self, *args: None)
        monkeypatch.setattr(winners.Claimed, "clear", lambda self: None)
        assert on(device, gradients, cpu.bins, x, 0.1, 2) != expected


# ---- types, layouts, loops


@wp.kernel
def of_any(x: wp.array2d(dtype=Any), at: wp.array(dtype=int), low: wp.array2d(dtype=Any)):
    i, j = wp.tid()
    wp.atomic_min(low, at[i], j % 2, x[i, j])
    wp.atomic_min(low, 0, j % 2, x[i, j] * x.dtype(0.5))


@wp.kernel
def of_matrices(x: wp.array(dtype=wp.mat22), y: wp.array(dtype=wp.mat22)):
    i = wp.tid()
    wp.atomic_max(y, i % 2, 2.0 * x[i])


@wp.kernel
def long(x: F, count: wp.array(dtype=int), y: F):
    i = wp.tid()
    v = x[i]
    for k in range(count[i]):
        v = wp.round(v * 8.0) / 8.0 * 0.75 + 0.25 * x[(i + k) % 7]
        wp.atomic_max(y, k % 2, v)


def of_type(kernel: Any, dtype: Any, run: Any) -> list[bytes]:
    """Values and gradients of a launch with arrays of some layout."""
    rng = np.random.default_rng(5)
    args = run(rng, dtype)
    arrays = [a for a in args[1:] if a.requires_grad]
    with wp.Tape() as tape:
        wp.launch(kernel, args[0], args[1:])
    seeds = {a: wp.array(rng.integers(1, 9, a.numpy().shape), dtype=a.dtype) for a in arrays[1:]}
    tape.backward(grads=seeds)
    return [b.numpy().tobytes() for a in arrays for b in (a, a.grad)]


def eighths(rng: Any, *shape: int) -> Any:
    return np.round(rng.uniform(-1, 1, shape) * 8) / 8


@pytest.mark.parametrize("dtype", [wp.float16, wp.bfloat16, wp.float32, wp.float64])
@pytest.mark.parametrize("step", [1, -2])
def test_types_and_strides(gpu: Any, dtype: Any, step: int) -> None:
    def made(rng: Any, dtype: Any) -> list[Any]:
        x = wp.array(eighths(rng, 90, 4), dtype=dtype, requires_grad=True)
        low = wp.array(eighths(rng, 10, 5), dtype=dtype, requires_grad=True)
        at = wp.array(rng.integers(0, 5, 45), dtype=int)
        return [(45, 4), x[::step] if step < 0 else x[:45], at, low[::step, 1:]]

    expected = on("cpu", of_type, of_any, dtype, made)
    assert on(gpu, of_type, of_any, dtype, made) == expected


def test_matrices(gpu: Any) -> None:
    def made(rng: Any, dtype: Any) -> list[Any]:
        x, y = (wp.array(eighths(rng, n, 2, 2), dtype=dtype, requires_grad=True) for n in (99, 2))
        return [99, x, y]

    expected = on("cpu", of_type, of_matrices, wp.mat22, made)
    assert on(gpu, of_type, of_matrices, wp.mat22, made) == expected


@pytest.mark.parametrize("limit", [0, 1 << 14])
def test_loops_of_any_length(gpu: Any, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that were too small, and adjoints that save less."""

    def made(rng: Any, dtype: Any) -> list[Any]:
        x, y = (wp.array(eighths(rng, n), dtype=dtype, requires_grad=True) for n in (40, 2))
        return [40, x, wp.array(rng.integers(0, 900, 40), dtype=int), y]

    monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
    expected = on("cpu", of_type, long, float, made)
    for _ in range(2):
        found = on(gpu, of_type, long, float, made)
        for a, b in zip(found, expected, strict=True):  # sums of floats have no order
            a, b = np.frombuffer(a, np.float32), np.frombuffer(b, np.float32)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_blocks_and_empty_launches(gpu: Any) -> None:
    x = values(2, 8)
    expected = on("cpu", gradients, cpu.bins, x, 0.1, 2)
    for shape in ({"block_dim": 32}, {"max_blocks": 1, "block_dim": 64}):

        def run() -> list[bytes]:
            args = cpu.arrays(cpu.bins, x, 0.1)
            with wp.Tape() as tape:
                wp.launch(cpu.bins, cpu.N, args, **shape)
                wp.launch(cpu.bins, 0, args)
            rng = np.random.default_rng(2)
            seeds = {a: rng.integers(1, 9, 5) for a in args[2:]}
            tape.backward(grads={a: wp.array(c, dtype=float) for a, c in seeds.items()})
            return [a.grad.numpy().tobytes() for a in (args[0], *args[2:])]

        assert on(gpu, run) == expected[-3:]


@wp.kernel
def of_both_ends(x: F, ends: F):
    i = wp.tid()
    wp.atomic_min(ends, 0, x[i])
    wp.atomic_max(ends, 1, x[i])


@wp.kernel
def of_halves(x: F, ends: F):
    i = wp.tid()
    for k in range(2):
        wp.atomic_min(ends, i % 3 + 3, x[i])
        wp.atomic_max(ends, 2 - i % 3, x[i] * 0.5)


@pytest.mark.parametrize("kernel", [of_both_ends, of_halves], ids=lambda k: k.key)
@pytest.mark.parametrize("start", [-9.0, 0.0, np.nan])
def test_minima_and_maxima_in_one_array(gpu: Any, kernel: Any, start: float) -> None:
    def run() -> list[bytes]:
        x = wp.array(values(2, 8), dtype=float, requires_grad=True)
        ends = wp.array(np.full(6, start), dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(kernel, cpu.N, [x, ends])
        tape.backward(grads={ends: wp.array([1, 2, 3, 4, 5, 6], dtype=float)})
        return [a.numpy().tobytes() for a in (x.grad, ends, ends.grad)]

    assert on(gpu, run) == on("cpu", run)


@wp.kernel
def of_all_sorts(
    x: wp.array2d(dtype=wp.float64), count: wp.array(dtype=int), at: wp.array2d(dtype=int),
    low: wp.array(dtype=wp.float64), high: wp.array(dtype=wp.float64),
):  # fmt: skip
    i = wp.tid()
    for k in range(count[i]):
        if at[i, k] % 2 == 0:
            wp.atomic_min(low, at[i, k] // 2, x[i, k])
        else:
            wp.atomic_max(high, at[i, k] // 2, x[i, k])
            wp.atomic_min(low, 0, x[i, 0])


@pytest.mark.parametrize("seed", range(12))
def test_any_values(gpu: Any, seed: int) -> None:
    """Few numbers, so that many are equal; zeros of both signs, infinities and NaN."""
    rng = np.random.default_rng(seed)
    threads, places = int(rng.integers(1, 400)), int(rng.integers(1, 9))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, *rng.integers(-3, 4, 4)]
    numbers = rng.choice(special[: int(rng.integers(2, 10))], (threads, 5))
    starts = rng.choice(special, (2, places))
    slots = rng.integers(0, 2 * places, (threads, 5))

    def run() -> list[Any]:
        x = wp.array(numbers, dtype=wp.float64, requires_grad=True)
        ends = [wp.array(s, dtype=wp.float64, requires_grad=True) for s in starts]
        count = wp.array(np.arange(threads) * 7 % 6, dtype=int)
        with wp.Tape() as tape:
            wp.launch(of_all_sorts, threads, [x, count, wp.array(slots, dtype=int), *ends])
        given = np.arange(1.0, places + 1)
        tape.backward(grads={a: wp.array(given, dtype=wp.float64) for a in ends})
        return [a.numpy().copy() for a in (x.grad, *(a.grad for a in ends), *ends)]

    for found, expected in zip(on(gpu, run), on("cpu", run), strict=True):
        np.testing.assert_array_equal(found, expected)


# ---- launches that follow each other


def test_launches_on_one_tape(gpu: Any) -> None:
    def run() -> list[bytes]:
        x = wp.array(values(2, 8), dtype=float, requires_grad=True)
        y = wp.array(np.full(5, -1.0), dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(cpu.several_each, cpu.N, [x, y])
            wp.launch(cpu.highest, cpu.N, [x, y])
            wp.launch(cpu.in_place, cpu.N // 2, [x, y])
            wp.launch(cpu.several_each, cpu.N, [x, y])
        out = [x.numpy().tobytes(), y.numpy().tobytes()]
        for _ in range(2):
            tape.zero()
            tape.backward(grads={y: wp.array([1, 2, 3, 4, 5], dtype=float)})
            out += [x.grad.numpy().tobytes(), y.grad.numpy().tobytes()]
        return out

    assert on(gpu, run) == on("cpu", run)


def test_captured_launches(gpu: Any) -> None:
    def run() -> list[bytes]:
        x = wp.array(values(2, 8), dtype=float, requires_grad=True)
        y, s = (wp.zeros(n, dtype=float, requires_grad=True) for n in (3, 1))
        tape = wp.Tape()
        with wp.ScopedCapture() as capture:
            with tape:
                wp.launch(peaks, cpu.N, [x, y])
                wp.launch(summed, 3, [y, s])
            tape.backward(s)
        out = []
        for k in range(4):
            x.assign(values(k, 8))
            y.zero_()
            s.zero_()
            tape.zero()
            wp.capture_launch(capture.graph)
            out += [s.numpy().tobytes(), x.grad.numpy().tobytes(), y.grad.numpy().tobytes()]
        return out

    assert on(gpu, run) == on("cpu", run)


@wp.kernel
def peaks(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, i % 3, x[i] * x[i])


@wp.kernel
def summed(y: F, s: F):
    wp.atomic_add(s, 0, y[wp.tid()])


# ---- what stays refused, or is right


@wp.kernel
def used(x: F, y: F, z: F):
    i = wp.tid()
    z[i] = wp.atomic_max(y, 0, x[i])


@wp.kernel
def both(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, i % 2, x[i])
    wp.atomic_min(y, i % 2 + 1, x[i])


@wp.kernel
def same_for_one(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, i // 2, x[i])
    wp.atomic_min(y, i // 2, 0.5 * x[i])


@wp.kernel
def read_again(x: F, y: F, z: F):
    i = wp.tid()
    wp.atomic_max(y, i % 3, x[i])
    z[i] = y[i % 3] * x[i]


@wp.kernel
def stored(x: F, at: wp.array(dtype=int), y: F):
    i = wp.tid()
    y[at[i]] = x[i]
    wp.atomic_max(y, at[i], 0.5 * x[i])


@wp.kernel
def two_names(x: F, y: F, z: F):
    i = wp.tid()
    wp.atomic_max(y, i % 3, x[i])
    wp.atomic_min(z, i % 3, x[i])


@wp.kernel
def own(x: F, y: F):
    """Of elements that are a thread's own nobody has to know a winner."""
    i = wp.tid()
    y[i] = 0.25
    wp.atomic_max(y, i, x[i])
    wp.atomic_min(y, i, 0.5)


@wp.kernel
def five(x: F, a: F, b: F, c: F, d: F, e: F):
    i = wp.tid()
    wp.atomic_max(a, i % 3, x[i])
    wp.atomic_max(b, i % 3, x[i])
    wp.atomic_max(c, i % 3, x[i])
    wp.atomic_max(d, i % 3, x[i])
    wp.atomic_max(e, i % 3, x[i])


def floats(count: int) -> Any:
    return wp.zeros(count, dtype=float, requires_grad=True)


def slopes(kernel: Any, *args: Any) -> list[bytes]:
    x = wp.array(values(2, 8), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, cpu.N, [x, *args])
    tape.backward(grads={a: wp.ones(a.shape, dtype=float) for a in args if a.requires_grad})
    return [a.grad.numpy().tobytes() for a in (x, *args) if a.requires_grad]


def overlapping() -> list[Any]:
    whole = floats(4)
    return [whole[:3], whole[1:]]


def one_memory() -> list[Any]:
    y = floats(3)
    return [y, y]


@pytest.mark.parametrize(
    ("kernel", "args"),
    [
        (used, lambda: [floats(1), floats(cpu.N)]),
        (both, lambda: [floats(3)]),
        (same_for_one, lambda: [floats(cpu.N)]),
        (read_again, lambda: [floats(3), floats(cpu.N)]),
        (stored, lambda: [wp.array(np.arange(cpu.N) % 3, dtype=int), floats(3)]),
        (two_names, one_memory),
        (cpu.of_two_names, overlapping),
        (five, lambda: [floats(3) for _ in range(5)]),
    ],
    ids=["used", "both", "same", "read_again", "stored", "two_names", "overlapping", "five"],
)  # fmt: skip
def test_what_the_order_decides_is_refused(gpu: Any, kernel: Any, args: Any) -> None:
    with pytest.raises(wp.LaunchError) as e:
        on(gpu, lambda: slopes(kernel, *args()))
    (problem,) = e.value.diagnostics
    assert problem.code == "E407" and problem.span is not None and problem.span.line > 0


def test_gradients_in_one_memory_are_refused(gpu: Any) -> None:
    with pytest.raises(wp.LaunchError, match="E407"):
        on(gpu, cpu.gradients_of, cpu.two, [cpu.ones, 0])


def test_what_needs_no_winner(gpu: Any) -> None:
    def run() -> list[bytes]:
        return slopes(own, floats(cpu.N))

    assert on(gpu, run) == on("cpu", run)


@pytest.mark.parametrize(
    "kernel", [cpu.to_all, cpu.hooked, cpu.taken, cpu.untouched, cpu.two], ids=lambda k: k.key
)
def test_handwritten_gradients(gpu: Any, kernel: Any) -> None:
    """As on the CPU, or refused."""
    expected = on("cpu", cpu.gradients_of, kernel, [cpu.ones, cpu.ones])
    try:
        found = on(gpu, cpu.gradients_of, kernel, [cpu.ones, cpu.ones])
    except wp.LaunchError as e:
        assert e.diagnostics[0].code == "E407" and kernel not in (cpu.untouched, cpu.two)
        return
    assert found == expected


def test_only_winners_take_gradients_of_changed_inputs(
    gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs that others changed since do not make a second winner."""
    monkeypatch.setattr(wp.config, "overwrites", "present")

    def run() -> list[bytes]:
        return cpu.gradients_of(cpu.two, [cpu.ones, cpu.ones], changed=3.0)

    x, *_ = (np.frombuffer(a, np.float32) for a in on(gpu, run))
    assert x.sum() == 9  # three winners of each array, one of which counts twice


# ---- threads that run at once


@pytest.mark.parametrize("distinct", [1, 3, 1 << 20])
def test_any_interleaving_has_the_same_winner(distinct: int, tmp_path: Path) -> None:
    """Claims alone: threads of the host, in no order, on few elements."""
    total, places, workers = 1 << 18, 3, 4
    v = Variants(lower_kernel(peaks.func))
    fn = v.function("recorded", v.differentiable, v.journaled())
    program = Program([("peaks", fn)], tmp_path)
    rng = np.random.default_rng(distinct)
    for start in (-1.0, 0.5, np.nan, 9.0):
        x = np.sqrt(rng.integers(0, distinct, total) / distinct).astype(np.float32)
        x = np.sort(x) if start == -1.0 else x  # each of the first ones beats the one before it
        y = np.full(places, start, np.float32)
        claims = np.zeros(places, np.uint64)
        memory = Memory(total, frame_bytes=16)
        launch = memory.launch((total,))
        launch.claims[0].base, launch.claims[0].words = y.ctypes.data, claims.ctypes.data
        given = [np.array([a.ctypes.data, a.size, 4], np.int64).tobytes() for a in (x, y)]
        block = ctypes.create_string_buffer(b"".join(given))
        params = (ctypes.c_void_p * 2)(ctypes.addressof(block), ctypes.addressof(launch))
        run = program.library["run_peaks"]

        begun = Barrier(workers)

        def work(k: int, down: bool, run: Any = run, at: Any = params, go: Any = begun) -> None:
            go.wait()
            ends = (total - workers + k, k - workers, -workers) if down else (k, total + k, workers)
            run(at, total // 32, 32, *ends)

        # Upwards and downwards: of equals the first one comes last, and beats them all.
        threads = [Thread(target=work, args=(k, start < 1 or k % 2)) for k in range(workers)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        squares, expected = x * x, np.full(total, np.inf, np.float32)
        for at in range(places):
            mine = squares[at::places]
            first = at + places * int(np.argmax(mine))
            slot = memory.journal.ctypes.data + 16 * first + 8
            won = not start >= mine.max()
            claim = int(claims[at])
            if won or start == mine.max():
                assert claim == slot | 1 << 62 | int(won) << 63
                expected[first] = squares[first]
            else:
                assert claim == 0
            assert y[at] == (mine.max() if won else start)
        slots = memory.journal.view(np.float32).reshape(total, 4)[:, 2]
        np.testing.assert_array_equal(slots, expected)
