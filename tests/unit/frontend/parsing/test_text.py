"""A kernel is made from the text of its own code, even if the file has changed since.

Python is the oracle: the function that was decorated still runs as it was compiled.
"""

from __future__ import annotations
import __future__

import doctest
import importlib
import linecache
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as wp
from engine import reading
from engine.frontend import lower_kernel
from engine.frontend.parsing.text import command_line_text
from engine.ir.interp import evaluate

# ---- files that are edited, reloaded and written anew

_TEXT = """{blank}import engine as wp

@wp.func
def f(x: float):
    return x + {a}

@wp.kernel
def k(y: wp.array(dtype=float)):
    y[0] = f(y[0]) {op} {b}

def make(n):
    @wp.kernel
    def made(y: wp.array(dtype=float)):
        y[0] = f(y[0]) {op} {b} + n
    return made

def plain(y: wp.array(dtype=float)):
    y[0] = y[0] {op} {b}
"""


@dataclass
class File:
    """A module on disk. Each text gets a time of its own, as Python's caches go by that."""

    path: Path
    when: float
    module: ModuleType | None = None
    kernels: list[Any] = field(default_factory=list)

    def edit(self, blank: int, a: int, b: int, op: str) -> None:
        self.path.write_text(_TEXT.format(blank="\n" * blank, a=float(a), b=float(b), op=op))
        self.when += 10.0
        os.utime(self.path, (self.when, self.when))

    def load(self) -> None:
        importlib.invalidate_caches()
        name = self.path.stem
        if self.module is None:
            self.module = importlib.import_module(name)
        else:
            importlib.reload(self.module)
        self.kernels.append(self.module.k)

    def make(self, n: int) -> None:
        assert self.module is not None
        self.kernels.append(self.module.make(float(n)))

    def decorate(self) -> None:
        """Makes a kernel of a function long after its import."""
        assert self.module is not None
        self.kernels.append(wp.kernel(self.module.plain))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("edited_")]:
        del sys.modules[name]


def by_python(kernel: Any) -> float:
    y = [2.0]
    kernel.func(y)
    return y[0]


def by_kernel(kernel: Any) -> float:
    y = np.array([2.0], dtype=np.float32)
    evaluate(lower_kernel(kernel.func, None, kernel.text), (y,))
    return float(y[0])


_edits = st.tuples(
    st.just("edit"), st.integers(0, 3), st.integers(0, 9), st.integers(0, 9), st.sampled_from("+-*")
)
_steps = st.one_of(
    _edits,
    st.tuples(st.just("load")),
    st.tuples(st.just("make"), st.integers(0, 9)),
    st.tuples(st.just("decorate")),
    st.tuples(st.just("look")),
)
_count = iter(range(10**9))


@pytest.mark.parametrize("age", [-(10.0**6), 10.0], ids=["an old file", "a new file"])
def test_histories_of_a_file(age: float, folder: Path) -> None:
    @settings(max_examples=60, deadline=None, database=None)
    @given(st.lists(_steps, min_size=1, max_size=8))
    def histories(steps: list[Any]) -> None:
        file = File(folder / f"edited_{next(_count)}.py", time.time() + age)
        file.edit(0, 1, 2, "+")
        file.load()
        for name, *args in steps:
            if name != "look":
                getattr(file, name)(*args)
            else:
                for kernel in file.kernels:
                    assert by_kernel(kernel) == by_python(kernel)
        for kernel in file.kernels:
            assert by_kernel(kernel) == by_python(kernel)

    histories()


def test_a_text_that_is_gone_is_refused(folder: Path) -> None:
    """A file that was edited before anything in it was decorated: its old text is nowhere."""
    path = folder / f"edited_{next(_count)}.py"
    text = "import engine as wp\n\ndef plain(y: wp.array(dtype=float)):\n    y[0] = {}\n"
    path.write_text(text.format("y[0] + 1.0"))
    module = importlib.import_module(path.stem)
    path.write_text(text.format("y[0] - 1.5"))
    with pytest.raises(wp.KernelError, match="has changed") as caught:
        by_kernel(wp.kernel(module.plain))
    assert caught.value.diagnostics[0].code == "E111"


def test_errors_show_the_line_that_was_read(folder: Path) -> None:
    file = File(folder / f"edited_{next(_count)}.py", time.time())
    file.edit(0, 1, 2, "+")
    file.path.write_text(file.path.read_text().replace("+ n", "+ nothing"))
    file.load()
    file.make(1)
    file.edit(3, 4, 5, "-")
    with pytest.raises(wp.KernelError) as caught:
        by_kernel(file.kernels[-1])
    assert "    y[0] = f(y[0]) + 2.0 + nothing" in str(caught.value)


def test_a_file_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / f"edited_{next(_count)}.py"
    one = "@wp.kernel\ndef k{0}(y: wp.array(dtype=float)):\n    y[0] = {0}.0\n\n"
    path.write_text("import engine as wp\n\n" + "".join(one.format(k) for k in range(2000)))
    read: list[str] = []

    def counted(filename: str, real: Any = reading.read) -> Any:
        read.append(filename)
        return real(filename)

    monkeypatch.setattr(reading, "read", counted)
    module = importlib.import_module(path.stem)
    assert by_kernel(module.k1999) == 1999.0
    assert read.count(str(path)) == 1


# ---- programs without a file


def program(constant: int, shift: int) -> str:
    return (
        "\n" * shift + "@wp.kernel\ndef k(y: wp.array(dtype=float)):\n"
        f"    y[0] = y[0] + {constant}.0\n"
    )


@settings(max_examples=40, deadline=None, database=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 1), st.booleans(), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
@pytest.mark.parametrize("name", ["<string>", "<cell>"])
def test_programs_that_share_a_name(name: str, programs: list[tuple[int, int, bool, bool]]) -> None:
    """Each is its own text or refused: never another's. One that is entered is not refused."""
    linecache.cache.pop(name, None)
    for constant, shift, entered, main in programs:
        text = program(constant, shift)
        if entered:
            linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        space: dict[str, Any] = {"wp": wp, "__name__": "__main__" if main else "made"}
        exec(compile(text, name, "exec", dont_inherit=True), space)
        try:
            assert by_kernel(space["k"]) == 2.0 + constant
        except wp.KernelError as error:
            assert not entered and error.diagnostics[0].code == "E111"
    linecache.cache.pop(name, None)


def test_in_a_doctest() -> None:
    text = """
    >>> import engine as wp
    >>> @wp.kernel
    ... def k(y: wp.array(dtype=float)):
    ...     y[0] = y[0] + 3.0
    >>> y = wp.zeros(1)
    >>> wp.launch(k, dim=1, outputs=[y])
    >>> print(y)
    [3.]
    """
    test = doctest.DocTestParser().get_doctest(text, {}, "a test", "nowhere.py", 0)
    said: list[str] = []
    done = doctest.DocTestRunner().run(test, out=said.append)
    assert said == [] and done.attempted == 5


def test_functions_of_a_future() -> None:
    """Flags of the compiler that a notebook keeps from cell to cell."""
    text = "@wp.kernel\ndef k(y: wp.array(dtype=float)):\n    y[0] = 4.0\n"
    name = "<future cell>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"wp": wp}
    exec(compile(text, name, "exec", flags=__future__.annotations.compiler_flag), space)
    assert by_kernel(space["k"]) == 4.0


# ---- the command line

_TEXTS = ["x = 1", "-c", "print('-W')", ""]
_BEFORE: list[list[str]] = [
    [], ["-W", "ignore"], ["-Wignore"], ["-X", "dev"], ["-Xdev"], ["-I", "-B"], ["-IB"], ["-u"],
    ["--check-hash-based-pycs", "always"], ["-bWerror"], ["-OO", "-q", "-W", "c", "-X", "c"],
]  # fmt: skip


@pytest.mark.parametrize("before", _BEFORE, ids=" ".join)
@pytest.mark.parametrize("text", _TEXTS)
def test_the_text_of_a_command_line(before: list[str], text: str) -> None:
    for after in ([], ["-c", "other"], ["file.py", "-W"]):
        assert command_line_text(["python", *before, "-c", text, *after]) == text
        if text:
            assert command_line_text(["python", *before, f"-c{text}", *after]) == text
            assert command_line_text(["python", *before, f"-Bc{text}", *after]) == text
        assert command_line_text(["python", *before, "-m", "module", "-c", text]) is None
        assert command_line_text(["python", *before, "file.py", "-c", text]) is None
        assert command_line_text(["python", *before, "-", "-c", text]) is None
    assert command_line_text(["python", *before]) is None


_COMMAND = """
import engine as wp
@wp.kernel
def k(a: wp.array(dtype=float)):
    a[0] = 2.0
other = '''
@wp.kernel
def k(a: wp.array(dtype=float)):
    a[0] = 3.0
'''
space = {'wp': wp, '__name__': '__main__'}
exec('\\n' + other, space)
try:
    space['k'].ir
except wp.KernelError as error:
    print(error.diagnostics[0].code)
a = wp.zeros(1)
wp.launch(k, dim=1, outputs=[a])
print(a)
"""


@pytest.mark.parametrize("options", [["-W", "ignore"], ["-Xutf8", "-B"], ["-O"]], ids=" ".join)
def test_kernels_of_a_command_line(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *options, "-c", _COMMAND, "an argument"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.stderr, done.stdout.splitlines()) == ("", ["E111", "[2.]"])
