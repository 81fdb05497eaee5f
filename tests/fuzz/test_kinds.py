"""Files of the user's that are no regular files any more: nothing waits, nothing fills memory."""

from __future__ import annotations

import ast
import linecache
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import adtool
import engine as wp
from adtool import cli, configuration, fingerprints, overlay, strays, touched
from adtool.accuracy import store
from adtool.captures.container import CaptureReader
from adtool.captures.sniff import is_capture
from adtool.exits import ToolError
from adtool.fixes import comments, search
from adtool.fixes import files as fixed
from adtool.fixes.source import source_of
from adtool.imports import Imports
from adtool.job import Target
from adtool.page.snippets import snippet
from adtool.page.sources import reports_in
from adtool.report import Finding
from adtool.repository import Changes
from adtool.sources import tree_of
from adtool.suppressions import Comment, comments_of
from adtool.target import TargetError, run_target
from engine import reading
from engine.diagnostics import Span
from tests.sweeps import reduced

ROOT = Path(__file__).parents[2]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def _huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 37)  # without a block on the disk


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # its name may not be long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _nothing(path: Path) -> None:
    pass


KINDS = (_pipe, _zeros, _terminal, _huge, _folder, _socket, _loop, _nothing)


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    """What waits is ended, what takes memory fails; and `linecache` stays what it was."""

    def late(*_: Any) -> None:
        raise AssertionError("it waits")

    before, limit = dict(linecache.cache), resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, late)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20), limit[1]))
    signal.alarm(20)
    yield
    signal.alarm(0)
    resource.setrlimit(resource.RLIMIT_AS, limit)
    signal.signal(signal.SIGALRM, handler)
    linecache.cache.clear()
    linecache.cache.update(before)


def finding(path: Path) -> Any:
    return Finding(
        "G001", "wrong-gradient", "error", "m", "", "k", 0, 0, str(path), 1, 1, 1, 2
    )  # fmt: skip


def _commands() -> Any:
    found: Any = typer.main.get_command(cli.app)
    return found.commands


def _of_kernel(path: Path) -> Any:
    """Kernels that are made of code with that file's name."""
    scope: dict[str, Any] = {"wp": wp, "__name__": "m", "__file__": str(path)}
    text = "@wp.kernel\ndef k(x: wp.array(dtype=float)):\n    x[0] = 1.0\n"
    exec(compile(text, str(path), "exec"), scope)
    with pytest.raises(wp.EngineError, match="E111"):
        wp.launch(scope["k"], 1, [wp.zeros(1)])


def _of_class(path: Path) -> Any:
    from engine.foreign import places

    scope: dict[str, Any] = {"__name__": "odd_module", "__file__": str(path)}
    exec(compile("class K:\n    def f(self, x): return x\n", str(path), "exec"), scope)
    sys.modules["odd_module"] = module = type(sys)("odd_module")
    module.__dict__.update(scope)
    try:
        places.class_line(scope["K"])
        places.results(scope["K"].f, 2, [])
        places.definition(scope["K"].f)
    finally:
        del sys.modules["odd_module"]


# All that reads a file of the user's: a row each. None waits, or reads more than a source has.
READERS: dict[str, Callable[[Path], Any]] = {
    "lines": lambda p: reading.getlines(str(p)),
    "line": lambda p: reading.getline(str(p), 1),
    "lines of a module": lambda p: reading.getlines(str(p), {"__name__": "m"}),
    "text": lambda p: reading.read(p),
    "overlay": lambda p: overlay.lines(str(p)),
    "tree": lambda p: tree_of(str(p)),
    "fingerprint": lambda p: list(fingerprints.marked([finding(p)])),
    "snippet of the page": lambda p: snippet(finding(p), True),
    "suppressions": lambda p: list(comments_of(str(p))),
    "unused comment": lambda p: comments.removed(Comment(str(p), 1, 1, 2, ("G001",))),
    "source to fix": lambda p: source_of(str(p)),
    "unchanged before a fix": lambda p: fixed.write([fixed.Change(str(p), b"", b"x")]),
    "read for a fix": lambda p: search._checked(str(p), b"x\n"),
    "imports": lambda p: list(Imports((), os.path.lexists, lambda: [str(p)]).reach(str(p))),
    "options of the script": lambda p: strays.unused(Target(str(p), ("--x",)), ("--x",)),
    "script": lambda p: run_target(Target(str(p))),
    "is it a capture": lambda p: is_capture(str(p)),
    "capture": lambda p: CaptureReader(p),
    "baseline": store.read,
    "report": reports_in,
    "kernel": _of_kernel,
    "class": _of_class,
    "settings": lambda p: configuration.settings(p.parent, _commands()),
    "settings at a glance": lambda p: configuration.is_set(p.parent),
    "settings since": lambda p: touched._settings_changed(
        Changes(str(p.parent), "HEAD", frozenset([str(p)])), p.parent),
    "snippet of a diagnostic": lambda p: str(
        wp.KernelError(wp.diagnostics.Diagnostic("E103", "m", Span(str(p), 1, 1, 1, 2)))),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__[1:])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_nothing_waits_and_nothing_fills_memory(
    reader: Callable[[Path], Any], kind: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / configuration.NAME
    kind(path)
    try:
        reader(path)
    except (ToolError, TargetError, OSError) as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__[1:])
def test_a_source_that_was_read_before(kind: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("x = 1\n")
    assert reading.getlines(str(path)) == ["x = 1\n"]
    path.unlink()
    kind(path)
    linecache.checkcache(str(path))
    assert reading.getlines(str(path)) == []
    if path.exists() or path.is_symlink():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    path.write_text("y = 2\n")
    linecache.checkcache(str(path))
    assert reading.getlines(str(path)) == ["y = 2\n"]


@pytest.mark.parametrize("data", [
    b"a = 1\nb = 2", b"\xef\xbb\xbfa = 1\r\nb = 2\r", b"# coding: latin-1\ns = '\xe9'\n", b"",
    b"s = '\xe9'\n", b"# coding: nothing\n", b"a\x0cb\n\x0c\n", b"a\0b\n",
])  # fmt: skip
@pytest.mark.parametrize("linked", [False, True])
def test_texts_are_those_of_linecache(data: bytes, linked: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_bytes(data)
    if linked:
        path = tmp_path / "link.py"
        path.symlink_to("m.py")
    expected = linecache.getlines(str(path))
    linecache.cache.pop(str(path), None)
    assert reading.getlines(str(path)) == expected
    assert linecache.getlines(str(path)) == expected


def test_a_relative_name_is_found_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m_on_path.py").write_text("x = 1\n")
    os.mkfifo(tmp_path / "pipe_on_path.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert reading.getlines("m_on_path.py") == ["x = 1\n"]
    assert reading.getlines("pipe_on_path.py") == []


# ---- nothing else reads files

# Files that are not the user's, or that are opened by another way that holds them to be regular.
_OTHERWISE = {
    "adtool/captures/container.py", "adtool/captures/sniff.py", "adtool/accuracy/store.py",
    "engine/private.py", "engine/reading.py",
}  # fmt: skip
_OWN = {  # the tool's and the engine's own files, the cache, the system's, the folder of one run
    "adtool/child.py", "adtool/faults.py", "adtool/jacobian_report.py", "adtool/kernel_listing.py",
    "adtool/memory.py", "adtool/page/document.py", "adtool/page/sources.py", "adtool/session.py",
    "adtool/status.py", "adtool/traces.py", "adtool/schemas/__init__.py", "adtool/keeping.py",
    "adtool/executors/base.py", "adtool/executors/processes.py", "adtool/executors/ray.py",
    "adtool/executors/worker.py", "adtool/streams.py", "adtool/writing.py",
    "adtool/commands/step.py", "adtool/commands/reduce.py", "adtool/interrupts.py",
    "adtool/remarks.py", "adtool/surroundings.py",
    "engine/codegen/headers.py", "engine/compile/cache.py", "engine/compile/sources.py",
    "engine/compile/cpu/build.py", "engine/compile/cpu/compiler.py", "engine/compile/cpu/pool.py",
    "engine/compile/cpu/precompiled.py", "engine/compile/cpu/shared.py",
    "engine/compile/cpu/toolchain.py", "engine/compile/cuda/__init__.py",
    "engine/interop/ffi/library.py", "engine/tape/graph/visualize.py",
}  # fmt: skip
_OPENING = {"open", "open_code", "read_text", "read_bytes", "getlines", "getline", "updatecache",
            "getsource", "getsourcelines", "ZipFile"}  # fmt: skip


def _opens(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            f = node.func
            name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
            of = (
                f.value.id if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) else ""
            )
            taken = name in ("getlines", "getline") and not of  # of `engine.reading`
            if name in _OPENING and not taken and not (name == "open" and of in ("self", "seen")):
                yield name


def test_nothing_else_opens_files() -> None:
    found = set()
    for package in (adtool, wp):
        folder = Path(str(package.__file__)).parent
        for file in folder.rglob("*.py"):
            name = file.relative_to(folder.parent).as_posix()
            if "selftest/corpus" not in name and any(_opens(file)):
                found.add(name)
    pinned = {"engine/foreign/places.py"}  # which has Python read, and says what it may not
    # These open something that is not a file.
    others = {"adtool/in_process.py", "adtool/pytest_plugin.py", "adtool/steps.py"}
    assert found - others - pinned == (found & (_OTHERWISE | _OWN))
    assert pinned <= found


# ---- whole runs

_WRONG = """
import os, socket, engine as wp
@wp.func
def cube(x: float):
    return x * x * x
@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * x * adj_ret
@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])
x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(cubes, 2, [x], [y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
os.unlink(__file__)
"""
_BECOMES = {
    "pipe": "os.mkfifo(__file__)",
    "zeros": "os.symlink('/dev/zero', __file__)",
    "huge": "open(__file__, 'wb').truncate(1 << 37)",
    "folder": "os.mkdir(__file__)",
}
_RAISES = "\nraise ValueError('so it ends')"
_COMMANDS = {
    "text": ["check", "s.py"],
    "all formats": ["check", *(f"--out={f}=out.{f}" for f in
                              ("json", "sarif", "github", "junit", "markdown")), "s.py"],
    "page": ["report", "--out", "out.html", "s.py"],
    "fix": ["check", "--fix", "--unsafe-fixes", "s.py"],
    "capture": ["capture", "--check", "s.py"],
    "show": ["show", "cubes", "s.py"],
    "graph": ["graph", "s.py"],
    "jacobian": ["jacobian", "--kernel", "cubes", "s.py"],
}  # fmt: skip


@pytest.mark.parametrize("ends", ["", _RAISES], ids=["ends", "raises"])
@pytest.mark.parametrize("kind", _BECOMES)
@pytest.mark.parametrize("command", reduced(_COMMANDS, lambda c: c in ("text", "all formats")))
def test_a_source_that_became_another_kind_of_file(
    kind: str, command: str, ends: str, tmp_path: Path
) -> None:
    signal.alarm(0)
    (tmp_path / "s.py").write_text(_WRONG + _BECOMES[kind] + ends + "\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "adtool", *_COMMANDS[command]], env=env, cwd=tmp_path,
        capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == (2 if ends else done.returncode) and done.returncode in (0, 1, 2)
    assert "bug in adtool" not in said and "MemoryError" not in said, said
    if ends:
        assert "the script raised ValueError" in said and "line 20" in said, said
    elif command == "text":
        assert "error[G001]" in done.stdout, said
