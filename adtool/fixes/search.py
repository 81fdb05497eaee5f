"""Finds fixes that remove their findings, by checking the changed program.

Nothing is written here. A program is run with the changed files in place of those on disk
(`adtool.overlay`), all else being as it is.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from adtool.executors.base import INTERRUPTED, Desk
from adtool.fixes.available import why_not
from adtool.fixes.edits import EditError, apart, applied, lines_of
from adtool.fixes.files import Change
from adtool.overlay import Overlaid, overlaid
from adtool.places import short
from adtool.report import Edit, Finding, Fix, Report, at_gate
from adtool.tasks.check_script import CheckScript
from engine.classes import dataclass
from engine.reading import getlines, read

ROUNDS = 10  # of one attempt: an array made with a gradient shows the next one without

_RANK = ("note", "warning", "error")

# A finding where the program on disk has it: the target's number, code, kernel, arrays, and place.
_Key = tuple[int, str, str, tuple[str, ...], str, int]


@dataclass(frozen=True, slots=True)
class Found:
    """changes: files with fixes in them. fixed: findings that these make go away. left: findings
    whose fixes are not made, with the reason.
    """

    changes: tuple[Change, ...] = ()
    fixed: tuple[Finding, ...] = ()
    left: tuple[tuple[Finding, str], ...] = ()


def search(tasks: Sequence[CheckScript], reports: Sequence[Report], unsafe: bool) -> Found:
    """Tries the fixes of the reports, all together and then one by one.

    tasks: what the reports are of, in their order; each is run again, silently, for every attempt
    that concerns it. unsafe: whether fixes are tried that may change more than gradients.
    Raises KeyboardInterrupt where one of these runs is interrupted.
    """
    return _Search(tasks, reports, unsafe).run()


class _Search:
    def __init__(
        self, tasks: Sequence[CheckScript], reports: Sequence[Report], unsafe: bool
    ) -> None:
        self.tasks = tasks
        self.unsafe = unsafe
        self.base = list(reports)
        self.reports = list(reports)  # with the fixes that were kept
        self.before: dict[str, bytes] = {}
        self.state: dict[str, bytes] = {}
        self.runs: dict[tuple[int, tuple[Overlaid, ...]], Report] = {}  # what came of them
        self.names: dict[str, str] = {}  # of each file the first name that was met
        self.known = Counter(self.key(n, f, {}) for n, f in self.open(self.base))

    def run(self) -> Found:
        wanted: dict[_Key, Finding] = {}
        left: list[tuple[Finding, str]] = []
        same: dict[tuple[str, tuple[Edit, ...]], _Key] = {}
        for number, f in self.open(self.base):
            if f.fix is None or not f.fix.edits:
                continue
            key = self.key(number, f, {})
            reason = why_not(f.fix) or self.read(f.fix)
            if reason:
                left.append((f, reason))
            elif not f.fix.safe and not self.unsafe:
                continue  # told as available
            else:
                first = same.setdefault((f.code, f.fix.edits), key)
                if first == key:
                    wanted.setdefault(key, f)
        fixed, refused = self.settle(wanted)
        changes = tuple(
            Change(file, self.before[file], data)
            for file, data in self.state.items()
            if data != self.before[file]
        )
        return Found(changes, tuple(fixed), (*left, *refused))

    def settle(
        self, wanted: dict[_Key, Finding]
    ) -> tuple[list[Finding], list[tuple[Finding, str]]]:
        if not wanted:
            return [], []
        why = self.attempt(wanted)
        if not why:
            return list(wanted.values()), []
        if len(wanted) == 1:
            return [], [(f, why) for f in wanted.values()]
        fixed, refused = [], []
        for key, f in wanted.items():
            why = self.attempt({key: f})
            if why:
                refused.append((f, why))
            else:
                fixed.append(f)
        return fixed, refused

    def attempt(self, wanted: dict[_Key, Finding]) -> str:
        """Keeps the fixes of these findings, and of those that come to light, if they help.

        Says why not; empty where they are kept.
        """
        state, reports = dict(self.state), list(self.reports)
        for _ in range(ROUNDS):
            edits = self.edits(wanted, state, reports)
            if not edits:
                break
            try:
                for file in {e.file for e in edits}:
                    state[file] = applied(state[file], [e for e in edits if e.file == file])
            except EditError as error:
                return str(error)
            why = self.check(state, reports)
            if why:
                return why
        return self.judged(wanted, state, reports)

    def edits(
        self, wanted: dict[_Key, Finding], state: dict[str, bytes], reports: Sequence[Report]
    ) -> list[Edit]:
        """Those of the next round: of what is still there, and of what is new; none overlap."""
        out: list[Edit] = []
        for number, f in self.open(reports):
            if f.fix is None or (not f.fix.safe and not self.unsafe):
                continue
            key = self.key(number, f, state)
            if key not in wanted and key in self.known:
                continue
            if why_not(f.fix) or self.read(f.fix, state):
                continue
            if apart(f.fix.edits, out):
                out += f.fix.edits
        return out

    def judged(
        self, wanted: dict[_Key, Finding], state: dict[str, bytes], reports: list[Report]
    ) -> str:
        now = Counter(self.key(n, f, state) for n, f in self.open(reports))
        if any(now[key] for key in wanted):
            return "it does not remove the finding"
        least = min((f.severity for f in wanted.values()), key=_RANK.index)
        for number, f in self.open(reports):
            key = self.key(number, f, state)
            if at_gate(f.severity, least) and now[key] > self.known[key]:
                place = f" at {short(f.file)}:{f.line}" if f.file else ""
                return f"with the change there is {f.severity}[{f.code}]{place}: {short(f.message)}"
        self.state, self.reports = state, reports
        self.known |= now
        return ""

    def check(self, state: dict[str, bytes], reports: list[Report]) -> str:
        """Checks what a state concerns. Says what is wrong with the runs; empty for nothing."""
        changed = [file for file, data in state.items() if data != self.before[file]]
        overlay = tuple(overlaid(file, state[file]) for file in changed)
        for number, task in enumerate(self.tasks):
            if self.base[number].error is not None:
                continue
            named = _named(self.base[number]) | _named(reports[number])
            concerned = tuple(o for o in overlay if o.file in named)
            if not concerned:
                continue
            report = self.runs.get((number, concerned))
            if report is None:
                again = replace(
                    task, job=replace(task.job, overlay=overlay, traces=0), keep=False, silent=True
                )  # fmt: skip
                report = again.run(Desk()).report
                self.runs[number, concerned] = report
            if report.error is not None:
                if report.error.kind == INTERRUPTED:
                    raise KeyboardInterrupt
                return f"with the change, the check fails: {report.error.message}"
            first = self.base[number]
            if report.tapes < first.tapes or _left_out(report) > _left_out(first):
                return "with the change, adtool could check less of the program"
            reports[number] = report
        return ""

    def open(self, reports: Sequence[Report]) -> list[tuple[int, Finding]]:
        """The findings of targets that could be checked, but for those that are suppressed."""
        return [
            (number, f)
            for number, (report, first) in enumerate(zip(reports, self.base, strict=True))
            if first.error is None
            for f in report.findings
            if not f.suppressed
        ]

    def read(self, fix: Fix, state: dict[str, bytes] | None = None) -> str:
        """Has the files of a fix in the state. Says why that cannot be."""
        for file in dict.fromkeys(e.file for e in fix.edits):
            real = os.path.realpath(file)
            if self.names.setdefault(real, file) != file:
                return f"`{short(file)}` is one file under two names"
            if file not in self.before:
                try:
                    data = read(real)
                    if not _checked(file, data):
                        return f"`{short(file)}` changed during the check"
                except (OSError, EditError) as error:
                    return f"`{short(file)}` cannot be read: {error}"
                self.before[file] = self.state[file] = data
            if state is not None:
                state.setdefault(file, self.before[file])
        return ""

    def key(self, number: int, f: Finding, state: dict[str, bytes]) -> _Key:
        line = f.line or 0
        if f.file in state and state[f.file] != self.before[f.file]:
            origins = _origins(self.before[f.file], state[f.file])
            line = origins[line] if 0 <= line < len(origins) else line
        # Notes that comments are unused are one kind, about one comment or another.
        what = f.message if f.code == f.name else ""
        return number, f.code + what, f.kernel, f.arrays, f.file or "", line


def _checked(file: str, data: bytes) -> bool:
    """Whether a file is what the check has read."""
    return getlines(file) == lines_of(data)


def _left_out(report: Report) -> int:
    return sum(e.verdict == "skipped" for e in report.end_to_end)


def _named(report: Report) -> set[str | None]:
    """The files that a target's report is about."""
    named = {x for launch in report.launches for x in (launch.file, launch.call_file)}
    for f in report.findings:
        named |= {f.file, *(file for file, _ in f.near)}
        named |= set() if f.fix is None else {e.file for e in f.fix.edits}
    return named


@lru_cache(maxsize=8)
def _origins(before: bytes, after: bytes) -> list[int]:
    """For each line of the second text, from 0, that of the first which it comes from.

    A new one gets a number that no line has. Both count from 1.
    """
    # Moved into a block, a line is what it was.
    old, new = ([x.strip() for x in text.split(b"\n")] for text in (before, after))
    out = [0, *(-n for n in range(1, len(new) + 1))]
    match = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i1, i2, j1, j2 in match.get_opcodes():
        if kind in ("equal", "replace"):
            for k in range(min(i2 - i1, j2 - j1)):
                out[j1 + k + 1] = i1 + k + 1
    return out
