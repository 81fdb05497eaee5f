"""Launches on several cores give the same results for every schedule, and never hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.ad import threads as threads_module
from engine.compile.cpu import VAST, runner, schedule, shared
from engine.compile.cpu import pool as pools

F = wp.array(dtype=float)
N = 40_000

IN_PARTS = pytest.mark.host("launches in parts are the CPU's")


@wp.kernel
def waves(x: F, y: F, total: F):
    i = wp.tid()
    v = x[i]
    for _ in range(8):
        v = wp.sin(v) + 0.5 * x[i]
    y[i] = v
    wp.atomic_add(total, 0, v)


@wp.kernel
def smooth(x: F, y: F):
    i = wp.tid()
    n = x.shape[0]
    y[i] = wp.exp(-x[wp.max(i - 1, 0)]) * x[wp.min(i + 1, n - 1)]


@wp.kernel
def scatter(at: wp.array(dtype=int), x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, at[i], wp.sin(x[i]))


@wp.kernel
def highest(x: F, y: F):
    i = wp.tid()
    wp.atomic_max(y, 0, wp.sin(x[i]))


@wp.kernel
def in_place(x: F):
    i = wp.tid()
    for _ in range(3):
        x[i] = wp.sin(x[i]) + x[i] * x[i]


@wp.kernel
def says(x: F):
    i = wp.tid()
    if i % 9000 == 0:
        print(i)
    x[i] = 1.0


@pytest.fixture(autouse=True)
def setting() -> Any:
    yield
    wp.config.num_threads, wp.config.deterministic = 0, None


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Names of kernels that ran in parts, and in how many."""
    seen: list[tuple[str, int]] = []
    run = runner._in_parts

    def counted(how: Any, entry: Any, *rest: Any) -> Any:
        seen.append((entry.symbol.rpartition("_")[0], len(how.bounds) - 1))
        return run(how, entry, *rest)

    monkeypatch.setattr(runner, "_in_parts", counted)
    return seen


def values(n: int = N) -> Any:
    return np.random.default_rng(5).standard_normal(n).astype(np.float32)


def gradients(kernel: Any, arrays: list[Any], dim: int = N) -> list[bytes]:
    """All contents and gradients, bit for bit, after a launch and its backward pass."""
    given = [wp.array(a, requires_grad=a.dtype == np.float32) for a in arrays]
    with wp.Tape() as tape:
        wp.launch(kernel, dim, given)
    rng = np.random.default_rng(6)
    seeds = {a: wp.array(rng.standard_normal(a.shape).astype(np.float32))
             for a in given if a.requires_grad}  # fmt: skip
    tape.backward(grads=seeds)
    return [a.numpy().tobytes() for a in given] + [a.grad.numpy().tobytes() for a in seeds]


def point() -> Any:
    return np.zeros(1, np.float32)


def places(n: int) -> Any:
    return np.random.default_rng(7).integers(0, n, N).astype(np.int32)


CASES = {
    "waves": (waves, [values(), values(), point()]),
    "smooth": (smooth, [values(), values()]),
    "scatter": (scatter, [places(50), values(), values(50)]),
    "in_place": (in_place, [values()]),
}


@IN_PARTS
@pytest.mark.parametrize("name", CASES)
def test_the_number_of_threads_changes_no_bit(name: str, cut: list[Any]) -> None:
    kernel, arrays = CASES[name]
    found = []
    for count in (1, 2, 7):
        wp.config.num_threads = count
        found.append(gradients(kernel, arrays))
    assert found[0] == found[1] == found[2]
    assert len(cut) == 6 and all(parts > 1 for _, parts in cut)  # forward and backward, each time


@IN_PARTS
def test_the_greatest_value(cut: list[Any]) -> None:
    for count in (1, 2, 7):
        wp.config.num_threads = count
        x, y = wp.array(values(200_000)), wp.array(np.array([np.nan], np.float32))
        wp.launch(highest, 200_000, [x, y])
        assert y.numpy()[0] == np.sin(values(200_000).astype(np.float64)).astype(np.float32).max()
    assert len(cut) == 3


def test_sums_into_a_large_array(cut: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part would need an array of its own, which costs more than it saves."""
    monkeypatch.setattr(schedule, "SHARE", 8)  # also under --parts
    for deterministic in (True, False):
        wp.config.num_threads, wp.config.deterministic = 2, deterministic
        before = len(cut)
        n = 100_000
        at, x, y = places(n), values(), np.zeros(n, np.float32)
        given = [wp.array(at), wp.array(x), wp.array(y)]
        wp.launch(scatter, N, given)
        expected = np.zeros(n)
        np.add.at(expected, at, np.sin(x.astype(np.float64)))
        np.testing.assert_allclose(given[2].numpy(), expected, atol=1e-5)
        assert len(cut) == before


@IN_PARTS
def test_messages_are_in_the_order_of_the_threads(
    capfd: pytest.CaptureFixture[str], cut: list[Any]
) -> None:
    wp.config.num_threads = 3
    wp.launch(says, N * 3, [wp.zeros(N * 3)])
    assert capfd.readouterr().out.split() == [str(k) for k in range(0, N * 3, 9000)]
    assert cut


def test_small_launches_stay_where_they_are(
    cut: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    gradients(smooth, [values(100), values(100)], 100)
    assert not cut


@wp.func_native("static int c = 0; return float(c++ % 7);")
def counts() -> float: ...


@wp.func_native("return x * 2.0f;", adj_snippet="seen[0] = i; adj_x += 2.0f * adj_ret;")
def notes(x: float, seen: wp.array(dtype=int), i: int) -> float: ...


@wp.kernel
def with_state(y: F):
    i = wp.tid()
    y[i] = counts()


@wp.kernel
def noting(x: F, seen: wp.array(dtype=int), y: F):
    i = wp.tid()
    y[i] = notes(x[i], seen, i)


@pytest.mark.host("the order of threads")
def test_native_text_with_a_state_runs_in_the_order_of_the_threads(cut: list[Any]) -> None:
    n = 1_000_000
    y = wp.zeros(n)
    wp.config.num_threads = 7
    wp.launch(with_state, n, [y])
    assert y.numpy().tolist() == [float(k % 7) for k in range(n)] and not cut


@pytest.mark.host("the order of threads")
def test_adjoint_text_that_writes_arrays_runs_in_the_order_of_the_threads() -> None:
    wp.config.num_threads = 7
    n = 100_000
    x, seen = wp.zeros(n, requires_grad=True), wp.zeros(1, dtype=int)
    y = wp.zeros(n, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(noting, n, [x, seen, y])
    tape.backward(grads={y: wp.ones_like(y)})
    assert seen.numpy()[0] == 0 and x.grad.numpy().tolist() == [2.0] * n


@wp.kernel
def in_time(x: F, y: F, n: int, t: int):
    i = wp.tid()
    for k in range(n):
        if i + k < x.shape[0]:
            y[i * n + k] = x[i + k] * float(t)


@IN_PARTS
def test_what_is_known_of_a_launch_does_not_hang_on_what_is_in_no_index(
    monkeypatch: pytest.MonkeyPatch, cut: list[Any]
) -> None:
    asked: list[int] = []
    right = threads_module.classify

    def classify(*args: Any) -> Any:
        asked.append(1)
        return right(*args)

    monkeypatch.setattr(threads_module, "classify", classify)
    x, y = wp.zeros(50_000), wp.zeros(200_000)
    for t in range(20):
        wp.launch(in_time, 50_000, [x, y, 4, t])
    assert len(cut) == 20 and len(asked) == 1


@pytest.mark.parametrize("count", [1.5, "2", None, -1, True, 10**9])
def test_numbers_of_threads_that_are_none(count: Any) -> None:
    wp.config.num_threads = count
    with pytest.raises(wp.LaunchError, match=r"E202.*num_threads"):
        pools.thread_count()


@pytest.mark.whole  # sums of floats are compared
def test_threads_of_the_program_launch_at_once() -> None:
    wp.config.num_threads = 2
    kernel, arrays = CASES["waves"]
    expected = gradients(kernel, arrays)
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            if gradients(kernel, arrays) != expected:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


SCRIPT = """
import os, signal, sys
import numpy as np
import engine as wp

@wp.kernel
def waves(x: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    for _ in range(20):
        v = wp.sin(v) + 1.0
    x[i] = v

def go():
    x = wp.array(np.linspace(0, 1, 100_000, dtype=np.float32))
    wp.launch(waves, 100_000, [x])
    return x.numpy().tobytes()

"""


def run(tmp_path: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + textwrap.dedent(text))
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})  # fmt: skip


def test_a_forked_child_has_threads_of_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, """
        wp.config.num_threads = 4
        mine = go()
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0 if go() == mine else 3)
            assert go() == mine
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print("done")
    """)  # fmt: skip
    assert done.stdout == "done\n", done.stderr


@IN_PARTS
def test_compiled_threads_that_are_damaged_are_made_anew(tmp_path: Path) -> None:
    script = """
        wp.config.num_threads = 3
        go()
        print(len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0)
    """
    env = {"ENGINE_CACHE_DIR": str(tmp_path / "cache"), "OPENBLAS_NUM_THREADS": "1"}
    first = run(tmp_path, script, **env)
    objects = list((tmp_path / "cache").rglob("*.so"))
    assert first.returncode == 0 and len(objects) == 2, first.stderr
    for path in objects:
        path.chmod(0o600)
        path.write_bytes(b"not a library")
    again = run(tmp_path, script, **env)
    assert (again.stdout, again.stderr) == (first.stdout, "")


def test_signals_go_to_the_program(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        SCRIPT
        + textwrap.dedent("""
        # Shells let what they run in the background ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        wp.config.num_threads = 4
        go()
        print("ready", flush=True)
        try:
            while True:
                go()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    )
    child = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=60)[0] == "interrupted\n" and child.returncode == 0
    finally:
        child.kill()


def test_an_interrupted_launch_is_complete(tmp_path: Path) -> None:
    done = run(tmp_path, """
        import threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)

        @wp.kernel
        def count(x: wp.array(dtype=float), total: wp.array(dtype=float)):
            i = wp.tid()
            s = x[i]
            for k in range(60):
                s = wp.sin(s) + 0.1
            wp.atomic_add(total, i % 3, wp.where(s > -9.0, 1.0, 0.0))

        n = 300_000
        x = wp.zeros(n, dtype=float)
        wp.launch(count, n, [x, wp.zeros(3, dtype=float)])
        seen = set()
        for k in range(20):
            total = wp.zeros(3, dtype=float)
            kill = threading.Timer(0.001 + 0.0005 * k, os.kill, (os.getpid(), signal.SIGINT))
            try:
                kill.start()
                wp.launch(count, n, [x, total])
                kill.join()
            except KeyboardInterrupt:
                seen.add(float(total.numpy().sum()))
        print(sorted(seen - {0.0}), seen != set())
    """)  # fmt: skip
    assert done.stdout == "[300000.0] True\n", done.stderr


@IN_PARTS
@pytest.mark.parametrize("count", ["1", "3", " "])
def test_the_number_of_threads_can_be_set_outside(tmp_path: Path, count: str) -> None:
    done = run(tmp_path, """
        go()
        print(sum(1 for t in os.listdir("/proc/self/task")) if sys.platform == "linux" else 0)
    """, ENGINE_NUM_THREADS=count, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    if sys.platform == "linux":
        assert int(done.stdout) == (int(count) if count.strip() else pools.processors())


def test_a_number_of_threads_that_is_none(tmp_path: Path) -> None:
    done = run(tmp_path, "print(wp.config.num_threads)", ENGINE_NUM_THREADS="two")
    assert done.stdout == "0\n" and "$ENGINE_NUM_THREADS is 'two'" in done.stderr


@IN_PARTS
def test_without_a_pool_all_is_done_by_the_caller(
    monkeypatch: pytest.MonkeyPatch, cut: list[Any]
) -> None:
    kernel, arrays = CASES["waves"]
    wp.config.num_threads = 2
    expected = gradients(kernel, arrays)
    holder = pools._Holder()

    def fails(*given: object) -> None:
        raise OSError("no such thing")

    monkeypatch.setattr(shared, "load", fails)
    monkeypatch.setattr(pools, "_holder", holder)
    with pytest.warns(UserWarning, match="run on one core.*no such thing"):
        assert gradients(kernel, arrays) == expected
    assert gradients(kernel, arrays) == expected  # and it is said once


def test_parts_cover_the_grid_once() -> None:
    for kernel, arrays in CASES.values():
        args, blob = kernel.plan.bind([wp.array(a) for a in arrays], (N,))
        assert args
        found = schedule.schedule(kernel.plan.forward._entry.threads, (N,), blob)
        assert found is not None
        assert found.bounds[0] == 0 and found.bounds[-1] == N
        assert list(found.bounds) == sorted(set(found.bounds))
        assert sorted(k for r in found.rounds for k in r) == list(range(len(found.bounds) - 1))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_many_bytes_are_copied_as_they_are(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "num_threads", threads)
    n = VAST // 4
    for size in (n - 1, n, n + 1, n + 37):
        values = np.random.default_rng(size).integers(0, 1 << 31, size, np.int32)
        whole = wp.zeros(size + 9, dtype=wp.int32)
        whole[5 : size + 5].assign(values)
        wp.copy(whole[5 : size + 5], wp.array(values))
        assert whole.numpy().tolist() == [*[0] * 5, *values.tolist(), *[0] * 4]
    # Views of one memory: as if all were read first.
    moved = wp.array(values)
    wp.copy(moved[3:], moved[:-3])
    np.testing.assert_array_equal(moved.numpy()[3:], values[:-3])
    rows = np.arange(2 * n, dtype=np.float32).reshape(2, n).T  # not in the order of memory
    table = wp.zeros((n, 2), dtype=float)
    table.assign(rows)
    np.testing.assert_array_equal(table.numpy(), rows)


@pytest.mark.host("memory of the host")
def test_many_bytes_over_what_is_read_only() -> None:
    fixed = np.ones(VAST // 4, np.float32)
    fixed.flags.writeable = False
    a = wp.array(fixed, copy=False)
    with pytest.raises(wp.EngineError):
        a.assign(np.zeros(VAST // 4, np.float32))
    assert fixed.min() == 1.0
