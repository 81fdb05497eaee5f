"""Kernels that run for a block of threads at once, beside one thread after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import runner, schedule
from engine.runtime.stages import kernel_stage
from tests.parts import cut

pytestmark = pytest.mark.whole  # it cuts launches itself
F = wp.array(dtype=float)
G = wp.array2d(dtype=float)
V = wp.array(dtype=wp.vec3)
N = 12  # turns of loops


@wp.kernel
def pulls(x: V, w: F, n: int, y: V):
    i = wp.tid()
    here = x[i]
    total = wp.vec3(0.0, 0.0, 0.0)
    for j in range(n):
        d = x[j] - here
        s = wp.dot(d, d) + 0.1
        total += d * (w[j] / (s * wp.sqrt(s)))
    y[i] = total


@wp.kernel
def carried(x: V, w: F, n: int, y: V):
    """Values of each turn are saved, in one loop and in another one in it; the last turn is cut."""
    i = wp.tid()
    v = x[i]
    a = float(1.0)
    for k in range(n):
        for j in range(k):
            v = wp.vec3(v[1] * 0.5, wp.sin(v[2]) + w[j], v[0] * a)
        a = a * 0.9 + v[1] * 0.1
        if k > 9:
            break
    y[i] = v * a


@wp.kernel
def guarded(x: V, w: F, n: int, y: V):
    """Some threads leave at once; others take a branch in which blocks do not go together."""
    i = wp.tid()
    if i % 150 > 140:
        return
    v = x[i]
    if v[0] > 0.1:
        for j in range(n):
            v[0] = v[0] * w[j] + v[1]
    else:
        v[2] = 2.0 * v[1]
    y[i] = v


@wp.kernel
def alone(x: V, w: F, n: int, y: V):
    """Loops of a length that is the thread's own, in one that all have; `while` of all."""
    i = wp.tid()
    v = x[i]
    t = 0
    s = float(0.0)
    while t < n:
        for j in range(i % 5):
            s += w[j + t] * v[0]
        t += 1
        if s > 20.0:
            continue
        s = s * 0.5 + v[1]
        if i % 3 == 0:
            s += v[2] * w[t]
    y[i] = wp.vec3(s, v[1], v[2])


@wp.kernel
def scattered(x: V, w: F, n: int, y: V):
    """Sums of all threads in the loop, some of them into one element."""
    i = wp.tid()
    for j in range(n):
        wp.atomic_add(y, j, x[i] * w[j])
        wp.atomic_sub(y, (i * 7 + j) % n, x[i])


@wp.kernel
def written(x: V, w: F, n: int, y: V):
    """What a thread writes it reads again."""
    i = wp.tid()
    y[i] = x[i]
    for j in range(n):
        y[i] = y[i] * w[j] + x[i]
        y[i][1] = y[i][0] * 0.5


@wp.kernel
def product(a: G, b: G, c: G):
    i, j = wp.tid()
    s = float(0.0)
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


def run(kernel: Any, dim: Any, arrays: list[Any], n: int | None, blocks: bool) -> list[Any]:
    """What a launch and its adjoint leave."""
    made = [wp.array(a.copy(), dtype=t, requires_grad=True) for a, t in arrays]
    args = [*made[:-1], *([] if n is None else [n]), made[-1]]
    before, runner.BLOCKS = runner.BLOCKS, blocks
    try:
        with wp.Tape() as tape:
            wp.launch(kernel, dim, args)
        out = [a.numpy().copy() for a in made]
        seed = wp.array(np.cos(np.arange(made[-1].size * 3)).astype(np.float32)[: out[-1].size]
                        .reshape(out[-1].shape), dtype=made[-1].dtype)  # fmt: skip
        tape.backward(grads={made[-1]: seed})
        return out + [a.grad.numpy().copy() for a in made]
    finally:
        runner.BLOCKS = before


def compare(kernel: Any, dim: Any, arrays: list[Any], n: int | None, threads: int) -> None:
    with cut(threads):
        schedule.PART = 1
        seen = run(kernel, dim, arrays, n, True)
        again = run(kernel, dim, arrays, n, True)
        plain = run(kernel, dim, arrays, n, False)
    half = len(arrays)
    for a, b, c in zip(seen[:half], plain[:half], again[:half], strict=True):
        if kernel is scattered:
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))
        np.testing.assert_array_equal(a, c)
    for a, b, c in zip(seen[half:], plain[half:], again[half:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(b).max(initial=0)))
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", [pulls, carried, guarded, alone, scattered, written])
def test_blocks_do_what_threads_do(
    kernel: Any, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "PARTS", 3)
    for count in (0, 1, 15, 63, 64, 65, 200, 391):
        rng = np.random.default_rng(count)
        size = max(count, N)
        x = rng.normal(size=(size, 3)).astype(np.float32)
        w = rng.normal(size=max(size, 32)).astype(np.float32)
        y = rng.normal(size=(size, 3)).astype(np.float32)
        if kernel is scattered:
            y[:] = 0.0
        compare(kernel, count, [(x, wp.vec3), (w, float), (y, wp.vec3)], N, threads)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 9, 70), (70, 20, 3), (5, 16, 64), (4, 8, 0)])
def test_rows_of_a_grid(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "PARTS", 3)
    m, k, n = shape
    rng = np.random.default_rng(1)
    a, b, c = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    compare(product, (m, n), [(a, float), (b, float), (c, float)], None, 2)


def test_strided_and_broadcast_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that are not contiguous: the same, one thread after the other."""
    monkeypatch.setattr(schedule, "PARTS", 3)
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(40, 40)).astype(np.float32) for _ in range(2))
    right = np.zeros((20, 20), np.float32)
    for i in range(20):
        for k in range(20):  # in the order of the kernel
            right[i] += a[2 * i, 2 * k] * b[k, ::2]
    with cut(2):
        whole, other = wp.array(a, dtype=float), wp.array(b, dtype=float)
        c = wp.zeros((20, 20), dtype=float)
        wp.launch(product, (20, 20), [whole[::2, ::2], other[:20, ::2], c])
    np.testing.assert_array_equal(c.numpy(), right)


def test_a_block_that_saves_too_much_goes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "PARTS", 3)
    rng = np.random.default_rng(3)
    x, y = (rng.normal(size=(200, 3)).astype(np.float32) for _ in range(2))
    w = rng.normal(size=32).astype(np.float32)
    arrays = [(x, wp.vec3), (w, float), (y, wp.vec3)]
    whole = run(carried, 200, arrays, N, False)
    for limit in (1_000, 4_000, 16_000, 60_000, 250_000):
        monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
        with cut(2):
            found = run(carried, 200, arrays, N, True)
        for a, b in zip(found, whole, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@wp.kernel
def own_element(acc: F, x: G, z: G, n: int):
    """Reads what the thread itself has written, at an index that all lanes of a block share."""
    i, j = wp.tid()
    s = float(0.0)
    for m in range(n):
        s = wp.sin(x[i, j] + s)
    wp.atomic_add(acc, i, s)
    acc[i] = acc[i] * 2.0
    z[i, j] = acc[i]
    for m in range(n):
        z[i, j] = z[i, j] + acc[i] * 0.5


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_block_of_one_thread_reads_what_it_wrote(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "PARTS", 3)
    monkeypatch.setattr(schedule, "LEAST", 0)
    x = np.random.default_rng(4).normal(size=(60, 1)).astype(np.float32)
    seen = []
    for blocks in (True, False):
        monkeypatch.setattr(runner, "BLOCKS", blocks)
        with cut(threads):
            acc, z = wp.ones(60, dtype=float), wp.zeros((60, 1), dtype=float)
            wp.launch(own_element, (60, 1), [acc, wp.array(x, dtype=float), z, 5])
        seen.append((acc.numpy(), z.numpy()))
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    np.testing.assert_allclose(seen[0][1][:, 0], seen[0][0] * (1.0 + 5 * 0.5), rtol=1e-6)


@wp.kernel
def saves_in_short_loops(x: wp.array(dtype=wp.float64), z: wp.array(dtype=wp.float64), m: int):
    """Inner loops of known length save what no thread reserves, after its first effect."""
    i = wp.tid()
    s = x[i]
    for a in range(m):
        for _b in range(9):
            s = wp.sin(s * x[i]) + wp.float64(a)
        for _c in range(a % 3):
            for _d in range(5):
                s = s * wp.cos(s)
    z[i] = s


@pytest.mark.parametrize("blocks", [True, False])
def test_no_limit_ends_a_thread_after_its_first_effect(
    blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "BLOCKS", blocks)
    values = np.random.default_rng(5).normal(size=70)

    def gradient(limit: int) -> Any:
        monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
        x = wp.array(values, dtype=wp.float64, requires_grad=True)
        z = wp.zeros(70, dtype=wp.float64, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(saves_in_short_loops, 70, [x, z, 12])
        tape.backward(grads={z: wp.ones(70, dtype=wp.float64)})
        return x.grad.numpy().copy()

    right = gradient(0)
    assert np.all(right != 0.0)
    for limit in (
        64,
        90,
        96,
        104,
        112,
        128,
        150,
        170,
        200,
        300,
        6144,
        6200,
        6500,
        7168,
        8000,
        10240,
    ):
        try:
            found = gradient(limit)
        except wp.LaunchError as error:  # nothing would fit
            assert error.diagnostics[0].code == "E209" and limit < 200
            continue
        np.testing.assert_array_equal(found, right, err_msg=str(limit))


@pytest.mark.parametrize("kernel", [pulls, carried, guarded, alone, written, product])
def test_there_are_blocks(kernel: Any) -> None:
    text = str(kernel_stage(kernel, "cpp"))
    assert text.count("run_lanes(const") == (1 if kernel in (written, alone) else 2)


@wp.kernel
def short(x: F, y: F):
    i = wp.tid()
    v = x[i]
    for _ in range(wp.static(3)):
        v = v * v
    y[i] = v


@wp.kernel
def wide(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(i):
        s += x[k]
    y[i] = s


@wp.kernel
def by_rows(a: G, x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(a.shape[1]):
        s += a[i, k] * x[k]
    y[i] = s


@wp.kernel
def by_flat_rows(a: F, n: int, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(n):
        s += a[i * n + k]
    y[i] = s


@pytest.mark.parametrize("kernel", [short, wide, by_rows, by_flat_rows])
def test_what_gains_nothing_has_no_blocks(kernel: Any) -> None:
    assert "run_lanes" not in str(kernel_stage(kernel, "cpp"))
