"""Runs of a target are forks of one server: what comes of them, and of their ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from adtool.exits import ToolError
from adtool.job import CheckOptions, Job, Target
from adtool.session import BegunSession, run_session
from adtool.starter import Run, Starter


def job(folder: Path, text: str) -> Job:
    path = folder / "script.py"
    path.write_text(text)
    return Job(Target(str(path)), CheckOptions())


def gone(pid: int) -> bool:
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


ABOUT = """
import os
with open({!r}, "a") as file:
    print(os.getpid(), os.getppid(), os.getsid(0), file=file)
"""


def test_runs_are_siblings_with_sessions_of_their_own(tmp_path: Path) -> None:
    about = tmp_path / "about"
    with Starter() as starter:
        for _ in range(2):
            run_session(job(tmp_path, ABOUT.format(str(about))), silent=True, starter=starter)
    (one, server, session), (other, again, _) = [
        map(int, line.split()) for line in about.read_text().splitlines()
    ]
    assert server == again and one == session and one != other
    assert gone(server)


def test_two_at_a_time(tmp_path: Path) -> None:
    waits = "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.01)\n"
    go = tmp_path / "go"
    first = job(tmp_path, waits.format(str(go)))
    with Starter() as starter, BegunSession(first, starter) as begun:
        (tmp_path / "other").mkdir()
        other = job(tmp_path / "other", f"open({str(go)!r}, 'w')\n")
        assert run_session(other, silent=True, starter=starter, timeout=60).failure is None
        assert begun.finished(60).failure is None


def test_what_began_is_ended(tmp_path: Path) -> None:
    about = tmp_path / "about"
    text = ABOUT.format(str(about)) + "import time\ntime.sleep(600)\n"
    with Starter() as starter, BegunSession(job(tmp_path, text), starter):
        while not about.exists() or not about.read_text().endswith("\n"):
            time.sleep(0.01)
    assert all(map(gone, map(int, about.read_text().split())))


def test_a_target_waits_for_its_own_children_alone(tmp_path: Path) -> None:
    text = "import os\ntry:\n    os.wait()\nexcept ChildProcessError:\n    print('none')\n"
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as o, err.open("wb") as e:
        run_session(job(tmp_path, text), printed=(o, e))
    assert out.read_text() == "none\n" and not err.read_text()


@pytest.mark.parametrize("how", ["os._exit(7)", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_exit_statuses(how: str, tmp_path: Path) -> None:
    failure = run_session(job(tmp_path, f"import os, signal\n{how}\n"), silent=True).failure
    assert failure is not None
    assert ("status 7" if "7" in how else "SIGSEGV") in failure.message


def test_the_server_is_killed(tmp_path: Path) -> None:
    text = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)\n"
    failure = run_session(job(tmp_path, text), silent=True, timeout=60).failure
    assert failure is not None and failure.kind != "timeout"
    assert "SIGKILL" in failure.message


def test_the_system_forks_no_more() -> None:
    """As the server says it: the number of the error."""
    pipe, end = os.pipe()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as server:
        run = Run(server, pipe)
        os.write(end, f"!{errno.EAGAIN}\n".encode())
        os.close(end)
        with pytest.raises(ToolError, match="the process of the script cannot be started"):
            run.wait(10)
        run.end()
        server.kill()


def test_a_limit_of_time() -> None:
    pipe, end = os.pipe()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as server:
        run = Run(server, pipe)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(0.01)
        os.write(end, b"1\n")
        with suppress(subprocess.TimeoutExpired):
            run.wait(0.01)
        assert run.returncode is None
        os.write(end, b"-11\n")
        assert run.wait(10) == run.returncode == -signal.SIGSEGV
        os.close(end)
        run.end()
        server.kill()
