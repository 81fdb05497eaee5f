"""Runs the compiler: several sources at once, with a time limit, keeping its output."""

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
from engine.processes import started, wait


@dataclass(frozen=True)
class Job:
    """A compiler run that is to be: in the source's folder, `command` makes `output`."""

    source: Path
    output: Path
    command: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    """One compiler run. `problem` is empty where it made `output`."""

    source: Path
    output: Path
    problem: str
    command: str
    said: str
    refused: bool = False  # by the compiler itself, in its time


def build(jobs: Sequence[Job], timeout: float, at_once: int = 1) -> list[Outcome]:
    """Runs the compiler for each job.

    timeout: seconds that it may take for each. at_once: how many run at a time.
    """
    runs: list[_Run] = []
    done: list[Outcome] = []
    try:
        for job in jobs:
            if len(runs) - len(done) >= at_once:
                done.append(runs[len(done)].wait(timeout))
            runs.append(_Run(job))
        done += [r.wait(timeout) for r in runs[len(done) :]]
        return done
    finally:
        for r in runs:
            r.stop()


def shared_object(
    toolchain: Toolchain,
    source: Path,
    include: Sequence[Path],
    level: int = 0,
    before: Path | None = None,
) -> Job:
    """Makes a shared object beside a source file: see `Toolchain.compile_command`."""
    output = source.with_suffix(".so")
    command = toolchain.compile_command(source.name, output.name, include, level, before)
    return Job(source, output, command)


class _Run:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.words = job.source.with_suffix(".txt")
        self.command = shlex.join(job.command)
        self.process: subprocess.Popen[bytes] | None = None
        self.problem, self.refused = "", False
        self.began = time.monotonic()
        # A file, not a pipe: nothing blocks, however much the compiler says.
        with open(self.words, "wb") as words:
            try:
                self.process = started(
                    job.command,
                    cwd=job.source.parent,
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
                code = wait(self.process, max(0.0, self.began + limit - time.monotonic()))
                self.refused = code > 0
                if code:
                    self.problem = f"gave up (exit status {code})"
                elif not self.job.output.is_file():
                    self.problem = "made no output"
            except subprocess.TimeoutExpired:
                self.problem = f"was stopped after {limit:g} seconds"
                self.stop()
        said = ""
        with contextlib.suppress(OSError):
            said = self.words.read_text(encoding="utf-8", errors="replace")
        return Outcome(self.job.source, self.job.output, self.problem, self.command, said,
                       self.refused)  # fmt: skip

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
