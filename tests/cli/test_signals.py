"""Signals at any time: the tool ends soon, with a line, and leaves nothing behind.

Delays are counted from when the tool's handlers are there, which is the first thing that it does:
what Python itself does before is not ours. Each process that a run starts has a mark in its
environment, by which what is left of it is found, whatever session it has put itself into.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

PROGRAM = """
import engine as wp

@wp.kernel
def scaled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] + 3.0 * x[i]

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for _ in range(4):
        wp.launch(scaled, 3, [x], [y])
tape.backward(grads={y: wp.ones_like(y)})
"""

WRONG = """
import engine as wp

@wp.func
def square(x: float):
    return x * x

@wp.func_grad(square)
def adj_square(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * x * adj_ret

@wp.kernel
def wrong(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = square(x[i])

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for _ in range(4):
        wp.launch(wrong, 3, [x], [y])
"""

# Each with its status where no signal comes in time, and how long it takes at least.
COMMANDS: dict[str, tuple[tuple[str, ...], int, float]] = {
    "check": (("check", "--out", "json=out.json", "a.py"), 0, 1.2),
    "check several": (("check", "-j", "2", "--each", "a.py", "b.py", "c.py"), 0, 1.2),
    "baseline": (("baseline", "write", "--baseline", "out.jsonl", "a.py"), 0, 1.2),
    "capture": (("capture", "--out", "out.adt", "a.py"), 0, 0.8),
    "check a capture": (("check", "run.adt"), 1, 0.9),
    "reduce": (("reduce", "--out", "out.adt", "run.adt"), 0, 0.9),
    "graph": (("graph", "--out", "out.dot", "a.py"), 0, 0.8),
    "report": (("report", "--out", "out.html", "a.py"), 0, 1.2),
    "jacobian": (("jacobian", "--kernel", "scaled", "a.py"), 0, 0.9),
    "trace": (("trace", "a.py"), 0, 0.8),
    "doctor": (("doctor",), 0, 1.2),
    "selftest": (("selftest", "--quick"), 0, 1.2),
    "help": (("--help",), 0, 0.15),
}
KINDS = {"SIGINT": ("SIGINT",), "SIGTERM": ("SIGTERM",), "SIGHUP": ("SIGHUP",),
         "five": ("SIGINT", "SIGTERM", "SIGINT", "SIGHUP", "SIGTERM")}  # fmt: skip
MARK = "ADTOOL_TEST_MARK"


@pytest.fixture
def there(adtool: Tool) -> Tool:
    """The tool in a folder with programs, a capture, and temporary files of its own."""
    for name in ("a", "b", "c"):
        adtool.script(PROGRAM, f"{name}.py")
    (adtool.folder / "temporary").mkdir()
    adtool.env["TMPDIR"] = str(adtool.folder / "temporary")
    return adtool


@pytest.fixture(scope="module")
def capture(kernels: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    tool = Tool(tmp_path_factory.mktemp("capture"), root, kernels)
    tool.script(WRONG)
    done = tool("capture", "--out", "run.adt", "script.py")
    assert done.returncode == 0, done.stderr
    return (tool.folder / "run.adt").read_bytes()  # a gradient is wrong in it


def caught(pid: int) -> bool:
    """Whether the process has a handler for SIGTERM, which Python itself has not."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def marked(mark: str) -> Iterator[str]:
    """Processes that carry a mark, with their command lines."""
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    yield f"{folder.name}: {words.decode(errors='replace')[:200]}"


def soon_true(what: Callable[[], object], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def begun(tool: Tool, args: tuple[str, ...], mark: str) -> Any:
    tool.env[MARK] = mark
    process = tool.start(
        *args, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert soon_true(lambda: caught(process.pid) or process.poll() is not None, 30.0)
    return process


def left(tool: Tool) -> list[str]:
    """Files and folders of the tool that only a run that goes on may have."""
    found = [*(tool.folder / "temporary").glob("adtool-*"), *tool.folder.glob(".adtool-*")]
    return [str(p) for p in (*found, *tool.folder.glob(".adtool/.last-*"))]


def undocumented(tool: Tool) -> list[str]:
    """What a killed run has left in the folder, and not as docs/captures.md says."""
    text = (Path(tool.root) / "docs" / "captures.md").read_text()
    listed = re.findall(r"^- `(.+?)`: ", text.partition("may leave\n")[2], re.MULTILINE)
    known = {p.replace("$TMPDIR", "temporary") for p in listed}
    known |= {"temporary", ".adtool", ".adtool/.gitignore", ".adtool/last", "*.py", "run.adt"}
    found = [
        *tool.folder.glob("*"),
        *tool.folder.glob(".adtool/*"),
        *tool.folder.glob("temporary/*"),
    ]
    names = [str(p.relative_to(tool.folder)) for p in found]
    return [n for n in names if n != "__pycache__" and not any(fnmatch(n, k) for k in known)]


def interrupted(tool: Tool, name: str, kind: str, delay: float, group: bool, seed: int) -> None:
    """Runs a command and sends signals. Asserts all that is promised."""
    args, usual, _ = COMMANDS[name]
    mark = f"{os.getpid()}-{seed}-{name}"
    process = begun(tool, args, mark)
    time.sleep(delay)
    send = os.killpg if group else os.kill
    for number in KINDS[kind]:
        with suppress(ProcessLookupError):
            send(process.pid, getattr(signal, number))
        time.sleep(0.01)
    since = time.monotonic()
    out, err = process.communicate(timeout=60)
    took = time.monotonic() - since
    told = f"{name} {kind} {delay:.3f} group={group}: {process.returncode}\n{out}\n{err}"
    assert "Traceback" not in out + err and "Exception ignored" not in err, told
    assert process.returncode in (2, usual), told
    said = [x for x in err.splitlines() if x.startswith("error: interrupted ")]
    if process.returncode != usual or said:
        assert process.returncode == 2, told
        assert 1 <= len(said) <= (2 if name == "check several" else 1), told
        assert took < 8.0, told  # a busy machine takes its time to start Python
    assert soon_true(lambda: not list(marked(mark))), (told, list(marked(mark)))
    assert not left(tool), (told, left(tool))
    if process.returncode == usual and not said:
        written = [a.rpartition("=")[2] for a in args if "out." in a]
        assert all((tool.folder / w).exists() for w in written), told
    whole(tool, told)


def whole(tool: Tool, told: str) -> None:
    """What was written is whole, or is not there; it is removed."""
    if (path := tool.folder / "out.json").exists():
        json.loads(path.read_text())
        path.unlink()
    if (path := tool.folder / "out.jsonl").exists():
        assert sum(bool(json.loads(x)) for x in path.read_text().splitlines() if x) == 3, told
        path.unlink()
    if (path := tool.folder / "out.html").exists():
        assert path.read_text().rstrip().endswith("</html>"), told
        path.unlink()
    for name in ("out.adt", "out.dot"):
        if (path := tool.folder / name).exists():
            assert path.stat().st_size > 100, told
            path.unlink()


def case(name: str, kind: str, seed: int) -> tuple[float, bool, int]:
    chance = random.Random(f"{name} {kind} {seed}")
    return chance.uniform(0.0, COMMANDS[name][2]), chance.random() < 0.5, seed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_ends_a_command(there: Tool, capture: bytes, name: str, kind: str) -> None:
    (there.folder / "run.adt").write_bytes(capture)
    interrupted(there, name, kind, *case(name, kind, 0))


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(1, 21))
def test_a_signal_ends_a_command_at_any_time(there: Tool, capture: bytes, seed: int) -> None:
    (there.folder / "run.adt").write_bytes(capture)
    for name in COMMANDS:
        for kind in KINDS:
            interrupted(there, name, kind, *case(name, kind, seed))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.sweep) for k in range(1, 17))]
)
def test_a_kill_loses_nothing(there: Tool, capture: bytes, seed: int) -> None:
    """A process that is killed cleans nothing up; nothing of it is in the way of the next."""
    (there.folder / "run.adt").write_bytes(capture)
    chance = random.Random(seed)
    for name in COMMANDS if seed else ("check", "check several", "baseline"):
        args, _, longest = COMMANDS[name]
        mark = f"{os.getpid()}-kill-{seed}-{name}"
        process = begun(there, args, mark)
        time.sleep(chance.uniform(0.0, longest))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in out + err
        whole(there, name)
        # The system ends the children; a compiler of theirs comes to its end.
        assert soon_true(lambda: not list(marked(mark)), 20.0), list(marked(mark))
        assert not undocumented(there), name
    done = there("check", "a.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_runs_for_a_parent_that_is_gone(there: Tool) -> None:
    """It may be killed while the child starts, which the system then does not tell the child."""
    there.script("import time\ntime.sleep(60)\n")
    mark = f"{os.getpid()}-gone"
    process = begun(there, ("check", "script.py"), mark)
    assert soon_true(lambda: len(list(marked(mark))) == 3, 30.0)  # the run is there
    process.kill()
    process.communicate(timeout=60)
    assert soon_true(lambda: not list(marked(mark)), 20.0)
    names = {Path(name).name.partition("-")[0] for name in left(there)}
    assert names == {"adtool", ".last"}
    assert not undocumented(there)


def test_of_an_interrupt_that_python_drops_nothing_is_said(adtool: Tool) -> None:
    adtool.script(
        "class Gone:\n    def __init__(self, error):\n        self.error = error\n"
        "    def __del__(self):\n        raise self.error\n"
        "Gone(KeyboardInterrupt())\nGone(ValueError('shown'))\n"
    )
    done = adtool("check", "script.py")
    assert "KeyboardInterrupt" not in done.stderr and "ValueError: shown" in done.stderr
