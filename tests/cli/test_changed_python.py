"""Programs that change Python itself: what the tool runs on is put back, or they are blamed."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Tool

HEAD = """
import ast, builtins, contextlib, enum, functools, gc, importlib.machinery, inspect, io, json
import linecache, math, os, pathlib, re, resource, signal, struct, sys, threading, time
import traceback, warnings
import numpy as np
import engine as wp

def refuse(*args, **keywords):
    raise RuntimeError("refused")

class Finder:
    def find_spec(self, *args):
        raise RuntimeError("refused by a finder")
"""

KERNEL = """
@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i]

x, y = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True), wp.zeros(3, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, 3, [x], [y])
tape.backward(grads={y: wp.ones(3)})
"""

# Each by itself, and in this order all at once: those that hinder the ones after them come last.
CHANGES = {
    "default_rng": "np.random.default_rng = None",
    "recursion": "sys.setrecursionlimit(60)",
    "json": "json.dumps = json.loads = json.dump = json.load = None",
    "replace": "os.replace = refuse",
    "open": "os.open = io.open = builtins.open = None",
    "stat": "os.stat = os.getpid = os.write = refuse",
    "clock": "time.monotonic = time.time = time.perf_counter = refuse",
    "threads": "threading.enumerate = threading.Thread.start = refuse",
    "signals": "signal.signal = signal.alarm = refuse",
    "garbage": "gc.freeze = gc.collect = refuse",
    "sources": "linecache.getlines = inspect.getsource = re.compile = refuse",
    "tracebacks": "traceback.format_exc = traceback.extract_tb = refuse",
    "numbers": "math.isfinite = struct.pack = None",
    "partial": "functools.partial = refuse",
    "limits": "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))",
    "loading": "sys.setdlopenflags(0)",
    "environment": "os.environ.clear()",
    "folder": "os.chdir('/')",
    "frames": "sys._getframe = sys.getrecursionlimit = sys.audit = sys.flags = None",
    "stdout": "del sys.stdout",
    "stderr": "del sys.stderr",
    "path": "sys.path[:] = []",
    "hooks": "sys.path_hooks.clear(); sys.path_importer_cache.clear()",
    "finder": "sys.meta_path.insert(0, Finder())",
    "finders": "sys.meta_path.clear()",
    "modules": "sys.modules.clear()",
    "import": "builtins.__import__ = refuse",
    "methods": "pathlib.Path.write_text = refuse; "
    "json.JSONEncoder.encode = ast.NodeVisitor.visit = enum.Enum.__hash__ = refuse; "
    "contextlib.suppress.__exit__ = traceback.FrameSummary.__init__ = refuse",
    "loaders": "importlib.machinery.SourceFileLoader.get_data = refuse",
    "states": "warnings.filters = 5; linecache.cache = None",
    "memory": "resource.setrlimit(resource.RLIMIT_AS, (10**8, resource.RLIM_INFINITY))",
    "blocked": "[sys.modules.update({n: None}) for n in list(sys.modules)]",
    "folders": "sys.path[:] = [5, None, chr(0)]; sys.path_hooks.insert(0, refuse)",
    "programs": "os.environ.update(PATH='', HOME='/nonexistent')",
    "builtins": "builtins.isinstance = builtins.zip = None; del builtins.len",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_changed_is_put_back(adtool: Tool, change: str) -> None:
    adtool.script(HEAD + KERNEL + change + "\n")
    done = adtool("check", "script.py")
    assert done.returncode == 0, done.stderr
    assert "1 pair checked" in done.stdout and not done.stderr


def test_all_at_once(adtool: Tool) -> None:
    """Also a wrong gradient is told with its place."""
    wrong = KERNEL.replace("wp.sin(x[i])", "f(x[i])")
    function = """
@wp.func
def f(x: float):
    return wp.sin(x)

@wp.func_grad(f)
def adj_f(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * adj_ret
"""
    text = HEAD + function + wrong + "\n".join(CHANGES.values()) + "\n"
    adtool.script(text)
    report = adtool.report("script.py")
    (found,) = [f for f in report["findings"] if f["severity"] == "error"]
    line = text.splitlines().index("def adj_f(x: float, adj_ret: float):") + 1
    assert (found["code"], found["line"]) == ("G001", line)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("np.asarray = None", "numpy.asarray"),
        ("np.linalg.norm = refuse", "numpy.linalg.norm"),
        ("[setattr(wp, n, refuse) for n, v in list(vars(wp).items()) if callable(v)]", "engine."),
    ],
)
def test_the_script_is_blamed(adtool: Tool, change: str, name: str) -> None:
    adtool.script(HEAD + KERNEL + change + "\n")
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert f"error: the script replaced `{name}" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr and "bug" not in done.stderr


@pytest.mark.parametrize("change", ["builtins.open = None", "builtins.__import__ = refuse",
                                    "sys.meta_path.clear(); sys.path_hooks.clear()",
                                    "json.loads = os.replace = None"])  # fmt: skip
def test_changed_before_the_kernels(adtool: Tool, change: str) -> None:
    """It passes, or the script is told at its line: never a fault of the tool."""
    adtool.script(HEAD + change + "\n" + KERNEL.replace("x[i])", "x[i] + 0.25)"))
    done = adtool("check", "script.py")
    assert "bug in adtool" not in done.stderr
    if done.returncode:
        assert done.stderr.count("error: ") == 1 and "script.py:" in done.stderr
        assert "adtool/" not in done.stderr and "engine/" not in done.stderr


@pytest.mark.parametrize("kind", ["os.mkfifo(path)", "os.symlink('/dev/zero', path)",
                                  "os.mkdir(path)"])  # fmt: skip
@pytest.mark.parametrize("name", ["result.json", "faults", "traces.json", "crash.txt"])
def test_other_kinds_of_files_in_the_folder_of_the_run(adtool: Tool, kind: str, name: str) -> None:
    """What the child leaves is not waited for, nor read without an end."""
    adtool.script(
        HEAD + KERNEL + "frame = sys._getframe()\n"
        "while 'folder' not in frame.f_locals:\n    frame = frame.f_back\n"
        "folder = str(frame.f_locals['folder'])\n"
        f"assert 'job.json' in os.listdir(folder)\npath = os.path.join(folder, {name!r})\n"
        f"if os.path.exists(path):\n    os.unlink(path)\n{kind}\n"
        "open('it is there', 'w').close()\nos._exit(0)\n"
    )
    done = adtool("check", "--timeout", "60", "script.py")
    assert (adtool.folder / "it is there").exists()
    assert done.returncode == 2 and done.stderr.count("error: ") == 1, done.stderr
    assert "Traceback" not in done.stderr and "bug in adtool" not in done.stderr


def test_a_thread_that_goes_on_changing(adtool: Tool) -> None:
    adtool.script(
        HEAD + KERNEL + "def change():\n    time.sleep(0.02)\n    while True:\n"
        "        builtins.isinstance = refuse\n"
        "threading.Thread(target=change, daemon=True).start()\n"
    )
    done = adtool("check", "script.py")
    assert done.returncode == 2 and done.stderr.count("error: ") == 1, done.stderr
    assert "Traceback" not in done.stderr and "bug in adtool" not in done.stderr
    assert "script" in done.stderr
