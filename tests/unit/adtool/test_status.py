from __future__ import annotations

import os
from pathlib import Path

import pytest

import engine.diagnostics
from adtool import endings, status
from tests.counting import calls


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "status"
    status.create(path)
    return path


def test_a_fresh_page(page: Path) -> None:
    assert status.read(page) == status.Status()
    assert page.stat().st_mode & 0o077 == 0


def test_launches_are_counted_with_kernel_and_call(page: Path) -> None:
    writer = status.StatusWriter(page)
    writer.launch("first_kernel_with_a_long_name", 0, "a.py", 7)
    writer.launch("second", 1, "b.py", 12)
    now = status.read(page)
    assert (now.phase, now.launches, now.kernel) == (status.SCRIPT, 2, "second")
    assert (now.file, now.line) == ("b.py", 12)


def test_the_loops_of_the_kernel_that_ran_last_are_named(page: Path, tmp_path: Path) -> None:
    source = tmp_path / "kernels.py"
    source.write_text(
        "@wp.func\ndef settle(x):\n    while x > 1.0:\n        x = 0.5 * x\n    return x\n\n"
        "@wp.kernel\ndef one(x):\n    for i in range(3):\n        x[i] = settle(x[i])\n\n"
        "@wp.kernel\ndef two(x):\n    for i in range(3):\n        for j in range(3):\n"
        "            x[i] = 0.0\n\n@wp.kernel\ndef none(x):\n    x[0] = 1.0\n"
    )
    writer = status.StatusWriter(page)
    said = {}
    for name, line in (("one", 7), ("two", 12), ("none", 18), ("gone", 40)):
        writer.launch(name, 0, "a.py", 7, str(source), line)
        now = status.read(page)
        assert (now.defined, now.at) == (str(source), line)
        said[name] = endings.timed_out(now, 5.0).message
    assert said["one"].endswith("(called at a.py:7), with a `while` loop at " + f"{source}:3")
    assert f"with `for` loops at {source}:14, {source}:15" in said["two"]
    assert "loop" not in said["none"] + said["gone"]


def test_checks(page: Path) -> None:
    writer = status.StatusWriter(page)
    writer.check(1, 4, 3, 7, 20, "k")
    now = status.read(page)
    assert (now.phase, now.tape, now.tapes, now.launch) == (status.CHECK, 1, 4, 3)
    assert (now.done, now.total, now.kernel) == (7, 20, "k")
    writer.phase(status.END)
    assert status.read(page).phase == status.END


def test_long_and_odd_names_fit(page: Path) -> None:
    writer = status.StatusWriter(page)
    writer.check(0, 1, 0, 0, 1, "k" * 10_000)
    assert status.read(page).kernel.startswith("kkk")
    writer.launch("\udcff", 0, "", 0)
    assert status.read(page).kernel == "\udcff"
    writer.launch("\ud800", 1, "gr\u00f6\u00dfe.py", 1)
    assert (status.read(page).kernel, status.read(page).file) == ("?", "gr\u00f6\u00dfe.py")


def test_garbage_is_no_error(page: Path) -> None:
    """Whatever a torn page says, reading it gives a status, with numbers and text."""
    page.write_bytes(b"\xff" * 100)
    found = status.read(page)
    assert isinstance(found.kernel, str) and isinstance(found.launches, int)


def test_a_page_that_is_gone_is_no_error(page: Path) -> None:
    page.unlink()
    assert status.read(page) == status.Status()


def test_a_fork_is_silent(page: Path) -> None:
    writer = status.StatusWriter(page)
    writer.launch("parent", 0, "", 0)
    pid = os.fork()
    if pid == 0:
        writer.launch("fork", 1, "", 0)
        os._exit(0)
    os.waitpid(pid, 0)
    assert status.read(page).kernel == "parent"


def test_a_write_costs_little(page: Path) -> None:
    """A launch from a known place makes no text anew, and a handful of calls in all."""
    writer = status.StatusWriter(page)

    def launches(first: int) -> None:
        for i in range(first, first + 100):
            writer.launch("k", i, "script.py", 12)

    launches(0)
    assert calls(lambda: launches(100)) <= 100 * 6
    assert calls(lambda: writer.launch("k", 200, "other.py", 1)) > 6
    assert status.read(page).launches == 201


class TestEndings:
    LAST = status.Status(status.SCRIPT, 4, kernel="k", file="a.py", line=7)

    def test_a_signal(self) -> None:
        failure = endings.died(-11, self.LAST, "")
        assert failure.message == (
            "killed by SIGSEGV (segmentation fault) while the script ran; "
            "the last launch was number 3, kernel `k` (called at a.py:7)"
        )

    def test_a_signal_with_the_line_of_python(self) -> None:
        crash = (
            "Fatal Python error: Segmentation fault\n\n"
            "Current thread 0x1 (most recent call first):\n"
            f'  File "{Path(engine.diagnostics.__file__).parent}/launch.py", line 3 in launch\n'
            '  File "/home/me/engine/a.py", line 9 in step\n'
        )
        assert endings.died(-11, self.LAST, crash).message.endswith(
            "Python was at /home/me/engine/a.py:9"
        )

    def test_no_launch_yet(self) -> None:
        assert "no launch yet" in endings.timed_out(status.Status(status.SCRIPT), 2.0).message

    def test_while_checking(self) -> None:
        last = status.Status(status.CHECK, 4, 0, 2, 3, 7, 9, "k")
        failure = endings.timed_out(last, 2.0)
        assert "while checking tape 0 of 2, launch 3, kernel `k`" in failure.message
        assert "--max-inputs" in failure.help
        assert "SIGINT" in endings.interrupted(last, "SIGINT").message

    def test_while_checking_a_tape_as_a_whole(self) -> None:
        last = status.Status(status.CHECK, 4, 0, 1, -1, 8, 9)
        failure = endings.timed_out(last, 2.0, some=True)
        assert failure.message == (
            "stopped after the time limit of 2 s while checking tape 0 as a whole; adtool reports "
            "the checks up to then"
        )

    def test_an_unknown_signal(self) -> None:
        assert "signal 250" in endings.died(-250, self.LAST, "").message
