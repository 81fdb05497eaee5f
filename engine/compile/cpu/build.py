"""Runs the compiler: several sources at once, with a time limit, keeping its words."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from engine.classes import dataclass
from engine.compile.cpu.toolchain import Toolchain


@dataclass(frozen=True)
class Outcome:
    """One compiler run. `problem` is empty where it made `output`."""

    output: Path
    problem: str
    command: str
    said: str


def build(
    toolchain: Toolchain,
    sources: Sequence[tuple[Path, int]],
    include: Sequence[Path],
    timeout: float,
    at_once: int = 1,
) -> list[Outcome]:
    """Compiles source files, each at its level, to shared objects beside them.

    timeout: seconds that the compiler may take for each. at_once: how many run at a time.
    """
    runs: list[_Run] = []
    done: list[Outcome] = []
    try:
        for source, level in sources:
            if len(runs) - len(done) >= at_once:
                done.append(runs[len(done)].wait(timeout))
            runs.append(_Run(toolchain, source, include, level))
        done += [r.wait(timeout) for r in runs[len(done) :]]
        return done
    finally:
        for r in runs:
            r.stop()


class _Run:
    def __init__(
        self, toolchain: Toolchain, source: Path, include: Sequence[Path], level: int
    ) -> None:
        self.output = source.with_suffix(".so")
        self.words = source.with_suffix(".txt")
        command = toolchain.compile_command(source.name, self.output.name, include, level)
        self.command = shlex.join(command)
        self.process: subprocess.Popen[bytes] | None = None
        self.problem = ""
        self.began = time.monotonic()
        # A file, not a pipe: nothing blocks, however much the compiler says.
        with open(self.words, "wb") as words:
            try:
                self.process = subprocess.Popen(
                    command,
                    cwd=source.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=words,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # so that its children can be ended with it
                )
            except OSError as e:
                self.problem = f"could not be started: {e}"

    def wait(self, limit: float) -> Outcome:
        if self.process is not None:
            try:
                code = self.process.wait(max(0.0, self.began + limit - time.monotonic()))
                if code:
                    self.problem = f"gave up (exit status {code})"
                elif not self.output.is_file():
                    self.problem = "made no output"
            except subprocess.TimeoutExpired:
                self.problem = f"was stopped after {limit:g} seconds"
                self.stop()
        said = ""
        with contextlib.suppress(OSError):
            said = self.words.read_text(encoding="utf-8", errors="replace")
        return Outcome(self.output, self.problem, self.command, said)

    def stop(self) -> None:
        """Ends the compiler and what it started, if it still runs."""
        if self.process is None or self.process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
