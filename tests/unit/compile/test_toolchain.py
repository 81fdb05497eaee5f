"""Finding the compiler."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import config
from engine.compile.cpu import toolchain
from engine.compile.cpu.compiler import compile_functions
from engine.compile.cpu.toolchain import find_toolchain
from engine.diagnostics import CompilerError
from tests.unit.compile.test_compiler import filled, filling


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any. Gives the only folder of its PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    real = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name == "ziglang" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    return folder


def test_no_compiler(no_compiler: Path) -> None:
    with pytest.raises(CompilerError) as caught:
        compile_functions([filling(1)])
    (d,) = caught.value.diagnostics
    assert d.code == "E301"
    assert "pip install ziglang" in d.help
    assert "g++" in d.help
    assert "CXX" in d.help


def pretend(path: Path, version: str) -> None:
    path.write_text(f'#!/bin/sh\necho "{version}"\n')
    path.chmod(0o755)


def test_order_of_candidates(no_compiler: Path, forget: Callable[[], None]) -> None:
    for name in ("c++", "clang++", "g++"):
        pretend(no_compiler / name, f"pretend {name}")
        forget()
        found = find_toolchain()
        assert found.command == (str(no_compiler / name),)
        assert found.version == f"pretend {name}"


def test_a_candidate_that_does_not_run_is_passed_over(no_compiler: Path) -> None:
    (no_compiler / "g++").write_text("#!/bin/sh\nexit 1\n")
    (no_compiler / "g++").chmod(0o755)
    pretend(no_compiler / "clang++", "works")
    assert find_toolchain().version == "works"


def test_cxx_comes_first_and_may_have_arguments(
    no_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(no_compiler / "mine", "mine $*")
    pretend(no_compiler / "g++", "other")
    monkeypatch.setattr(config, "cxx", str(no_compiler / "mine"))
    assert find_toolchain().version == "mine --version"
    monkeypatch.setenv("CXX", f"'{no_compiler / 'mine'}' -m32")
    found = find_toolchain()
    assert found.command == (str(no_compiler / "mine"), "-m32")
    assert found.version == "mine -m32 --version"


@pytest.mark.skipif(sys.platform != "linux", reason="told by ELF files")
def test_what_a_compiler_says_is_kept_until_it_is_replaced(
    no_compiler: Path, forget: Callable[[], None], fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    real = toolchain.output
    monkeypatch.setattr(toolchain, "output", lambda *a, **k: (runs.append(a), real(*a, **k))[1])

    def version() -> str:
        forget()
        return find_toolchain().version

    shutil.copy(str(shutil.which("true", path=os.defpath)), no_compiler / "g++")
    first = version()
    assert "true" in first and version() == first and len(runs) == 1
    (note,) = (fresh / "notes").iterdir()
    for damaged in ("", "[", "[1]", '[1, "other", "words"]', note.read_text()[:-3], "[" * 10**5):
        note.write_text(damaged)
        runs.clear()
        assert version() == first and len(runs) == 1
    shutil.copy(str(shutil.which("sleep", path=os.defpath)), no_compiler / "g++")
    assert "sleep" in version()
    runs.clear()
    (no_compiler / "g++").unlink()
    pretend(no_compiler / "g++", "a script")  # which may say something else each time
    assert version() == "a script" == version() and len(runs) == 2


@pytest.mark.parametrize("cxx", ["no-such-compiler", "/", "'unbalanced"])
def test_cxx_that_does_not_run(cxx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", cxx)
    with pytest.raises(CompilerError) as caught:
        find_toolchain()
    (d,) = caught.value.diagnostics
    assert d.code == "E301"
    assert cxx in d.message
    assert "CXX" in d.help


def test_key_depends_on_everything() -> None:
    base = toolchain.Toolchain(("g++",), "1", ("-O3",), "cpu")
    others = [
        toolchain.Toolchain(("g++", "-m32"), "1", ("-O3",), "cpu"),
        toolchain.Toolchain(("g++",), "2", ("-O3",), "cpu"),
        toolchain.Toolchain(("g++",), "1", ("-O2",), "cpu"),
        toolchain.Toolchain(("g++",), "1", ("-O3",), "other"),
        toolchain.Toolchain(("g++",), "1", ("-O3",), "cpu", ("-O1", "-O1", "-O1")),
    ]
    assert len({t.key for t in (base, *others)}) == 6
    assert base.key == toolchain.Toolchain(("g++",), "1", ("-O3",), "cpu").key


@pytest.mark.parametrize(
    ("most", "levels"),
    [
        (None, "321"), (7, "321"), (3, "321"), (2, "221"), (1, "111"), (0, "111"), (-2, "111"),
    ],
)  # fmt: skip
def test_settings_bound_the_levels(
    most: int | None, levels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "optimization_level", most)
    found = find_toolchain()
    assert found.levels == tuple(f"-O{level}" for level in levels)
    assert found.compile_command("a.cpp", "a.so", [])[len(found.command)] == f"-O{levels[0]}"


def test_a_process_starts_with_the_level_of_its_environment() -> None:
    shown = "from engine import config; print(config.optimization_level)"
    for given, level in (("2", "2"), ("0", "None"), ("", "None")):
        env = {**os.environ, "ENGINE_OPTIMIZATION_LEVEL": given}
        done = subprocess.run(
            [sys.executable, "-c", shown], env=env, capture_output=True, text=True
        )
        assert done.stdout.strip() == level, done.stderr


@pytest.mark.parametrize(
    ("version", "clang", "finite"),
    [
        ("g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) Free Software Foundation", False, True),
        ("g++ (Ubuntu 9.4.0-1ubuntu1) 9.4.0", False, False),
        ("Debian clang version 14.0.6\nTarget: x86_64", True, True),
        ("clang version 11.0.1", True, False),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", True, True),
    ],
)
def test_flags_follow_the_compiler(version: str, clang: bool, finite: bool) -> None:
    flags = toolchain._toolchain(("c++",), version, False, toolchain.LEVELS).flags
    assert ("-nostdlib++" in flags) == clang
    assert ("-fno-finite-loops" in flags) == finite
    assert ("-fstack-reuse=none" in flags) != clang
    assert not any("fast-math" in f for f in flags)
    assert "-ffp-contract=off" in flags


def test_cpu_features_are_told() -> None:
    assert toolchain.cpu_features() == toolchain.cpu_features()
    if os.path.exists("/proc/cpuinfo"):
        assert len(toolchain.cpu_features().splitlines()) > 1


def installed() -> list[str]:
    out = [name for name in ("g++", "clang++") if shutil.which(name)]
    if zig := toolchain._zig():
        out.append(shlex.join([zig, "c++"]))
    return out


def test_zig_is_the_program_in_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    """A module of that name is not run, nor is the package's own code."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delitem(sys.modules, "ziglang", raising=False)
    marker = tmp_path / "marker"
    code = f"open({str(marker)!r}, 'w')\n"
    for name in ("module", "hollow", "bare", "whole"):
        (tmp_path / name).mkdir()
        if name == "module":
            (tmp_path / name / "ziglang.py").write_text(code)
            continue
        package = tmp_path / name / "ziglang"
        package.mkdir()
        if name != "bare":
            for file in ("__init__.py", "__main__.py"):
                (package / file).write_text(code)
        if name != "hollow":
            pretend(package / "zig", "zig $*")
    monkeypatch.chdir(tmp_path / "module")
    rest = [p for p in sys.path if not (Path(p) / "ziglang").exists()]
    for name in ("module", "hollow", "bare"):
        forget()
        monkeypatch.setattr(sys, "path", [str(tmp_path / name), *rest])
        with pytest.raises(CompilerError):
            find_toolchain()
    forget()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "whole"), *rest])
    found = find_toolchain()
    assert found.command == (str(tmp_path / "whole" / "ziglang" / "zig"), "c++")
    assert found.version == "zig c++ --version"
    assert not marker.exists()


@pytest.mark.slow
@pytest.mark.parametrize("cxx", installed())
def test_every_compiler_that_is_here_works(cxx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", cxx)
    assert [filled(e) for e in compile_functions([filling(2), filling(3)])] == [2, 3]


def test_kernels_need_no_cxx_library(fresh: Path) -> None:
    if not (sys.platform.startswith("linux") and shutil.which("readelf")):
        pytest.skip("asks readelf")
    compile_functions([filling(1)])
    (path,) = (fresh / "objects").iterdir()
    told = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True)
    assert "libstdc++" not in told.stdout
    assert "libc++" not in told.stdout
