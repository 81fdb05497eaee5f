"""`.adtool/last`: what the last run in a folder captured. Described in docs/last.md.

Strict JSON that is validated against dataclasses: reading it never runs anything.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adtool import __version__, codec
from adtool.exits import ToolError, because
from adtool.report import Finding
from adtool.traces import Traces

if TYPE_CHECKING:
    from adtool.report import Report
    from adtool.session import Session

FORMAT = "adtool-last"
VERSION = 1
FOLDER = ".adtool"
NAME = "last"
_BYTES = 256 << 20  # more than any file that is written
_AGAIN = "run `adtool check SCRIPT` in this folder, or name a script: adtool graph SCRIPT"


@dataclass(frozen=True, slots=True)
class LaunchVerdict:
    """A launch that a check did not pass: the worst verdict of its pairs."""

    tape: int
    launch: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Last:
    """A run. checked: whether gradients were checked. script: as it was named."""

    script: str
    checked: bool
    findings: tuple[Finding, ...]
    verdicts: tuple[LaunchVerdict, ...]
    traces: Traces


_WORST = ("fail", "nan", "inconclusive", "nondeterministic", "rounding")


def last_of(session: Session, report: Report | None) -> Last | None:
    """What a session captured; None where it captured nothing. report: of its check."""
    if not session.traces:
        return None
    found = (() if report is None else report.findings, _verdicts(report))
    return Last(session.target.name, report is not None, *found, _traces(session.traces))


def remember(session: Session, report: Report | None) -> None:
    """Writes the file in the current folder. Where that cannot be, nothing is written."""
    if not session.traces:
        return
    head = {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"adtool {__version__}",
        "script": session.target.name,
        "checked": report is not None,
        "findings": () if report is None else report.findings,
        "verdicts": _verdicts(report),
    }
    # The traces are JSON already.
    text = codec.dumps(head)[:-1] + ', "traces": ' + session.traces + "}\n"
    with suppress(OSError, ValueError):
        _write(Path(FOLDER), text)


def _verdicts(report: Report | None) -> tuple[LaunchVerdict, ...]:
    out = []
    for x in () if report is None else report.launches:
        found = {p.verdict for p in x.pairs}
        verdict = next((v for v in _WORST if v in found), "")
        if verdict:
            out.append(LaunchVerdict(x.tape, x.index, verdict))
    return tuple(out)


def _write(folder: Path, text: str) -> None:
    """Writes in one step, for the user alone. Raises OSError."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        # The folder is made by runs, and belongs into no repository.
        (folder / ".gitignore").write_text("*\n", encoding="ascii")
    if folder.is_symlink() or os.stat(folder).st_uid != os.getuid():
        return  # someone else's: nothing is written through it
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".last-")  # private: 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(name, folder / NAME)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def read() -> Last:
    """What the last run in the current folder captured.

    Raises ToolError where there is no such file, or it is damaged, foreign or newer.
    """
    path = Path(FOLDER) / NAME
    try:
        with open(path, "rb", opener=_at_once) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > _BYTES:
                raise _refused(path, "it is no file that adtool has written")
            data = file.read()
    except FileNotFoundError:
        raise ToolError(f"no run to draw: there is no `{path}` in this folder", _AGAIN) from None
    except OSError as error:
        raise ToolError(f"`{path}` cannot be read: {because(error)}", _AGAIN,
                        "environment") from None  # fmt: skip
    return _decoded(path, data)


def _at_once(path: str, flags: int) -> int:
    """Opens a file, and a pipe too: one that nobody writes to would be waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _decoded(path: Path, data: bytes) -> Last:
    try:
        found: Any = json.loads(data.decode("ascii"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _refused(path, f"it is no JSON ({error})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _refused(path, "it is not of adtool's format")
    version = found.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise _refused(path, "it does not say its version")
    if version != VERSION:
        made = str(found.get("tool"))[:40]
        raise _refused(path, f"it has version {version} ({made}), this adtool reads {VERSION}")
    try:
        last: Last = codec.decode(Last, found)
        check(last)
    except codec.CodecError as error:
        raise _refused(path, f"it is damaged ({error})") from None
    return last


def _traces(text: str) -> Traces:
    try:
        return codec.loads(Traces, text)
    except codec.CodecError as error:
        raise ToolError(f"the traces of the run cannot be read: {error}") from None


def check(last: Last) -> None:
    """Raises CodecError where a number that names something names nothing."""
    for t in last.traces.tapes:
        x = t.listing
        _within(f"tape {t.tape}, base", (a.base for a in x.arrays), len(x.arrays), -1)
        _within(f"tape {t.tape}, seeded", x.seeded, len(x.arrays), 0)
        if len(t.operations) != len(x.operations):
            raise codec.CodecError(f"tape {t.tape}: not every operation has its trace")
        for k in x.kernels:
            _within(f"kernel {k.name!r}", (*k.reads, *k.writes), len(k.parameters), 0)
        for o, traced in zip(x.operations, t.operations, strict=True):
            place = f"tape {t.tape}, operation {o.index}"
            _within(place, [o.kernel], len(x.kernels), 0)
            _within(place, [o.site], len(x.sites), -1)
            _within(place, o.arrays, len(x.arrays), -1)
            count = len(x.kernels[o.kernel].parameters)
            flow = traced.flow
            sizes = [] if flow is None else [flow.incoming, flow.outgoing, flow.added]
            if any(len(s) != count for s in (o.arrays, *sizes)):
                raise codec.CodecError(f"{place}: {count} parameters are expected")


def _within(place: str, numbers: Any, count: int, least: int) -> None:
    for n in numbers:
        if not least <= n < count:
            raise codec.CodecError(f"{place}: {n} is not from {least} to {count - 1}")


def _refused(path: Path, why: str) -> ToolError:
    return ToolError(f"`{path}` cannot be used: {why}", _AGAIN)
