"""Messages about the compiler and the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine as wp


def test_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "kernels"))
    found = wp.environment()
    assert found.compiler and found.version and found.compiler_problem == ("", "")
    assert found.cache == found.cache_chosen == str(tmp_path / "kernels")
    assert (found.cache_bytes, found.cache_kernels) == (0, 0) and found.threads >= 1


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = wp.environment()
    problem, help = found.compiler_problem
    assert not found.compiler and "no-such-compiler" in problem and "CXX" in help


def test_a_cache_that_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "open"
    root.mkdir()
    root.chmod(0o777)
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(root))
    with pytest.warns(UserWarning, match="can be written by other users"):
        found = wp.environment()
    assert found.cache_chosen == str(root) and found.cache not in ("", str(root))
    assert "can be written by other users (mode 777)" in found.cache_problem[0]
    assert f"rm -rf {root}" in found.cache_problem[1]


def test_a_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    found = wp.environment()
    assert found.cache and found.cache != found.cache_chosen
    assert "every run compiles kernels again" in found.cache_problem[0]


def test_diagnostics_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    wp.print_diagnostics()
    printed = capsys.readouterr().out
    for line in ("Software", "  numpy:", "CPU", f"  processors:   {wp.processors()}", "Cache"):
        assert line in printed
    assert wp.environment().compiler in printed


def test_diagnostics_say_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    wp.print_diagnostics()
    assert "/no/such/compiler" in capsys.readouterr().out
