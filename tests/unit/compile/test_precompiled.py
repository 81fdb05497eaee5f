"""The headers of kernels, parsed once and kept."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine import config
from engine.compile.cache import open_cache
from engine.compile.cpu import precompiled, toolchain
from engine.compile.cpu.compiler import compile_functions
from tests.unit.compile.conftest import Script
from tests.unit.compile.test_compiler import filled, filling

pytestmark = pytest.mark.skipif(
    not toolchain.find_toolchain().precompiles, reason="this compiler keeps no headers"
)
Commands = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def from_the_first_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Headers are kept from the first run on; and a process that knows of none."""
    monkeypatch.setattr(precompiled, "_WORTH", 0)
    monkeypatch.setattr(precompiled, "_parsed", precompiled._Parsed())
    yield


@pytest.fixture
def commands(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> Commands:
    """Writes down what the compiler is told. With `headers` in the environment, none suit it."""
    (real,) = toolchain.find_toolchain().command
    log = tmp_path / "commands"
    path = script(
        f"""if "--version" not in sys.argv:
    with open({str(log)!r}, "a") as f:
        f.write(" ".join(sys.argv[1:]) + "\\n")
    if "-include" in sys.argv and "headers" in os.environ:
        sys.exit(1)
os.execvp({real!r}, [{real!r}] + sys.argv[1:])"""
    )
    monkeypatch.setenv("CXX", str(path))
    forget()
    return lambda: log.read_text().splitlines() if log.exists() else []


def compiled(value: float) -> float:
    (entry,) = compile_functions([filling(value)])
    return filled(entry)


def kept(fresh: Path) -> list[Path]:
    return list((fresh / "headers").glob("*.gch"))


def test_made_beside_a_kernel_and_used_from_the_next_on(commands: Commands, fresh: Path) -> None:
    assert [compiled(i) for i in (1, 2, 3)] == [1, 2, 3]
    first, *rest = sorted(commands()[:2], key=lambda c: "c++-header" in c), *commands()[2:]
    assert "c++-header" not in first[0]
    assert "-include" not in first[0]
    assert "c++-header" in first[1]
    (header,) = kept(fresh)
    assert all(f"-include {header.with_suffix('')} " in c for c in rest)
    assert len(rest) == 2
    assert stat.S_IMODE(header.parent.stat().st_mode) & 0o077 == 0


def test_the_compiler_takes_it(commands: Commands, fresh: Path) -> None:
    compiled(1)
    (header,) = kept(fresh)
    assert precompiled.find(open_cache(), toolchain.find_toolchain())
    header.with_suffix("").write_text("#error the text was read\n")
    assert compiled(2) == 2
    assert len(commands()) == 3
    header.unlink()
    header.touch()  # none that it takes
    assert compiled(3) == 3
    assert len(commands()) == 5


def test_few_kernels_do_not_wait_for_it(
    commands: Commands, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompiled, "_WORTH", 2)
    for i in range(3):
        assert not kept(fresh)
        assert compiled(i) == i
    assert kept(fresh)
    assert ["c++-header" in c for c in commands()].count(True) == 1


@pytest.mark.parametrize("damage", ["cut", "changed", "another", "no note", "no text"])
def test_what_is_damaged_is_made_again(
    commands: Commands, fresh: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(1)
    (header,) = kept(fresh)
    data = header.read_bytes()
    if damage == "cut":
        header.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        header.write_bytes(data[:1000] + bytes([data[1000] ^ 1]) + data[1001:])
    elif damage == "another":
        header.with_suffix("").write_text("#include <string>\n")
    elif damage == "no note":
        (fresh / "notes" / f"{header.name.removesuffix('.h.gch')}.json").unlink()
    else:
        header.with_suffix("").unlink()
    monkeypatch.setattr(precompiled, "_parsed", precompiled._Parsed())  # as of another process
    assert compiled(2) == 2
    assert "-include" not in "".join(commands())
    assert kept(fresh) == [header]
    assert compiled(3) == 3
    assert f"-include {header.with_suffix('')} " in commands()[-1]


@pytest.mark.parametrize("what", ["header", "text"])
def test_gone_while_the_process_runs(commands: Commands, fresh: Path, what: str) -> None:
    compiled(1)
    (header,) = kept(fresh)
    (header if what == "header" else header.with_suffix("")).unlink()
    assert compiled(2) == 2
    assert "-include" not in "".join(commands())


def test_a_compiler_that_fails_with_it(
    commands: Commands, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(1)
    monkeypatch.setenv("headers", "do not suit")
    assert compiled(2) == 2
    tried, plain = commands()[-2:]
    assert "-include" in tried
    assert "-include" not in plain
    assert not kept(fresh)
    assert compiled(3) == 3
    assert not kept(fresh)  # not again in this process
    assert len(commands()) == 5


def test_a_compiler_that_cannot_make_it(
    script: Script, monkeypatch: pytest.MonkeyPatch, fresh: Path, forget: Callable[[], None]
) -> None:
    (real,) = toolchain.find_toolchain().command
    path = script(
        f"""if "c++-header" in sys.argv:
    sys.exit("it is not built for that")
os.execvp({real!r}, [{real!r}] + sys.argv[1:])"""
    )
    monkeypatch.setenv("CXX", str(path))
    forget()
    assert [compiled(1), compiled(2)] == [1, 2]
    assert not kept(fresh)


def test_not_for_kernels_with_settings(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    compiled(1)
    monkeypatch.setattr(config, "precise_math", True)
    assert compiled(2) == 2
    assert "-include" not in "".join(commands())


def test_each_setting_of_the_compiler_has_its_own(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    for level in (3, 1):
        monkeypatch.setattr(config, "optimization_level", level)
        assert compiled(level) == level
    assert len(kept(fresh)) == 2


def test_flags_of_the_user_keep_it_away(
    monkeypatch: pytest.MonkeyPatch, fresh: Path, forget: Callable[[], None]
) -> None:
    (real,) = toolchain.find_toolchain().command
    monkeypatch.setenv("CXX", f"{real} -DMINE=1")
    forget()
    assert [compiled(1), compiled(2)] == [1, 2]
    assert not kept(fresh)


def test_old_ones_are_removed(fresh: Path) -> None:
    compiled(1)
    (header,) = kept(fresh)
    for i in range(6):
        other = fresh / "headers" / f"{i}.h.gch"
        other.write_bytes(b"of an older compiler")
        os.utime(other, (i, i))
    open_cache().trim()
    assert header in kept(fresh)
    assert len(kept(fresh)) == 4


def test_clearing_the_cache_removes_it(fresh: Path) -> None:
    compiled(1)
    open_cache().clear()
    assert not kept(fresh)
    assert compiled(2) == 2
