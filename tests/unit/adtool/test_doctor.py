"""The report of `adtool doctor` about a machine, piece by piece."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from adtool import doctor


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Everything but the trials of a kernel and of frameworks, which take seconds."""
    trial = doctor.Item("kernels on the CPU", "ok", "", needed=True)
    monkeypatch.setattr(doctor, "_kernel", lambda: trial)
    monkeypatch.setattr(doctor, "_framework", lambda item: item)

    def examine() -> tuple[doctor.DoctorReport, dict[str, doctor.Item]]:
        report = doctor.examine()
        return report, {i.name: i for i in report.items}

    return examine


def test_every_piece_is_named(pieces: Any) -> None:
    before = {"torch", "jax"} & set(sys.modules)  # by other tests
    report, items = pieces()
    assert report.ok and report.exit_code == 0
    for name in ("python", "compiler", "cache", "kernels on the CPU", "CUDA", "numpy", "cupy",
                 "torch", "jax", "paddle", "numba", "matplotlib", "graphviz (Python package)",
                 "jinja2"):  # fmt: skip
        assert items[name].status == "ok" or items[name].help, name
    assert {"torch", "jax"} & set(sys.modules) == before


def test_no_compiler(pieces: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    report, items = pieces()
    assert (report.ok, report.exit_code) == (False, 2)
    assert items["compiler"].status == "missing" and "CXX" in items["compiler"].help
    assert items["kernels on the CPU"].status == "problem"


def test_a_cache_that_others_can_write(
    pieces: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "open"))
    report, items = pieces()
    assert report.ok  # in a folder of each process
    assert items["cache"].status == "problem"
    assert "can be written by other users" in items["cache"].found
    assert f"rm -rf {tmp_path / 'open'}" in items["cache"].help


def test_packages_and_programs_that_are_missing(
    pieces: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", next(iter(_compilers())))
    monkeypatch.setenv("PATH", str(tmp_path))
    find = doctor.importlib.util.find_spec
    monkeypatch.setattr(
        doctor.importlib.util, "find_spec", lambda n, *a: None if n == "matplotlib" else find(n, *a)
    )
    report, items = pieces()
    assert items["matplotlib"].status == "missing"
    assert "pip install matplotlib" in items["matplotlib"].help
    assert report.ok  # neither is needed for kernels


def test_a_compiler_that_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "fake++"
    fake.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'fake++ 1.0' && exit 0\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(fake))
    report = doctor.examine()
    (trial,) = (i for i in report.items if i.name == "kernels on the CPU")
    assert (report.exit_code, trial.status) == (2, "problem") and "trial failed" in trial.found


def _compilers() -> list[str]:
    import shutil

    return [p for name in ("g++", "clang++", "c++") if (p := shutil.which(name))]
