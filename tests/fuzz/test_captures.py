"""Captures that are made to do harm: zip archives that lie, names of other files, code."""

from __future__ import annotations

import hashlib
import io
import json
import linecache
import os
import re
import stat
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adtool import cli
from adtool.captures import container
from adtool.exits import ToolError
from adtool.suppressions import comments_of
from engine.archive import ArchiveError
from tests.fuzz.samples import (
    arrays,
    capture,
    document,
    members,
    read_capture,
    rebuilt,
    with_array,
    with_traces,
)

PROGRAM = "of_views"
_FLOOR = 48 << 20  # bytes that reading may take, however small the file is


@pytest.fixture(autouse=True)
def _lines() -> Iterator[None]:
    """What captures tell `linecache` does not stay."""
    before = dict(linecache.cache)
    yield
    linecache.cache.clear()
    linecache.cache.update(before)


def archive(path: Path, parts: list[tuple[str, bytes]], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two members of one name
        with zipfile.ZipFile(path, "w", kind) as z:
            for name, data in parts:
                info = zipfile.ZipInfo(name)
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                z.writestr(info, data, kind)
    return path


def refused(path: Path) -> str:
    with pytest.raises((ToolError, ArchiveError)) as found:
        read_capture(path)
    return str(found.value)


def replaced(which: str, data: bytes) -> list[tuple[str, bytes]]:
    return [(n, data if n.startswith(which) else d) for n, d in members(PROGRAM).items()]


def test_members_that_nobody_asks_for_are_not_unpacked(tmp_path: Path) -> None:
    odd = [("../../x", b"1"), ("/abs", b"2"), ("a\0b", b"3"), ("bomb", bytes(50 << 20))]
    path = archive(tmp_path / "run.adt", [*members(PROGRAM).items(), *odd])
    assert len(read_capture(path)) == 1
    assert os.listdir(tmp_path) == ["run.adt"]


def test_two_members_of_one_name(tmp_path: Path) -> None:
    path = archive(tmp_path / "run.adt", [*members(PROGRAM).items(), ("run.json", b"{}")])
    assert "two members" in refused(path)


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(kind: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "run.adt", list(members(PROGRAM).items()), kind)
    assert "compressed by a method" in refused(path)


def test_encrypted_members(tmp_path: Path) -> None:
    data = bytearray(capture(PROGRAM))
    at = data.find(b"PK\1\2")
    data[at + 8] |= 1
    path = tmp_path / "run.adt"
    path.write_bytes(data)
    assert "compressed by a method" in refused(path)


_BOMBS = {
    "tapes": lambda: replaced("tapes.json", b" " * (100 << 20)),
    "tapes of lists": lambda: replaced("tapes.json", b'{"x":[' + b"[]," * 300_000 + b"0]}"),
    "sources": lambda: replaced("sources/", b" " * (50 << 20)),
    "arrays": lambda: replaced("arrays/", bytes(50 << 20)),
    "members": lambda: [*members(PROGRAM).items(), *((f"n{i}", b"") for i in range(8_000))],
}


@pytest.mark.parametrize("bomb", _BOMBS.values(), ids=_BOMBS)
def test_what_unpacks_to_much_takes_no_memory(bomb: Any, tmp_path: Path) -> None:
    path = archive(tmp_path / "run.adt", bomb())
    size = path.stat().st_size
    tracemalloc.start()
    try:
        refused(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= max(_FLOOR, 2 * size)


def test_more_members_than_the_directory_says(tmp_path: Path) -> None:
    path = archive(tmp_path / "run.adt", _BOMBS["members"](), zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    end = data.rfind(b"PK\5\6")
    data[end + 8 : end + 12] = b"\1\0\1\0"
    path.write_bytes(data)
    assert "too many members" in refused(path)


def test_sources_that_share_a_text(tmp_path: Path) -> None:
    head = json.loads(members(PROGRAM)["run.json"])
    (first, *_) = head["sources"]
    for sources in ([first, {**first, "name": "b.py"}], [{**first, "member": "tapes.json"}]):
        parts = {**members(PROGRAM), "run.json": json.dumps({**head, "sources": sources}).encode()}
        path = rebuilt(tmp_path / "run.adt", parts)
        from adtool.captures.container import CaptureReader
        from adtool.captures.run import Run

        with CaptureReader(path) as reader, pytest.raises(ToolError):
            Run(reader).tell_sources()


# ---- arrays


def _npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + data


_HEADER = "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}"


@pytest.mark.parametrize(
    "data",
    [
        _npy(_HEADER.format("'|O'", False, "(1,)"), b"\x80\4N."),
        _npy(_HEADER.format("'<f4'", True, "(2, 2)"), bytes(16)),
        _npy(_HEADER.format("[('a', '<f4')]", False, "(1,)"), bytes(4)),
        _npy(_HEADER.format("'<f4'", False, "(-1,)"), bytes(4)),
        _npy(_HEADER.format("'<f4'", False, f"({2**62}, 4)"), bytes(4)),
        _npy(_HEADER.format("'<f4'", False, "(1,)" + " " * 60_000), bytes(4)),
        _npy("(" * 5000 + ")" * 5000),
        _npy(_HEADER.format("'<f4'", False, "(" + "1, " * 65 + ")"), bytes(4)),
        _npy(_HEADER.format("'<f4'", False, f"(0, {2**62}, 4)")),
        _npy(_HEADER.format("'<f4'", False, "__import__('os').abort()")),
        _npy(_HEADER.format("'<U9999999999'", False, "(1,)")),
        _npy(_HEADER.format("'<f4'", False, "(1,)"), bytes(3)),
        b"\x93NUMPY\3\0\xff\xff\xff\xff",
        b"",
    ],
)
def test_arrays_that_are_no_numbers(data: bytes) -> None:
    assert container.unpacked(data) is None


def test_arrays_of_numbers() -> None:
    found = container.unpacked(container.packed(np.arange(4.0).reshape(2, 2))[1])
    assert found is not None and found.tolist() == [[0.0, 1.0], [2.0, 3.0]]


# ---- names of files


def _naming(file: str, path: Path) -> Path:
    """A capture that has no sources, and says that its code is in lines of a file."""
    (old,) = document(PROGRAM)["files"]
    text = json.dumps(document(PROGRAM)).replace(json.dumps(old), json.dumps(file))
    head = {**json.loads(members(PROGRAM)["run.json"]), "sources": []}
    parts = {**members(PROGRAM), "tapes.json": text.encode(), "run.json": json.dumps(head).encode()}
    return rebuilt(path, parts)


def test_files_that_a_capture_names_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("TOKEN = 1  # adtool: ignore[G001]\n")
    assert linecache.getline(str(secret), 1)
    linecache.clearcache()
    read_capture(_naming(str(secret), tmp_path / "run.adt"))
    assert linecache.getline(str(secret), 1) == ""
    assert list(comments_of(str(secret))) == []


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no endless device")
def test_devices_that_a_capture_names_are_not_read(tmp_path: Path) -> None:
    read_capture(_naming("/dev/zero", tmp_path / "run.adt"))
    assert linecache.getlines("/dev/zero") == [] == list(comments_of("/dev/zero"))


def test_the_tools_own_files_stay_what_they_are(tmp_path: Path) -> None:
    from adtool.captures import texts

    own = str(cli.__file__)
    texts.tell(own, "print('other')\n")
    texts.bar([own, "\ud800", "\0", ""])
    assert "The command line" in linecache.getline(own, 1)


# ---- kernels


def run_kernels(seed: int, count: int) -> list[str]:
    words = [sys.executable, "-m", "tests.fuzz.kernels", str(seed), str(count)]
    root = Path(__file__).parents[2]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=60 * count)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(("seed", "count"), [(1, 2), pytest.param(2, 200, marks=pytest.mark.sweep)])
def test_changed_kernels_do_no_harm(seed: int, count: int) -> None:
    """Those that are not refused end, in a process of their own, without a crash."""
    ends = run_kernels(seed, count)
    assert len(ends) == count
    assert {e for e in ends if e not in ("done", "engine", "refused")} == set()
    assert "done" in ends


@pytest.mark.skipif(sys.platform == "win32", reason="compilers are other programs there")
def test_native_text_reaches_a_compiler_only_if_trusted(tmp_path: Path) -> None:
    path = tmp_path / "run.adt"
    path.write_bytes(capture("of_native_code"))
    fake = tmp_path / "fake-c++"
    real = os.environ.get("CXX") or "c++"
    for words, expected in (([], False), (["--trust"], True)):
        seen = tmp_path / f"seen{len(words)}"
        seen.touch()
        # Keeps all that it is given to compile, and refuses it.
        fake.write_text(
            '#!/bin/sh\nfor f in "$@"; do case "$f" in --version|-dumpmachine) '
            f'exec {real} "$@";; esac; done\n'
            f'for f in "$@"; do [ -f "$f" ] && cat "$f" >> {seen}; done\ncat >> {seen}\nexit 1\n'
        )
        fake.chmod(0o700)
        env = {
            **os.environ, "CXX": str(fake), "ENGINE_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "adtool", "check", *words, str(path)], env=env, cwd=tmp_path,
            capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 2, done.stdout + done.stderr
        text = seen.read_text(errors="replace")
        assert "namespace ns_" in text  # of one kernel or the other
        assert ("x * x * x" in text) == expected


# ---- the command line


@pytest.mark.parametrize("words", [["report", "bad.json", "--out", "out.html"],
                                   ["check", "bad.adt"], ["reduce", "bad.adt"]])  # fmt: skip
def test_one_error_and_no_traceback(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    good = io.BytesIO(capture(PROGRAM)).getvalue()
    (tmp_path / "bad.adt").write_bytes(good[: len(good) // 2])
    (tmp_path / "bad.json").write_text('{"schema": ' + "9" * 5000 + "}")
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    out, err = capfd.readouterr()
    assert err.count("error:") == 1 and "Traceback" not in out + err
    assert not (tmp_path / "out.html").exists()


_HARM: dict[str, Callable[[Any], object]] = {
    "operation": lambda t: t["listing"]["operations"].pop(),
    "kernel": lambda t: t["listing"]["operations"][0].update(kernel=65),
    "bytes": lambda t: t["listing"]["arrays"][0].update(nbytes=-(2**31)),
}
_ASKING = [
    ["report", "--out", "out.html"], ["graph"], ["graph", "--out", "out.svg"], ["trace"],
    ["check"], ["check", "--jobs", "2"],
]  # fmt: skip


@pytest.mark.parametrize("harm", _HARM.values(), ids=_HARM)
@pytest.mark.parametrize("words", _ASKING, ids=" ".join)
def test_damaged_traces_are_told_by_all_commands(
    words: list[str], harm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    data = json.loads(members(PROGRAM)[container.TRACES])
    harm(data["tapes"][0])
    with_traces(tmp_path / "bad.adt", PROGRAM, json.dumps(data))
    with pytest.raises(SystemExit) as ended:
        cli.main([*words, "bad.adt"])
    out, err = capfd.readouterr()
    assert ended.value.code == 2, out + err
    assert len(re.findall("^error: ", out + err, re.MULTILINE)) == 1, out + err
    assert "Traceback" not in out + err
    assert "`bad.adt` cannot be used: its traces.json is damaged (tape 0" in " ".join(
        (out + err).split()
    )
    assert not {"out.html", "out.svg"} & set(os.listdir(tmp_path))


@pytest.mark.parametrize("words", [["check"], ["reduce"], ["jacobian", "--kernel", "indexed"]])
def test_an_array_of_more_dimensions_than_there_are(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    old = arrays(PROGRAM)[0]
    new = _npy(_HEADER.format("'<f4'", False, "(" + "1, " * 65 + "12)"), old[-48:])
    with_array(tmp_path / "bad.adt", PROGRAM, old, new)
    with pytest.raises(SystemExit) as ended:
        cli.main([words[0], "bad.adt", *words[1:]])
    out, err = capfd.readouterr()
    assert ended.value.code == 2, out + err
    assert len(re.findall("^error: ", out + err, re.MULTILINE)) == 1, out + err
    member = f"arrays/{hashlib.sha256(new).hexdigest()}.npy"
    assert f"`bad.adt` cannot be used: its {member} does not have the shape" in " ".join(
        (out + err).split()
    )
    assert [f for f in os.listdir(tmp_path) if f != ".adtool"] == ["bad.adt"]
