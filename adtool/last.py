"""`.adtool/last`: the capture of the last checked run in a folder (docs/captures.md).

It is what `adtool graph` and `adtool report` draw from; programs that are not too long can be
checked again from it. Only a run whose gradients were checked is kept, so no other command can
replace what a check found.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from adtool import codec
from adtool.captures.container import CaptureReader
from adtool.captures.head import Digest
from adtool.captures.run import Run, complete, head_of
from adtool.exits import ToolError
from adtool.job import Keep
from adtool.keeping import FOLDER, NAME
from adtool.remarks import digests, not_kept, said
from adtool.report import Finding
from engine.classes import dataclass
from engine.private import Untrusted, opened, own_folder
from engine.reading import at_once

if TYPE_CHECKING:
    from adtool.report import Report
    from adtool.session import Session
    from adtool.traces import Traces

_AGAIN = "run `adtool check SCRIPT` in this folder, or name the script in this command"
_OWN = (
    f"delete `{FOLDER}` and run `adtool check SCRIPT`; or, if you trust its owner, name the "
    f"capture: adtool graph {FOLDER}/{NAME}"
)


@dataclass(frozen=True, slots=True)
class LaunchVerdict:
    """A launch that a check did not pass: the worst verdict of its pairs."""

    tape: int
    launch: int
    verdict: str
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Last:
    """A run. script: as it was named. report: of its check; None where nothing was checked.

    remarks: what happened since, or beside it, of the last run in the current folder.
    """

    script: str
    findings: tuple[Finding, ...]
    verdicts: tuple[LaunchVerdict, ...]
    traces: Traces
    report: Report | None = None
    remarks: tuple[str, ...] = ()

    @property
    def unchecked(self) -> str:
        """Why its gradients were not checked, or not to the end; empty where they were."""
        if self.report is None:
            return "no gradient was checked"
        return "" if self.report.error is None else self.report.error.message


_WORST = ("fail", "nan", "inconclusive", "nondeterministic", "rounding")


def last_of(session: Session, report: Report | None) -> Last | None:
    """What a session captured; None where it captured nothing. report: of its check."""
    if not session.traces:
        return None
    return seen(session.target.name, _traces(session.traces), report)


def seen(script: str, traces: Traces, report: Report | None) -> Last:
    """A run as it is drawn. report: of its check, if there was one."""
    findings = () if report is None else report.findings
    return Last(script, findings, _verdicts(report), traces, report)


def remember(session: Session, report: Report, keep: Keep | None) -> None:
    """Makes a session the last run, where that can be written. report: of its check.

    A check that came to nothing leaves the run before it, and a remark.
    """
    if keep is None or not os.path.exists(keep.path):
        return
    if report.error is not None and not report.launches:
        not_kept(session.target.name, report.error.message)
        return
    if not session.traces:
        not_kept(session.target.name, "it recorded no tape")
        return
    with suppress(OSError, ValueError):
        capture(session, report, Path(keep.path), _checked(session, report))
        os.replace(keep.path, Path(FOLDER) / NAME)


def _checked(session: Session, report: Report) -> tuple[Digest, ...]:
    """The source files that a check depends on, as far as they are known; none of a capture."""
    target = session.target
    if target.capture:
        return ()
    script = [target.script] if target.script is not None and target.text is None else []
    return digests([*script, *(x.file for x in report.launches if x.file)])


def capture(
    session: Session, report: Report | None, path: Path, checked: tuple[Digest, ...] = ()
) -> None:
    """Completes the capture of a session. checked: see `Head`. Raises OSError."""
    written = session.written
    head = head_of(
        session.target.name, session.options.device, "" if written is None else written.why,
        recorded=session.recorded, processes=session.processes,
        script_seconds=session.script_seconds,
        sources=() if written is None else written.sources, checked=checked,
    )  # fmt: skip
    complete(path, head, session.traces, report, session.faults)


def _verdicts(report: Report | None) -> tuple[LaunchVerdict, ...]:
    out = []
    for x in () if report is None else report.launches:
        found = {p.verdict for p in x.pairs}
        verdict = next((v for v in _WORST if v in found), "")
        if verdict:
            out.append(LaunchVerdict(x.tape, x.index, verdict, x.kernel))
    return tuple(out)


def read(path: Path | None = None) -> Last:
    """What a capture, or the last run in the current folder, has to be drawn.

    A capture that is named is told of by its file: it has no script, and may have several copies.
    Raises ToolError where there is no such file, or it is damaged, foreign or of another version.
    The last run is read where its folder and file are the user's own, and nobody else may write to
    them; a capture that is named may be anyone's.
    """
    from adtool.traces import Traces

    given = path
    path = Path(FOLDER) / NAME if path is None else path
    if given is None:
        _require_last(path)
    try:
        with CaptureReader(path, _own if given is None else at_once) as reader:
            run = Run(reader)
            run.tell_sources()
            traces, report = run.traces(), run.report()
            named = given is not None and not _is_last(path)
            script = str(path) if named else run.head.script
            last = seen(script, traces or Traces((), 0), report)
            if not named:
                last = replace(last, remarks=said(script, run.head.checked))
    except ToolError as error:
        help = _AGAIN if given is None and error.help != _OWN else error.help
        raise ToolError(error.message, help, error.kind) from None
    return last


def _is_last(path: Path) -> bool:
    with suppress(OSError):
        return os.path.samefile(path, Path(FOLDER) / NAME)
    return False


def _require_last(path: Path) -> None:
    """Raises ToolError where no run was kept, or where others could have put it there."""
    there = os.path.lexists(path)
    try:
        own_folder(FOLDER)
    except Untrusted as error:
        if not there:
            raise ToolError(
                f"no run to draw: adtool stored none, because `{FOLDER}` {error.why}",
                f"delete `{FOLDER}` and run `adtool check SCRIPT`",
                "environment",
            ) from None
        raise _untrusted(FOLDER, error) from None
    except OSError:
        pass  # there is none
    if not there:
        raise ToolError(
            f"no run to draw: this folder has no `{path}`, so nothing was checked here", _AGAIN
        )


def _own(path: str, flags: int) -> int:
    try:
        return opened(path, flags=flags)[0]
    except Untrusted as error:
        raise _untrusted(path, error) from None


def _untrusted(path: str, error: Untrusted) -> ToolError:
    return ToolError(f"`{path}` cannot be read: it {error.why}", _OWN, "environment")


def _traces(text: str) -> Traces:
    from adtool.traces import loads

    try:
        return loads(text)
    except codec.CodecError as error:
        raise ToolError(f"the traces of the run cannot be read: {error}") from None
