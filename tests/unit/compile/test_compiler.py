"""Compiling: once for each content, together, by many processes, and in spite of damage."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import config
from engine.compile.backend import Entry
from engine.compile.cpu import compiler
from engine.compile.cpu.compiler import compile_functions
from engine.compile.cpu.runner import call, new_launch
from engine.diagnostics import CompilerError, Span
from engine.ir.builder import Builder
from engine.ir.nodes import Function, Store, Var
from tests.unit.codegen.native_ir import F1, f32, kernel, tid


def filling(value: float) -> Function:
    out = Var("out", F1)

    def build(b: Builder) -> None:
        b.add(Store(out, (tid(b),), f32(value)))

    return kernel([out], build)


def filled(entry: Entry) -> float:
    out = np.zeros(3, np.float32)
    args = np.array([out.ctypes.data, 3, 4], np.int64).tobytes()
    call(entry, args, new_launch((3,)))
    assert out[0] == out[1] == out[2]
    return float(out[0])


def address(entry: Entry) -> int | None:
    return ctypes.cast(entry.code, ctypes.c_void_p).value


def test_entries_come_in_order_and_once() -> None:
    entries = compile_functions([filling(1), filling(2), filling(1)])
    assert [filled(e) for e in entries] == [1, 2, 1]
    assert entries[0] is entries[2]
    assert address(entries[0]) != address(entries[1])


def test_a_batch_is_one_compilation_and_one_object(fresh: Path, counted: Callable[[], int]) -> None:
    compile_functions([filling(v) for v in range(3)])
    assert counted() == 1
    assert len(list((fresh / "objects").iterdir())) == 1
    assert len(list((fresh / "index").iterdir())) == 3


def test_large_batches_are_shared_by_processors(
    counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "processors", lambda: 3)
    monkeypatch.setattr(compiler, "_BATCH_CHARS", 1000)
    entries = compile_functions([filling(v) for v in range(7)])
    assert counted() == 3
    assert [filled(e) for e in entries] == list(range(7))


def test_a_run_of_the_compiler_is_never_too_long(
    counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time limit does not depend on how many kernels a module has."""
    monkeypatch.setattr(compiler, "processors", lambda: 2)
    monkeypatch.setattr(compiler, "_MOST_CHARS", 1000)
    entries = compile_functions([filling(v) for v in range(7)])
    assert counted() > 3
    assert [filled(e) for e in entries] == list(range(7))


def test_only_what_is_missing_is_compiled(
    counted: Callable[[], int], forget: Callable[[], None]
) -> None:
    compile_functions([filling(1), filling(2)])
    compile_functions([filling(2), filling(1)])
    assert counted() == 1
    forget()
    entries = compile_functions([filling(1), filling(3), filling(2)])
    assert counted() == 2
    assert [filled(e) for e in entries] == [1, 3, 2]


def test_place_and_name_of_the_source_are_no_part_of_the_key(counted: Callable[[], int]) -> None:
    fn = filling(1)
    (first,) = compile_functions([fn])
    moved = replace(fn, name="other", span=Span("/elsewhere.py", 3, 1, 4, 1))
    (entry,) = compile_functions([moved])
    assert counted() == 1
    assert address(entry) == address(first)
    # Messages name the kernel that was launched, not the one that was compiled.
    assert first.symbol.startswith("test_kernel_")
    assert entry.symbol.startswith("other_")


def test_flags_are_part_of_the_key(
    counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_functions([filling(1)])
    monkeypatch.setattr(config, "debug_info", True)
    (entry,) = compile_functions([filling(1)])
    assert counted() == 2
    assert filled(entry) == 1


def test_headers_are_part_of_the_key(
    counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_functions([filling(1)])
    monkeypatch.setattr(compiler.headers, "hash_of", lambda folders: "other headers")
    compile_functions([filling(1)])
    assert counted() == 2


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    path.unlink()  # this process has the old file mapped
    if how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "garbage":
        path.write_bytes(b"\x00garbage{" * 50)


CHILD = """
import sys, time
from tests.unit.compile.test_compiler import filling, filled
from engine.compile.cpu.compiler import compile_functions
while time.time() < float(sys.argv[1]):
    pass
entries = compile_functions([filling(v) for v in range(3)])
assert [filled(e) for e in entries] == list(range(3))
"""


def children(root: Path, count: int, wait: float, code: str = CHILD) -> list[int]:
    """Exit codes of processes that compile four kernels, all at the same moment."""
    command = [sys.executable, "-c", code, str(time.time() + wait)]
    started = [subprocess.Popen(command, cwd=root) for _ in range(count)]
    return [child.wait(120) for child in started]


@pytest.mark.parametrize("how", ["missing", "truncated", "empty", "garbage"])
@pytest.mark.parametrize("folder", ["objects", "index"])
def test_damaged_entries_are_built_again(
    folder: str, how: str, root: Path, fresh: Path, counted: Callable[[], int]
) -> None:
    compile_functions([filling(v) for v in range(3)])
    for path in list((fresh / folder).iterdir()):
        damage(path, how)
    assert children(root, 1, 0) == [0]
    assert counted() == 2
    assert children(root, 1, 0) == [0]
    assert counted() == 2


@pytest.mark.parametrize("how", ["of another kernel", "no name"])
def test_entries_that_name_other_code_are_a_miss(
    how: str, fresh: Path, counted: Callable[[], int], forget: Callable[[], None]
) -> None:
    compile_functions([filling(1)])
    (first,) = (fresh / "index").iterdir()
    compile_functions([filling(2)])
    (second,) = set((fresh / "index").iterdir()) - {first}
    text = second.read_text()
    if how == "no name":
        entry = json.loads(first.read_text())
        entry["symbol"] = "\ud800" + entry["symbol"]
        text = json.dumps(entry)
    first.write_text(text)
    forget()
    assert filled(compile_functions([filling(1)])[0]) == 1
    assert counted() == 3


@pytest.mark.parametrize(
    "text", ["[]", "3", '{"schema": 1}', '{"schema": 2, "object": "x", "symbol": "y"}',
             '{"schema": 1, "object": "../../etc/passwd", "symbol": "y"}',
             '{"schema": 1, "object": 5, "symbol": null}']
)  # fmt: skip
def test_strange_metadata_is_a_miss(
    text: str, fresh: Path, counted: Callable[[], int], forget: Callable[[], None]
) -> None:
    compile_functions([filling(1)])
    (index,) = (fresh / "index").iterdir()
    index.write_text(text)
    forget()
    assert filled(compile_functions([filling(1)])[0]) == 1
    assert counted() == 2


def test_an_object_without_the_entry_point_is_built_again(
    fresh: Path, counted: Callable[[], int], forget: Callable[[], None]
) -> None:
    compile_functions([filling(1)])
    (index,) = (fresh / "index").iterdir()
    said = json.loads(index.read_text())
    index.write_text(json.dumps({**said, "symbol": "nowhere"}))
    forget()
    assert filled(compile_functions([filling(1)])[0]) == 1
    assert counted() == 2


def test_many_processes_compile_the_same_at_once(
    root: Path, fresh: Path, counted: Callable[[], int]
) -> None:
    assert children(root, 6, 3) == [0] * 6
    assert counted() == 1  # the others waited for the first
    assert list((fresh / "tmp").iterdir()) == []


def test_locks_only_save_work(root: Path, counted: Callable[[], int]) -> None:
    """Without locks, processes do the same work twice and still get what they want."""
    code = f"import engine.compile.cache as c; c.fcntl = None\n{CHILD}"
    assert children(root, 4, 3, code) == [0] * 4
    assert counted() >= 1


def test_a_failing_compiler(
    script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, fresh: Path
) -> None:
    path = script("""if "--version" in sys.argv:
    print("pretend 1.0")
    sys.exit()
print("kernels0.cpp:1:1: error: no space for widgets", file=sys.stderr)
sys.exit(3)""")
    monkeypatch.setenv("CXX", str(path))
    fn = replace(filling(1), name="advance", span=Span("model.py", 4, 1, 4, 9))
    with pytest.raises(CompilerError) as caught:
        compile_functions([fn])
    (d,) = caught.value.diagnostics
    assert d.code == "E302"
    assert "'advance'" in d.message
    assert "exit status 3" in d.message
    assert d.span == fn.span
    assert d.notes[1] == "first of them: kernels0.cpp:1:1: error: no space for widgets"
    (log,) = (fresh / "failed").iterdir()
    assert str(log) in d.notes[0]
    text = log.read_text()
    assert "no space for widgets" in text
    assert f"$ {path}" in text
    assert "ENG_EXPORT void advance_" in text
    assert list((fresh / "tmp").iterdir()) == []
    assert list((fresh / "index").iterdir()) == []


def test_a_compiler_that_makes_nothing(
    script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(script("print('pretend 1.0')")))
    with pytest.raises(CompilerError, match="made no output"):
        compile_functions([filling(1)])


def test_a_compiler_that_makes_rubbish(
    script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """if "-o" in sys.argv:
    open(sys.argv[sys.argv.index("-o") + 1], "w").write("rubbish")"""
    monkeypatch.setenv("CXX", str(script(body)))
    with pytest.raises(CompilerError, match="cannot be loaded"):
        compile_functions([filling(1)])


def test_a_hanging_compiler_is_stopped_with_its_children(
    script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh: Path
) -> None:
    pids = tmp_path / "pids"
    path = script(f"""if "--version" in sys.argv:
    sys.exit()
child = os.fork()
with open({str(pids)!r}, "a") as f:
    f.write(f"{{os.getpid()}}\\n")
time.sleep(100)
with open({str(pids)!r}, "a") as f:
    f.write("left alone\\n")""")
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setattr(config, "compile_timeout", 1.0)
    with pytest.raises(CompilerError, match="stopped after 1 seconds"):
        compile_functions([filling(1)])
    left = [int(pid) for pid in pids.read_text().split()]
    assert len(left) == 2
    for pid in left:
        while running(pid):  # its end was sent, and comes as soon as the system has time
            time.sleep(0.01)
    assert "left alone" not in pids.read_text()
    assert list((fresh / "tmp").iterdir()) == []


def running(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet waited for does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False
