"""The code of a kernel for arrays that are not contiguous is made when a launch first needs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.compile.cpu import compiler, pool
from engine.diagnostics import CompilerError

pytestmark = pytest.mark.host("kernels on a GPU have one form for any arrays")
F = wp.array(dtype=float)
Counted = Callable[[], int]


class Late(Exception):
    pass


def half_of() -> Any:
    """A kernel that nobody has."""

    @wp.kernel
    def half(x: F, y: F):
        i = wp.tid()
        y[i] = wp.sin(x[i]) * 0.5

    return half


def given(n: int) -> wp.array:
    return wp.array(np.linspace(-3.0, 3.0, n), dtype=float)


def strided(n: int) -> wp.array:
    return wp.zeros(2 * n, dtype=float)[::2]


def run(kernel: Any, x: wp.array, y: wp.array) -> np.ndarray:
    wp.launch(kernel, x.size, [x], [y])
    return y.numpy()


def test_it_is_made_when_it_is_needed_and_once(counted: Counted) -> None:
    half, x = half_of(), given(20)
    wanted = run(half, x, wp.zeros(20, dtype=float))
    once = counted()
    run(half, x, wp.zeros(20, dtype=float))
    assert counted() == once
    np.testing.assert_array_equal(run(half, x, strided(20)), wanted)
    assert counted() == once + 1
    np.testing.assert_array_equal(run(half, x, strided(20)), wanted)
    np.testing.assert_array_equal(run(half, x, x), wanted)  # in place
    assert counted() == once + 1


def test_another_process_finds_it(counted: Counted, forget: Callable[[], None]) -> None:
    wanted = run(half_of(), given(20), strided(20))
    before = counted()
    forget()
    np.testing.assert_array_equal(run(half_of(), given(20), strided(20)), wanted)
    assert counted() == before


def test_the_adjoint_has_its_own(counted: Counted) -> None:
    half = half_of()
    x = wp.array(np.linspace(-3.0, 3.0, 40), dtype=float, requires_grad=True)
    y = wp.zeros(40, dtype=float, requires_grad=True)
    runs = []
    for step in (1, 2):
        tape = wp.Tape()
        with tape:
            wp.launch(half, 40 // step, [x[::step]], [y[::step]])
        tape.backward(grads={y: wp.ones(40, dtype=float)})
        wanted = np.zeros(40)
        wanted[::step] = np.cos(np.linspace(-3.0, 3.0, 40)[::step]) * 0.5
        np.testing.assert_allclose(x.grad.numpy(), wanted, atol=1e-6)
        tape.zero()
        x.grad.zero_()
        runs.append(counted())
    assert runs[1] == runs[0] + 2  # of the kernel and of its adjoint


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_many_threads_ask_for_one(
    threads: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "num_threads", threads)
    half, x = half_of(), given(400_000)
    wanted = run(half, x, wp.zeros(400_000, dtype=float))
    pool.pool()
    run(half_of(), given(4), strided(4))  # what lends is made, too
    big = wp.zeros(800_000, dtype=float)[::2]
    before = counted()
    np.testing.assert_array_equal(run(half, x, big), wanted)
    np.testing.assert_array_equal(run(half, x, x), wanted)
    assert counted() <= before + 1  # what lends


def test_threads_of_python_ask_for_one(counted: Counted) -> None:
    half, x = half_of(), given(20)
    wanted = run(half, x, wp.zeros(20, dtype=float))
    before, came = counted(), list[np.ndarray]()
    threads = [threading.Thread(target=lambda: came.append(run(half, x, strided(20))))
               for _ in range(8)]  # fmt: skip
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(came) == 8
    for y in came:
        np.testing.assert_array_equal(y, wanted)
    assert counted() == before + 1


def test_settings_are_those_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    x = given(1000)
    seen = {}
    for precise in (False, True):
        monkeypatch.setattr(config, "precise_math", precise)
        half = half_of()
        seen[precise] = run(half, x, wp.zeros(1000, dtype=float))
        monkeypatch.setattr(config, "precise_math", not precise)
        if precise:
            np.testing.assert_array_equal(run(half, x, strided(1000)), seen[precise])
    assert (seen[True] != seen[False]).any()  # so that it would have been seen


@pytest.fixture
def fails(script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Any:
    """In a block of it, compilers do something else."""
    real = compiler.find_toolchain().command[0]

    @contextmanager
    def broken(what: str) -> Iterator[None]:
        path = script(f'if "--version" in sys.argv: os.execv({real!r}, sys.argv)\n{what}')
        with monkeypatch.context() as patch:
            patch.setenv("CXX", str(path))
            yield

    return broken


def test_a_compiler_that_fails_is_told_and_nothing_is_lost(fails: Any) -> None:
    half, x = half_of(), given(20)
    wanted = run(half, x, wp.zeros(20, dtype=float))
    y = wp.full(40, 7.0, dtype=float)
    with fails('print("error: no space is left")\nsys.exit(1)'):
        with pytest.raises(CompilerError) as e:
            run(half, x, y[::2])
    (said,) = e.value.diagnostics
    assert said.code == "E302"
    assert "'test_a_compiler" not in said.message and "half'" in said.message, said.message
    assert any("no space is left" in note for note in said.notes)
    assert said.span is not None and said.span.file == __file__
    np.testing.assert_array_equal(y.numpy(), 7.0)
    np.testing.assert_array_equal(run(half, x, y[::2]), wanted)
    np.testing.assert_array_equal(y.numpy()[1::2], 7.0)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_no_part_has_run_where_it_fails(
    threads: int, fails: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of those either whose own copies of an array are contiguous."""
    monkeypatch.setattr(config, "num_threads", threads)

    @wp.kernel
    def both(x: F, y: F, s: F):
        i = wp.tid()
        y[i] = y[i] + 2.0 * x[i]
        wp.atomic_add(s, i % 50, 1.0)

    n = 1_000_000
    x, y, s = wp.ones(n, dtype=float), wp.zeros(n, dtype=float), wp.zeros(100, dtype=float)
    wp.launch(both, n, [x, y, s])
    before = counted_file(fails, lambda: wp.launch(both, n, [x, y, s[::2]]))
    assert before == 1  # the compiler is asked once
    np.testing.assert_array_equal(y.numpy(), 2.0)
    np.testing.assert_array_equal(s.numpy()[:50], n / 50)
    wp.launch(both, n, [x, y, s[::2]])
    np.testing.assert_array_equal(y.numpy(), 4.0)
    np.testing.assert_array_equal(s.numpy()[50::2], n / 50)


def counted_file(fails: Any, launch: Callable[[], None]) -> int:
    """How often a compiler runs that fails, for a launch."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "runs"
        with fails(f"open({str(log)!r}, 'a').write('x')\nsys.exit(1)"):
            with pytest.raises(CompilerError, match="E302"):
                launch()
        return len(log.read_text())


@pytest.mark.parametrize("n", [20, 1_000_000])
def test_it_can_be_interrupted(n: int, fails: Any) -> None:
    half, x, y = half_of(), given(n), wp.full(2 * n, 7.0, dtype=float)
    wanted = run(half, x, wp.zeros(n, dtype=float))

    def handler(number: int, frame: Any) -> None:
        raise Late

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    began = time.monotonic()
    try:
        with fails("time.sleep(60)"), pytest.raises(Late):
            run(half, x, y[::2])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.monotonic() - began < 30
    np.testing.assert_array_equal(y.numpy(), 7.0)
    np.testing.assert_array_equal(run(half, x, y[::2]), wanted)


def test_a_handler_of_a_signal_may_need_one_meanwhile(fails: Any) -> None:
    """Of many threads, while the thread that it interrupts waits for the compiler."""
    first, second, n = half_of(), half_of(), 1_000_000

    @wp.kernel
    def other(x: F, y: F):
        i = wp.tid()
        y[i] = x[i] * 3.0

    x, small = given(n), given(20)
    run(first, small, wp.zeros(20, dtype=float))
    run(other, x, wp.zeros(n, dtype=float))
    wanted, came = run(second, small, wp.zeros(20, dtype=float)), list[np.ndarray]()

    def handler(number: int, frame: Any) -> None:
        came.append(run(other, x, strided(n)))

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    real = compiler.find_toolchain().command[0]
    try:
        with fails(f"time.sleep(1)\nos.execv({real!r}, [{real!r}, *sys.argv[1:]])"):
            y = run(first, small, strided(20))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(came[0], x.numpy() * np.float32(3.0))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_is_raised_meanwhile_is_raised(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a handler of a signal, that is: it comes while the compiler is waited for."""
    half, x = half_of(), given(20)
    wanted = run(half, x, wp.zeros(20, dtype=float))

    def interrupted(*jobs: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(compiler, "build", interrupted)
        with pytest.raises(error):
            run(half, x, strided(20))
    np.testing.assert_array_equal(run(half, x, strided(20)), wanted)


def test_launches_without_python_ask_too(counted: Counted) -> None:
    half, x, y = half_of(), given(20), wp.zeros(20, dtype=float)
    command = wp.launch(half, 20, [x], [y], record_cmd=True)
    for _ in range(2000):
        command.launch()
    before = counted()
    other = strided(20)
    command.set_params([x, other])
    command.launch()
    np.testing.assert_array_equal(other.numpy(), y.numpy())
    assert counted() > before  # what launches without Python may have been made meanwhile


def test_captured_launches_ask_too() -> None:
    half, x = half_of(), given(20)
    wanted, y = run(half, x, wp.zeros(20, dtype=float)), strided(20)
    with wp.ScopedCapture() as capture:
        wp.launch(half, 20, [x], [y])
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(y.numpy(), wanted)


def test_texts_with_lines_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "debug_info", True)
    half, x = half_of(), given(20)
    wanted = run(half, x, wp.zeros(20, dtype=float))
    np.testing.assert_array_equal(run(half, x, strided(20)), wanted)


def test_snippets_are_compiled_with_their_kernel(counted: Counted) -> None:
    @wp.func_native("return x * 3.0f;")
    def three(x: float) -> float: ...

    @wp.kernel
    def thrice(x: F, y: F):
        i = wp.tid()
        y[i] = three(x[i])

    x = given(20)
    wanted = run(thrice, x, wp.zeros(20, dtype=float))
    before = counted()
    np.testing.assert_array_equal(run(thrice, x, strided(20)), wanted)
    assert counted() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_makes_its_own(tmp_path: Path) -> None:
    program = tmp_path / "forked.py"
    program.write_text(
        """
import os
import numpy as np
import engine as wp

@wp.kernel
def half(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * 0.5

x = wp.array(np.arange(20.0), dtype=float)
wp.launch(half, 20, [x], [wp.zeros(20, dtype=float)])
child = os.fork()
y = wp.zeros(40, dtype=float)
wp.launch(half, 20, [x], [y[::2]])
assert (y.numpy()[::2] == np.arange(20.0) * 0.5).all()
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both")
"""
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == "both\n"
