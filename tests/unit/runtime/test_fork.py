"""Processes forked in the middle of anything: they can go on, and find nothing half done."""

import os
import re
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PROGRAM = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")  # of Python, about forks of processes with threads
import engine as wp

def make(n):
    @wp.kernel(module="unique")
    def k(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * float(n) + 1.0
    return k

def child(kernel):
    pid = os.fork()
    if pid == 0:
        x = wp.full(3, 2.0, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(kernel, 3, [x])
        tape.backward(grads={x: wp.ones(3)})
        os._exit(0 if x.list() == [2.0 * 5 + 1] * 3 and x.grad.list() == [5.0] * 3 else 3)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"
"""

WHILE_A_THREAD_COMPILES = """
marker = sys.argv[1]
other = threading.Thread(target=lambda: wp.launch(make(7), 3, [wp.zeros(3)]))
other.start()
while not os.path.exists(marker):  # the compiler has been started
    time.sleep(0.01)
print(child(make(5)))
other.join()
"""

WHILE_A_THREAD_HOLDS_EVERY_LOCK = """
import gc
from engine.locks import Lock

with wp.Tape():  # what is imported late is there
    wp.launch(make(5), 3, [wp.zeros(3)])
held, go = threading.Event(), threading.Event()

def hold():
    locks = [x for x in gc.get_objects() if isinstance(x, Lock)]
    assert len(locks) >= 5, locks
    for lock in locks:
        lock.__enter__()
    held.set()
    go.wait()
    for lock in locks:
        lock.__exit__()

other = threading.Thread(target=hold)
other.start()
held.wait()
print(child(make(5)))
go.set()
other.join()
"""

WHILE_IT_HOLDS_ONE_ITSELF = """
from engine.compile import pipeline

with pipeline._lock:
    print(child(make(5)))
    wp.launch(make(6), 3, [wp.zeros(3)])
"""


def run(program: str, *args: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM + program), *args],
        capture_output=True, text=True, timeout=170, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_while_a_thread_compiles(tmp_path: Path) -> None:
    from engine.compile.cpu.toolchain import find_toolchain

    slow, marker = tmp_path / "slow", tmp_path / "started"
    compiler = " ".join(find_toolchain().command)
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) ;; *) touch {marker}; sleep 2;; esac\n'
        f'exec {compiler} "$@"\n'
    )
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    cache = str(tmp_path / "cache")
    got = run(WHILE_A_THREAD_COMPILES, str(marker), CXX=str(slow), ENGINE_CACHE_DIR=cache)
    assert got == "0"


@pytest.mark.parametrize(
    "program", [WHILE_A_THREAD_HOLDS_EVERY_LOCK, WHILE_IT_HOLDS_ONE_ITSELF]
)  # fmt: skip
def test_while_a_lock_is_held(program: str) -> None:
    assert run(program) == "0"


def test_there_are_no_other_locks(root: Path) -> None:
    """Those of `threading` stay locked in a child for ever."""
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in (root / "engine").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "Lock()" in line and "import" not in line
    ]
    outside = [x for x in found if not x.startswith(("engine/locks.py", "engine/forks.py"))]
    assert all(x.rstrip().endswith("= Lock()") for x in outside), outside


def test_properties_have_no_lock_of_their_own(root: Path) -> None:
    """Those of `functools` have one for a class, before Python 3.12."""
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in (root / "engine").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"functools.*cached_property", line)
    ]
    assert all(x.startswith("engine/cached.py") for x in found), found


IMPORTS = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import engine

def forked(name):
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        __import__(name)
        os._exit(0 if sys.modules[name].whole else 3)
    took = time.monotonic() - begun
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return took, os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return took, "hangs"

name = sys.argv[1]
engine.__path__.append(sys.argv[2])
sys.path.append(sys.argv[2])
begun = threading.Event()
sys.begun = begun
other = threading.Thread(target=__import__, args=(name,))
other.start()
begun.wait()
print(*forked(name if name in sys.argv[3:] else "fine"))
other.join()
"""


def imports(folder: Path, name: str, *awaited: str) -> tuple[float, str]:
    (folder / "slowly.py").write_text(
        "import sys, time\nsys.begun.set()\ntime.sleep(1.0)\nwhole = True\n"
    )
    (folder / "fine.py").write_text("whole = True\n")
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, name, str(folder), *awaited],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    took, code = done.stdout.split()
    return float(took), code


def test_a_fork_waits_for_imports_of_the_engine(tmp_path: Path) -> None:
    took, code = imports(tmp_path, "engine.slowly", "engine.slowly")
    assert code == "0" and took > 0.3


def test_a_fork_waits_for_nobody_elses_imports(tmp_path: Path) -> None:
    """A program may run all its life in one."""
    took, code = imports(tmp_path, "slowly")
    assert code == "0" and took < 0.9


def test_a_fork_waits_for_programs_that_are_being_started() -> None:
    program = """
    begun = threading.Event()

    def start():
        with forks.no_fork:
            begun.set()
            time.sleep(0.5)
            over.append(True)

    over = []
    other = threading.Thread(target=start)
    other.start()
    begun.wait()
    pid = os.fork()
    if pid == 0:
        with forks.no_fork:  # it is free here
            os._exit(0)
    print(over, os.waitpid(pid, 0)[1])
    """
    text = "import os, threading, time, warnings\nwarnings.simplefilter('ignore')\n"
    done = subprocess.run(
        [sys.executable, "-c", text + "from engine import forks\n" + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["[True]", "0"], done.stderr


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.sweep) for k in range(1, 7))]
)
def test_forks_beside_threads_that_do_everything(seed: int, kernels: Path) -> None:
    """150 forks for each seed: of ten processes that use the engine for the first time.

    A child that does not end says on standard error where it hangs.
    """
    program = str(Path(__file__).with_name("forked.py"))
    for k in range(10):
        own = 1000 + 100 * (10 * seed + k)  # not compiled yet
        done = subprocess.run(
            [sys.executable, program, str(10 * seed + k), "15", str(own)],
            capture_output=True, text=True, timeout=170,
            env={**os.environ, "ENGINE_CACHE_DIR": str(kernels)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == "0 children, 0 launches of threads\n", done.stderr
