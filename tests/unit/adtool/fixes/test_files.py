"""Fixes change only the user's own files, and write them whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adtool.exits import ToolError
from adtool.fixes.files import Change, refusal, write


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a.py", ""),
        ("deep/er/a.py", ""),
        ("../a.py", "not below"),
        ("venv/lib/site-packages/a.py", "installed"),
        ("a.txt", "not a Python file"),
    ],
)
def test_whose_file_it_is(here: Path, name: str, why: str) -> None:
    path = here / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")
    found = refusal(str(path))
    assert (why in found) if why else not found


def test_no_file_and_a_link_that_leads_out(here: Path) -> None:
    (here.parent / "other.py").write_text("")
    (here / "link.py").symlink_to(here.parent / "other.py")
    assert "not below" in refusal(str(here / "link.py"))
    assert refusal(str(here / "none.py")) == refusal("<string>") == "it is not a file"


def test_a_file_that_cannot_be_written(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = here / "a.py"
    path.write_text("")
    path.chmod(0o444)
    assert refusal(str(path)) == "it is read-only"
    path.chmod(0o644)
    monkeypatch.setattr(os, "access", lambda p, mode: p != str(path))
    assert refusal(str(path)) == "it is not writable"


def test_mode_and_link_stay(here: Path) -> None:
    path = here / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o754)
    (here / "link.py").symlink_to(path)
    write([Change(str(here / "link.py"), b"old", b"new")])
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o754
    assert (here / "link.py").is_symlink()
    assert sorted(os.listdir(here)) == ["a.py", "link.py"]


def test_nothing_is_written_where_one_file_was_changed(here: Path) -> None:
    for name in ("a.py", "b.py"):
        (here / name).write_bytes(b"old")
    changes = [Change(str(here / "a.py"), b"old", b"new"), Change(str(here / "b.py"), b"x", b"y")]
    with pytest.raises(ToolError, match=r"`b.py` changed .* nothing was written"):
        write(changes)
    assert sorted(os.listdir(here)) == ["a.py", "b.py"]
    assert (here / "a.py").read_bytes() == b"old"


def test_a_full_disk_leaves_the_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "a.py").write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left"):
        write([Change(str(here / "a.py"), b"old", b"new")])
    assert os.listdir(here) == ["a.py"] and (here / "a.py").read_bytes() == b"old"
