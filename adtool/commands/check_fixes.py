"""`adtool check --diff` and `--fix`: shows or writes fixes that remove their finding."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adtool.commands.check_runs import CheckRuns
from adtool.executors import executor
from adtool.executors.base import INTERRUPTED
from adtool.exits import ToolError
from adtool.fixes.available import Offers, fixable
from adtool.fixes.edits import diff
from adtool.fixes.files import write
from adtool.fixes.search import Found, search
from adtool.places import folder, short
from adtool.report import Finding, Report, runs_exit_code
from adtool.saying import say
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.tasks.check_script import CheckScript


@dataclass(frozen=True, slots=True)
class Fixing:
    """write: files are changed, else the change is shown. unsafe: see `adtool.report.Fix`."""

    write: bool
    unsafe: bool

    @property
    def offers(self) -> Offers:
        """The fixes that remain to be tried afterwards: neither shown, nor made, nor refused."""
        return "none" if self.unsafe else "unsafe"

    def run(self, runs: CheckRuns, tasks: Sequence[CheckScript]) -> int:
        """Checks, with what is asked for before or after it, and gives the exit code.

        Raises ToolError for captures, and where files cannot be written; none is, then.
        """
        for task in tasks:
            if task.job.target.capture:
                raise ToolError(
                    f"`{task.name}` is a capture: it has no code to fix",
                    "check the script that made the capture",
                )
            if task.job.target.text is not None:
                raise ToolError(
                    "a script from standard input has no file to change",
                    "save it in a file, and name the file",
                )
        if self.write:
            reports = _silently(runs, tasks)
            found = search(tasks, reports, self.unsafe)
            write(found.changes)
            for change in found.changes:
                linecache.checkcache(change.file)
            self._tell(found, runs, reports, "fixed")
            return runs.run(tasks)
        reports = runs.reports(tasks)
        if any(_interrupted(r) for r in reports):
            return runs_exit_code(reports)
        found = search(tasks, reports, self.unsafe)
        self._tell(found, runs, reports, "would fix")
        _show(found, runs)
        return runs_exit_code(reports)

    def _tell(self, found: Found, runs: CheckRuns, reports: Sequence[Report], word: str) -> None:
        """What is fixed, and what is not: where reports go for people."""
        if runs.style.quiet and not found.left and not found.changes:
            return
        stream = sys.stderr if runs.style.data_on_stdout else sys.stdout
        for f in found.fixed:
            assert f.fix is not None
            say(f"{word} {_named(f)}: {f.fix.message}", file=stream)
        for f, why in found.left:
            say(f"not fixed: {_named(f)}: {why}", file=stream)
        if not (found.fixed or found.left) and all(r.error is None for r in reports):
            others = any(fixable(r.findings)[1] for r in reports) and not self.unsafe
            say(f"nothing to fix: no finding has a {'safe ' * others}fix", file=stream)
        if word == "fixed":
            for change in found.changes:
                say(f"changed {short(change.file)}", file=stream)
        stream.flush()


def fixing(write: bool, show: bool, unsafe: bool) -> Fixing | None:
    """What the options ask for; None for a check as ever. Raises ToolError."""
    if write and show:
        raise ToolError("--fix and --diff exclude each other", "name one of them")
    if unsafe and not (write or show):
        raise ToolError("--unsafe-fixes needs --fix or --diff", "add one of them")
    return Fixing(write, unsafe) if write or show else None


def _silently(runs: CheckRuns, tasks: Sequence[CheckScript]) -> list[Report]:
    """The reports before anything is changed."""
    quiet = [replace(t, silent=True, keep=False) for t in tasks]
    name = runs.executor or ("serial" if len(tasks) <= 1 or runs.jobs == 1 else "processes")
    results: Any = executor(name, runs.jobs).run(quiet)
    reports = [finished.result.report for finished in results]
    if any(_interrupted(r) for r in reports):
        raise KeyboardInterrupt
    return reports


def _interrupted(report: Report) -> bool:
    return report.error is not None and report.error.kind == INTERRUPTED


def _named(f: Finding) -> str:
    place = f" at {short(f.file)}:{f.line}" if f.file else ""
    return f"{f.severity}[{f.code}]{place}"


def _show(found: Found, runs: CheckRuns) -> None:
    stream = sys.stderr if runs.style.data_on_stdout else sys.stdout
    for change in sorted(found.changes, key=lambda c: c.file):
        name = os.path.relpath(os.path.realpath(change.file), os.path.realpath(folder()))
        data = diff(change.before, change.after, name.replace(os.sep, "/"))
        stream.flush()
        buffer = getattr(stream, "buffer", None)
        if buffer is None or stream.isatty() or os.environ.get("GITHUB_ACTIONS"):
            # To be looked at, and not by `patch`: with the user's text made harmless.
            say(*data.decode("utf-8", "backslashreplace").splitlines(), file=stream)
        else:
            buffer.write(data)
        stream.flush()
