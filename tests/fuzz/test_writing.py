"""Files that are written: whole under their name, or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from adtool import keeping
from adtool.captures.container import CaptureReader
from adtool.captures.run import Run
from adtool.exits import ToolError
from adtool.writing import write_file
from tests.sweeps import reduced

ROOT = Path(__file__).parents[2]

# Writes one file over and over, in its two forms, until it is killed.
_REPORTS = """
import sys
from pathlib import Path
from adtool.writing import write_file
while True:
    for letter in b"ab":
        write_file(bytes([letter]) * 3_000_000, Path(sys.argv[1]))
        print(flush=True)
"""
_CAPTURES = """
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from adtool.captures.container import CaptureWriter
from adtool.captures.head import Written
from adtool.commands.capture import finished
from adtool.writing import partial_of
path = Path(sys.argv[1])
target, options = SimpleNamespace(name="s.py"), SimpleNamespace(device="cpu")
values = np.random.default_rng(0).normal(size=200_000)
while True:
    with partial_of(path) as partial:
        with CaptureWriter(Path(partial)) as out:
            out.put(values)
        finished(SimpleNamespace(
            target=target, options=options, written=Written(), recorded=(1,), processes=0,
            script_seconds=0.0, traces="", faults=(), tapes=(),
        ), partial, path)
    print(flush=True)
"""


def killed(code: str, path: Path, delay: float) -> None:
    """Starts a program that writes to a path, and kills it some time after the first writing."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], env=env, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("times", reduced([1, 60], lambda n: n == 1))
def test_a_report_is_whole_after_a_kill(times: int, tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    for k in range(times):
        killed(_REPORTS, path, 0.0131 * (k + 1))
        data = path.read_bytes()
        assert len(data) == 3_000_000 and len(set(data)) == 1
    # What else is there is hidden, and named for the tool.
    assert all(f.startswith(".adtool-") for f in os.listdir(tmp_path) if f != "out.html")


@pytest.mark.parametrize("times", reduced([1, 60], lambda n: n == 1))
def test_a_capture_is_whole_after_a_kill(times: int, tmp_path: Path) -> None:
    path = tmp_path / "run.adt"
    for k in range(times):
        killed(_CAPTURES, path, 0.0131 * (k + 1))
        with CaptureReader(path) as reader:
            assert Run(reader).head.script == "s.py"
        with zipfile.ZipFile(path) as z:
            assert z.testzip() is None
    assert all(f.startswith(".adtool-") for f in os.listdir(tmp_path) if f != "run.adt")


def test_what_killed_runs_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".adtool").mkdir()
    old, new = tmp_path / ".adtool" / ".last-old", tmp_path / ".adtool" / ".last-new"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    with keeping.keeping() as keep:
        assert keep is not None
    assert not old.exists() and new.exists()


# ---- a disk that is full, a folder that takes nothing

_FULL = """
import resource, signal, sys
from adtool.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
main(sys.argv[2:])
"""


def limited(folder: Path, size: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the tool where no file may grow beyond a size: writing fails as on a full disk."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", _FULL, str(size), *words], env=env, cwd=folder,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_a_page_on_a_full_disk(tmp_path: Path) -> None:
    from adtool.report import Failure, failed_report, to_json

    (tmp_path / "r.json").write_text(to_json(failed_report(Failure("usage", "m"), "adtool 0")))
    (tmp_path / "out.html").write_text("old")
    done = limited(tmp_path, 4096, "report", "r.json", "--out", "out.html")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("error:") == 1 and "Traceback" not in done.stderr
    assert (tmp_path / "out.html").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["out.html", "r.json"]


_SCRIPT = """
import numpy as np, engine as wp
@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * 2.0
x = wp.array(np.random.default_rng(0).normal(size=200_000).astype(np.float32), requires_grad=True)
y = wp.zeros(200_000, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(double, 200_000, [x], [y])
tape.backward(grads={y: wp.ones(200_000)})
"""


def test_a_capture_on_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(_SCRIPT)
    (tmp_path / "s.adt").write_text("old")
    done = limited(tmp_path, 300_000, "capture", "s.py")
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("error:") == 1 and "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert (tmp_path / "s.adt").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["s.adt", "s.py"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(ToolError, match="cannot be written"):
        write_file(b"x", tmp_path / "folder" / "out.html")


def test_a_disk_that_fills_up(tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(ToolError, match="cannot be written"):
            write_file(bytes(5000), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == []
