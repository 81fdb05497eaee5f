"""Fingerprints of findings stay where lines move, and tell apart what is not the same."""

from __future__ import annotations

import linecache
from dataclasses import replace
from pathlib import Path

import pytest

from adtool.fingerprints import marked
from adtool.report import Finding

BASE = Finding("G001", "wrong-gradient", "error", "m", "", "k", 0, 1, None, None, None)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "a.py"


def _prints(*found: Finding) -> list[str]:
    return [f.fingerprint for f in marked(found)]


def test_stays_where_the_line_moves_and_the_numbers_change(file: Path) -> None:
    file.write_text("y = f(x)\n")
    first = replace(BASE, file=str(file), line=1, message="adjoint 4")
    other = file.with_name("sub") / "a.py"
    before = _prints(first)
    file.write_text("import engine\n\n    y = f(x)\n\n")
    linecache.clearcache()
    assert _prints(replace(first, line=3, message="adjoint 5", launch=7)) == before
    assert _prints(replace(first, file=str(other))) != before


def test_tells_apart_what_differs(file: Path) -> None:
    file.write_text("y = f(x)\nz = g(y)\n")
    here = replace(BASE, file=str(file), line=1)
    found = [
        BASE, here, replace(here, line=2), replace(here, code="G002"), replace(here, kernel="q"),
        replace(here, arrays=("x",)), here, here,
    ]  # fmt: skip
    prints = _prints(*found)
    assert len(set(prints)) == len(found)
    assert all(len(p) == 16 for p in prints)


def test_the_same_line_in_two_functions(file: Path) -> None:
    body = "    tape.backward(loss)\n"
    file.write_text(f"def pose():\n{body}class A:\n  def shape(self):\n{body}")
    one, two = (replace(BASE, file=str(file), line=n) for n in (2, 5))
    before = _prints(one)
    assert _prints(two) != before
    file.write_text(f"import x\n\ndef pose():\n    y = 1\n{body}")
    linecache.clearcache()
    assert _prints(replace(one, line=5)) == before


def test_has_the_lines_of_the_place(file: Path) -> None:
    file.write_text("".join(f"line {i}\n" for i in range(1, 20)))
    (f,) = marked([replace(BASE, file=str(file), line=2, column=1, end_line=18)])
    assert f.source == tuple(f"line {i}" for i in range(2, 7))
    assert next(iter(marked([BASE]))).source == ()
    assert next(iter(marked([replace(BASE, file=str(file), line=99)]))).source == ()
