"""A kernel cache of each test's own, and a compiler that counts how often it runs."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.compile import cache
from engine.compile.cpu import libraries, toolchain


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A process that has loaded nothing, with an empty cache. Gives the cache's folder."""
    folder = tmp_path / "kernels"
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(folder))
    forget()
    yield folder
    forget()


def forget() -> None:
    """Makes this process one that has loaded no kernel and found no compiler."""
    _forget_kernels()
    cache._open.cache_clear()
    cache._instead.clear()
    toolchain._find.cache_clear()


def _forget_kernels() -> None:
    """Makes this process one that has loaded no kernel: it knows the cache and the compiler."""
    libraries.loader.entries.clear()
    libraries.loader.libraries.clear()


@pytest.fixture
def forget_kernels() -> Callable[[], None]:
    return _forget_kernels


@pytest.fixture(name="forget")
def _forget() -> Callable[[], None]:
    return forget


Script = Callable[[str], Path]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a Python program that can be run as a compiler."""

    def write(body: str) -> Path:
        path = tmp_path / "compiler"
        path.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


@pytest.fixture
def counted(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Puts a wrapper around the compiler. Gives the number of compilations so far."""
    real = toolchain.find_toolchain().command
    log = tmp_path / "runs"
    path = script(
        f"""if "--version" not in sys.argv:
    with open({str(log)!r}, "a") as f:
        f.write("x")
os.execvp({real[0]!r}, {list(real)!r} + sys.argv[1:])"""
    )
    monkeypatch.setenv("CXX", str(path))
    forget()
    return lambda: len(log.read_text()) if log.exists() else 0
