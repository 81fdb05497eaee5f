"""Compares gradients of the watched run with gradients of an unwatched run.

A check watches each launch, so that compiled code takes none of them over: what it calls right is
what the launches do one by one. So a short target, or any with `--as-run`, runs again, with that
code from the second launch on, and the bits of the gradients and losses of each backward pass are
compared. Further runs tell whose fault a difference is: launch by launch, and with kernels that
look for faults, as the check has them.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from adtool import interrupts
from adtool.counts import counted
from adtool.executors.base import INTERRUPTED
from adtool.exits import ToolError
from adtool.job import Job, Keep, Running
from adtool.keeping import FOLDER
from adtool.reruns import Interrupted
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.session import BegunSession, Session
    from adtool.starter import Starter
    from adtool.status import Status
    from engine.autograd import Given, PassNotes

    Way = Literal["native", "plain", "bounds"]  # see `Running`

NAME = "unlike-as-run"  # of the capture that goes with a report, in `keeping.FOLDER`
_EXTRA = 120.0  # seconds that a run gets beside its own: the launcher may have to be compiled
_FEW = 64.0  # roundings of the largest entry: what is left of sums that cancel
_PAIRS = 3  # of runs that must agree before the engine is accused


@dataclass(frozen=True, slots=True)
class AsRun:
    """What unwatched runs say.

    kind: `alike`, or `engine` (with compiled launches a pass gave other bits, each time), `bounds`
    (kernels that look for faults gave other values than all unwatched runs), `rounding` (they
    differ by rounding alone), `watched` (unwatched runs agree with each other in all passes, and
    not with the watched one, for another reason), `unsteady` (they do not agree), `different` (the
    passes themselves are others), `failed` (a run came to no end), `part` (alike as far as passes
    were noted).
    number: of the pass. why: in words. name, index: of `engine` and `bounds`, the array, and as
    text the index of the first element that differs. other: its value with compiled launches, or
    with kernels that look for faults; plain: with neither. file, line: of the pass. capture: a file
    to be reported with it, empty for none.
    """

    kind: Literal[
        "alike", "engine", "bounds", "rounding", "watched", "unsteady", "different", "failed",
        "part",
    ]  # fmt: skip
    number: int = -1
    why: str = ""
    name: str = ""
    index: str = ""
    other: str = ""
    plain: str = ""
    file: str = ""
    line: int = 0
    capture: str = ""


class _Failed(Exception):
    """A run came to no end."""


def compared(
    session: Session, job: Job, keep: Keep | None, deadline: float | None, starter: Starter,
    ahead: Ahead,
) -> Session:  # fmt: skip
    """The session with what unwatched runs of its target say of its backward passes.

    keep: the file that holds a capture of the watched run. deadline: of `time.monotonic`, after
    which no run starts. starter: of the target's runs. ahead: the first unwatched one, if it began.
    """
    watched = session.passes
    if session.failure is not None or job.target.capture or watched is None:
        return session
    if any(s.fault.kind in ("outside", "race") for s in session.faults):
        return session  # what such a launch gives is another thing in each run
    try:
        run = _Runs(job, session.script_seconds, deadline, starter)
        found = _compare(watched, ahead.passes(run.limit()) or run("native"), run)
    except _Failed as failed:
        found = AsRun("failed", why=str(failed))
    except Interrupted as interrupted:
        return replace(session, failure=interrupted.failure)
    if found.kind in ("engine", "bounds"):
        found = replace(found, capture=_kept(session, keep))
    return replace(session, as_run=found)


class Ahead:
    """An unwatched run that begins as soon as the watched script has ended, beside its checks.

    Where it fails, another one runs after them: two runs may get in each other's way. As a context:
    afterwards nothing of it is left.
    """

    def __init__(self, job: Job, starter: Starter, wanted: bool) -> None:
        """wanted: whether there may be one."""
        self._job, self._starter, self._wanted = job, starter, wanted
        self._left = ExitStack()
        self._run: BegunSession | None = None

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *about: object) -> None:
        self._left.close()

    def look(self, status: Status) -> None:
        """Begins the run, if it is time for it. status: of the watched run."""
        if not self._wanted or not status.ready:
            return
        from adtool.session import BegunSession

        self._wanted = False
        with suppress(ToolError):
            begun = BegunSession(_unwatched(self._job, "native"), self._starter)
            self._run = self._left.enter_context(begun)

    def passes(self, limit: float) -> PassNotes | None:
        """What its passes gave, if it came to its end. limit: seconds that it may take."""
        if self._run is None:
            return None
        with suppress(_Failed, ToolError):
            return _passes_of(self._run.finished(limit))
        return None


def _unwatched(job: Job, way: Way, wanted: int = -1) -> Job:
    running = Running(way, wanted)
    return Job(job.target, job.options, overlay=job.overlay, check=False, running=running)


def _passes_of(done: Session) -> PassNotes:
    """What the passes of an unwatched run gave. Raises _Failed and Interrupted."""
    if done.failure is not None and done.failure.kind == INTERRUPTED:
        raise Interrupted(done.failure)
    if done.failure is not None or done.passes is None:
        raise _Failed("it failed" if done.failure is None else done.failure.message)
    return done.passes


class _Runs:
    """Unwatched runs of a target."""

    def __init__(self, job: Job, seconds: float, deadline: float | None, starter: Starter) -> None:
        self._job, self._seconds, self._deadline = job, seconds, deadline
        self._starter = starter

    def limit(self) -> float:
        """Seconds that a run may take. Raises _Failed where there are none."""
        limit = _EXTRA + 4.0 * self._seconds
        if self._deadline is not None:
            limit = min(limit, self._deadline - time.monotonic())
        if limit <= 0.0:
            raise _Failed("the time limit was reached")
        return limit

    def __call__(self, way: Way, wanted: int = -1) -> PassNotes:
        """Runs it once. Raises _Failed."""
        from adtool.session import run_session

        job, limit = _unwatched(self._job, way, wanted), self.limit()
        try:
            done = run_session(job, timeout=limit, silent=True, starter=self._starter)
        except ToolError as error:
            raise _Failed(error.message) from None
        return _passes_of(done)


def _compare(watched: PassNotes, first: PassNotes, run: _Runs) -> AsRun:
    """What an unwatched run says of the watched one, or of one without compiled launches."""
    both = min(watched.count, first.count)
    for p in range(both):
        if watched.layout(p) != first.layout(p):
            return AsRun("different", p, f"backward pass {p} belongs to another tape")
        if watched.value(p) != first.value(p):
            return _blamed(p, watched, first, run)
    whole = watched.whole and first.whole
    if whole and watched.count != first.count:
        why = f"it runs {counted(first.count, 'backward pass')} instead of {watched.count}"
        return AsRun("different", both, why)
    return AsRun("alike") if whole else AsRun("part", both)


def _blamed(p: int, watched: PassNotes, first: PassNotes, run: _Runs) -> AsRun:
    """Why an unwatched run gave other values than the watched one from pass `p` on."""
    for _ in range(_PAIRS):
        native, plain = run("native", p), run("plain", p)
        if not _same(native, first, p):
            return AsRun("unsteady", p)
        if not _same(plain, watched, p):
            if not _same(plain, first, p):
                return AsRun("unsteady", p)
            found = _compare(plain, first, run)
            if found.kind not in ("alike", "part"):
                return found
            bounds = run("bounds", p)
            if not _same(bounds, watched, p):
                return AsRun("watched", p)
            # Kernels that look for faults are compiled otherwise, and may round otherwise.
            if _close(bounds, plain):
                return AsRun("rounding", p)
            return _first("bounds", p, bounds, plain)
    return _first("engine", p, native, plain)


def _same(a: PassNotes, b: PassNotes, p: int) -> bool:
    """Whether two runs did the same up to a pass."""
    if min(a.count, b.count) <= p:
        return False
    return all(a.layout(k) == b.layout(k) and a.value(k) == b.value(k) for k in range(p + 1))


def _first(kind: Literal["engine", "bounds"], p: int, notes: PassNotes, plain: PassNotes) -> AsRun:
    """What differs in a pass: the first element with other bits."""
    import numpy as np

    for a, b in zip(notes.given, plain.given, strict=True):
        if a.contents != b.contents:
            other, usual = _numbers(a), _numbers(b)
            bits: list[Any] = [x.view(np.uint8).reshape(len(x), -1) for x in (other, usual)]
            at = int(np.flatnonzero((bits[0] != bits[1]).any(axis=1))[0])
            index = ", ".join(str(int(k)) for k in np.unravel_index(at, a.shape))
            values = f"{other[at].item():.9g}", f"{usual[at].item():.9g}"
            return AsRun(kind, p, "", a.name, index, *values, notes.file, notes.line)
    return AsRun("unsteady", p)


def _close(a: PassNotes, b: PassNotes) -> bool:
    """Whether rounding alone may tell what two runs gave in a pass apart."""
    import numpy as np

    for x, y in zip(a.given, b.given, strict=True):
        one, other = _numbers(x), _numbers(y)
        if one.dtype.kind != "f":
            if x.contents != y.contents:
                return False
            continue
        eps = float(np.finfo(one.dtype).eps)
        one, other = one.astype(np.float64), other.astype(np.float64)
        largest = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
        if not np.allclose(one, other, eps**0.5, _FEW * eps * largest, equal_nan=True):
            return False
    return True


def _numbers(given: Given) -> Any:
    import numpy as np

    return np.frombuffer(bytes.fromhex(given.contents), given.dtype)


def _kept(session: Session, keep: Keep | None) -> str:
    """A capture of the watched run, to be reported; empty where there is none."""
    from adtool.last import capture

    written = session.written
    if keep is None or written is None or written.why or not session.traces:
        return ""
    path, part = Path(FOLDER) / NAME, Path(f"{keep.path}-{NAME}")
    interrupts.undo(part, part.unlink)
    try:
        shutil.copy(keep.path, part)  # as private as that
        capture(session, None, part)
        os.replace(part, path)
    except (OSError, ValueError):
        return ""
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        interrupts.settled(part)
    return str(path)
