"""Runs the tool as a user does: a process of its own, in a folder of the user's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.invariants import passing_errors

# Not by PYTHONPATH: the target must not see the checkout unless plain `python` would.
_BOOT = "import sys; sys.path[0] = {!r}; from adtool.__main__ import main; main()"

# The same with a clock that is far ahead a second after the target has made the file: a test of a
# time limit need not wait for it, nor guess how long a busy machine takes to come so far.
_AHEAD = """
import os, sys, time
sys.path[0] = {!r}
from adtool import session

def late():
    return os.path.exists({!r}) and time.time() > os.stat({!r}).st_mtime + 1.0

class Clock:
    @staticmethod
    def monotonic():
        return time.monotonic() + 1e6 * late()

def wait(run, seconds=None, other=-1, wait=session.Run.wait):
    return wait(run, seconds if late() or seconds is None else min(seconds, 0.1), other)

session.time, session.Run.wait = Clock, wait
from adtool.__main__ import main; main()
"""

# Variables of whoever runs the tests, which change what the tool prints.
_OTHERS = (
    "FORCE_COLOR", "FORCE_HYPERLINK", "PYTHONPATH", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY",
    "GITHUB_WORKSPACE",
)  # fmt: skip


class Tool:
    """`adtool` in a folder, with a kernel cache that all tests of the run share."""

    def __init__(self, folder: Path, root: Path, cache: Path) -> None:
        self.folder = folder
        self.root, self.command = str(root), [sys.executable, "-c", _BOOT.format(str(root))]
        self.env = {k: v for k, v in os.environ.items() if k not in _OTHERS}
        self.env |= {"ENGINE_CACHE_DIR": str(cache), "COLUMNS": "400"}

    def script(self, text: str, name: str = "script.py") -> Path:
        """Writes a script into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def without_waiting(self) -> str:
        """A statement of the target's, a second after which `--timeout 600` has passed."""
        file = str(self.folder / "far enough")
        self.command[-1] = _AHEAD.format(self.root, file, file)
        return f"open({file!r}, 'w').close()\n"

    def start(self, *args: str, **given: Any) -> subprocess.Popen[str]:
        """Starts the tool."""
        values: dict[str, Any] = {
            "cwd": self.folder,
            "env": self.env,
            "text": True,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        return subprocess.Popen([*self.command, *args], **(values | given))

    def __call__(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs the tool to its end."""
        process = self.start(*args, stdin=subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=300)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def report(self, *args: str) -> dict[str, Any]:
        """Runs `check --format json` and reads its standard output as strict JSON."""
        done = self("check", "--format", "json", *args)

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is not strict JSON")

        data: dict[str, Any] = json.loads(done.stdout, parse_constant=refuse)
        assert data["exit_code"] == done.returncode
        assert data["ok"] == (done.returncode == 0)
        if "--atol" not in args:
            assert not passing_errors(data)
        return data


@pytest.fixture
def adtool(tmp_path: Path, root: Path, kernels: Path) -> Tool:
    """The tool, run in a folder of its own."""
    return Tool(tmp_path, root, kernels)


@pytest.fixture
def fails(adtool: Tool) -> Callable[..., str]:
    """Checks a script that must give exit code 2 and one message; returns standard error."""

    def check(text: str, *options: str, args: tuple[str, ...] = ()) -> str:
        adtool.script(text)
        done = adtool("check", *options, "script.py", *args)
        assert done.returncode == 2, done.stdout + done.stderr
        lines = done.stderr.splitlines()
        assert sum(line.startswith("error: ") for line in lines) == 1, done.stderr
        for internal in ("adtool/", "engine/", "runpy", "importlib"):
            assert f"{internal}" not in done.stderr, done.stderr
        return done.stderr

    return check
