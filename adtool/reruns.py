"""Runs a target again with displaced inputs, where tapes cannot be replayed.

That is: values that go through the host while a tape records, and functions that the target gave to
`Tape.record_func`. Each run ends at the backward pass that it is about, and what it prints is lost.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adtool import codec
from adtool.executors.base import INTERRUPTED
from adtool.exits import ToolError
from adtool.job import Job, Moving
from engine import config

if TYPE_CHECKING:
    from adtool.outcome import Settled
    from adtool.report import Failure
    from adtool.session import Session
    from adtool.starter import Starter
    from engine.autograd import Broken, FunctionCheck, Sought, TapeResult

# A target that runs longer is not run again unless that was asked for, in seconds.
SHORT = 5.0
RUNS = 6  # of a target in one process, and its start
_TAPES = 3  # tapes of one run that are looked at; those that are alike count once


class Interrupted(Exception):
    """The user interrupted a run, and wants no other."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def settled(
    session: Session, job: Job, deadline: float | None, starter: Starter | None = None
) -> Session:
    """The session with what further runs of its target say of its tapes.

    deadline: of `time.monotonic`, after which no run starts. starter: of the target's runs. Raises
    ToolError where the system does not let a process run.
    """
    wanted = job.options.rerun
    if session.failure is not None:
        return session
    if job.target.capture:
        return replace(session, tapes=tuple(_left(t, _CAPTURE) for t in session.tapes))
    if wanted is False or (wanted is None and session.script_seconds > SHORT):
        return replace(session, tapes=tuple(map(_left, session.tapes)))
    out = {t.tape: t for t in session.tapes}
    for sought in _different(session.tapes):
        try:
            found = _settle(sought, job, session.script_seconds, deadline, starter)
        except Interrupted as interrupted:
            return replace(session, failure=interrupted.failure)
        for tape in session.tapes:
            if all(_alike(s) != _alike(sought) for s in tape.facts_of("Sought")):
                continue
            told = found.broken or found.function
            if found.other:
                out[tape.tape] = _left(out[tape.tape], _OTHER)
            elif told is not None:
                out[tape.tape] = _with(out[tape.tape], told, sought in tape.facts)
    return replace(session, tapes=tuple(out[t.tape] for t in session.tapes))


def is_compared(session: Session, job: Job, deadline: float | None, input_: bool) -> bool:
    """Whether the target is run again unwatched, for `adtool.as_run` to compare it with.

    By default it is if it is short, and if compiled code would take launches of it over: launch by
    launch, the runs do the same. Not where it had an input, which another run has not.

    deadline: of `time.monotonic`, after which no run starts. input_: see `has_input`.
    """
    wanted, passes = job.options.as_run, session.passes
    if wanted is not None or passes is None:
        return bool(wanted)
    seconds = session.script_seconds
    late = deadline is not None and time.monotonic() + 2.0 * seconds > deadline
    return is_taken_over(passes.launches, seconds, job) and not late and not input_


def is_taken_over(launches: int, seconds: float, job: Job) -> bool:
    """Whether an unwatched run of a target is wanted that takes so long and launches so much."""
    wanted = job.options.as_run
    short = seconds <= SHORT and 0 <= config.native_after < launches
    return short if wanted is None else wanted


def has_input() -> bool:
    """Whether a child may read something from standard input: a file, or what others write."""
    try:
        kind = os.fstat(0).st_mode
        if stat.S_ISREG(kind):
            return True
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            return False
        asked = select.poll()
        asked.register(0, select.POLLIN)
        found = asked.poll(0)
    except (OSError, ValueError, AttributeError):  # closed, or no such call
        return False
    # Without data, and with nobody there to write any, it is at its end.
    return not found or bool(found[0][1] & select.POLLIN)


def settled_in_process(session: Session) -> Session:
    """The session of a test, which is not run again: what only that would tell is unchecked."""
    return replace(session, tapes=tuple(_left(t, _TEST) for t in session.tapes))


_CAPTURE = (
    "to see whether the loss depends on it, adtool must run the script again with moved inputs, "
    "and a capture has no script: run `adtool check` on the script"
)
_TEST = (
    "to see whether the loss depends on it, adtool must run the program again with moved inputs, "
    "and tests run once: run `adtool check` on a script"
)
_NONE = (
    "to see whether the loss depends on it, adtool must run the script again with moved inputs: "
    f"use --rerun (default for scripts that take less than {SHORT:g} s)"
)
_OTHER = (
    "to see whether the loss depends on it, adtool ran the script again with moved inputs, but a "
    "repeated run gave other values (threads, or random numbers without a seed)"
)


def _left(tape: TapeResult, why: str = _NONE) -> TapeResult:
    """A tape with what only another run could tell, which there is none of, as unchecked."""
    from engine.autograd import Unchecked

    left = [
        Unchecked(-1, "a path through the host", why, s.reads[-1])
        for s in tape.facts_of("Sought") if s.reads
    ]  # fmt: skip
    return replace(tape, unchecked=(*tape.unchecked, *left))


def _different(tapes: Sequence[TapeResult]) -> Iterator[Sought]:
    seen: set[object] = set()
    for sought in (s for t in tapes for s in t.facts_of("Sought")):
        if _alike(sought) not in seen:
            if len(seen) == _TAPES:
                return
            seen.add(_alike(sought))
            yield sought


def _alike(s: Sought) -> object:
    return s.reads, s.seen, s.functions


def _settle(
    sought: Sought, job: Job, seconds: float, deadline: float | None, starter: Starter | None
) -> Settled:
    """What further runs say of a tape; nothing where they come to no end."""
    from adtool.outcome import Settled
    from adtool.session import run_session

    each = 10.0 + 4.0 * seconds
    limit = RUNS * each
    if deadline is not None:
        limit = min(limit, deadline - time.monotonic())
    if limit <= 0:
        return Settled()
    moving = Moving(codec.dumps(sought), each)
    try:
        again = Job(job.target, job.options, moving=moving, overlay=job.overlay)
        done = run_session(again, timeout=limit, silent=True, starter=starter)
    except ToolError:
        return Settled()
    if done.failure is not None and done.failure.kind == INTERRUPTED:
        raise Interrupted(done.failure)
    return done.settled or Settled()


def _with(tape: TapeResult, found: Broken | FunctionCheck, itself: bool) -> TapeResult:
    """A tape with what was found of it, or (not itself) of one that is alike."""
    from engine.autograd import Broken, WholeResult

    if isinstance(found, Broken):
        if any(_one(followed, found) for followed in tape.facts_of("Broken")):
            return tape
        return replace(tape, facts=(*tape.facts, found))
    checked = {f.site for f in found.functions}
    left = tuple(u for u in tape.unchecked if u.site is None or u.site not in checked)
    if tape.whole is not None and tape.whole.verdict == "skipped":
        how = "by running the program again" if itself else "like a similar tape"
        error = abs(found.ad - found.oracle) / max(abs(found.oracle), 1e-300)
        tape = replace(
            tape, whole=WholeResult("fail" if found.wrong else "pass", 1, found.ad, found.oracle,
                                    error, how, tolerance=found.tolerance),
        )  # fmt: skip
    return replace(tape, facts=(*tape.facts, found), unchecked=left)


def _one(followed: Broken, found: Broken) -> bool:
    """Whether a way through the host is one that was followed: it leaves the tape in the same
    line, or comes back to it in the same place.
    """
    if followed.to is not None and followed.to == found.to:
        return True
    a, b = followed.site, found.site
    if a is None or b is None or a.file != b.file:
        return False
    return a.line <= b.end_line and b.line <= a.end_line
