"""Builds the report of a session: runs the rules and decides the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from adtool import __version__, endings
from adtool.accuracy.judging import excuse, notes_of
from adtool.counts import counted, more
from adtool.exits import Exit
from adtool.fingerprints import linked, marked
from adtool.report import (
    FAULTS,
    SCHEMA,
    Failure,
    Finding,
    Launch,
    Report,
    Severity,
    at_gate,
    exit_code,
)
from adtool.results import launches_of, wholes_of
from adtool.rules import load_rules
from adtool.rules.base import remedy
from adtool.suppressions import Choice, suppressed
from adtool.taylor_report import taylor_of

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import Unchecked

_REASONS = 3  # named where nothing was checked
_NAMED = 4  # things that were left out for one reason
_ORDER = {"error": 0, "warning": 1, "note": 2}


def build_report(
    session: Session, gate: Severity, choice: Choice | None = None, exit_zero: bool = False
) -> Report:
    """The report of a session. Where nothing was checked it is a failure, never a success.

    choice: which findings count. exit_zero: findings do not change the exit code.
    """
    findings = _findings(session, choice or Choice())
    forgiven = _forgiven(findings, choice or Choice())
    if forgiven:  # what they hid is seen now
        session = replace(session, forgiven=forgiven)
        findings = _findings(session, choice or Choice())
    launches = launches_of(session)
    error = session.failure or _nothing(session, launches, findings, gate)
    code = exit_code(findings, gate, error is not None)
    return Report(
        schema=SCHEMA,
        tool=f"adtool {__version__}",
        script=session.target.name,
        device=session.options.device or "cpu",
        ok=code == 0,
        exit_code=0 if exit_zero and code is Exit.FINDINGS else int(code),
        launches=launches,
        end_to_end=wholes_of(session),
        findings=findings,
        error=error,
        gate=gate,
        gate_accuracy=session.accuracy,
        partial=session.options.partial or session.part,
        tapes=len(session.tapes),
        seconds=round(session.seconds, 3),
        notes=(*session.notes, *_notes(session), *notes_of(session, findings)),
        durations=session.durations,
        taylor=taylor_of(session.tapes),
        recorded=session.recorded,
        sampled=tuple(dict.fromkeys(t.sampled for t in session.tapes if t.sampled)),
    )


def _findings(session: Session, choice: Choice) -> tuple[Finding, ...]:
    """What the rules say, the worst first, with marks where it is suppressed."""
    found = [f for rule in load_rules() for f in rule.check(session)]
    found = suppressed(found, session, choice)
    ordered = marked(sorted(found, key=lambda f: _ORDER[f.severity]))
    return linked(excuse(tuple(ordered), session.expected))


def _forgiven(findings: tuple[Finding, ...], choice: Choice) -> frozenset[str]:
    """Kernels whose faults are found, and every one of them suppressed, or reckoned with."""
    faults = [f for f in findings if f.code in FAULTS]
    new = {f.kernel for f in faults if not f.suppressed and f.code not in choice.known}
    return frozenset(f.kernel for f in faults) - new


def _nothing(
    session: Session, launches: tuple[Launch, ...], findings: tuple[Finding, ...], gate: str
) -> Failure | None:
    if any(p.decided for launch in launches for p in launch.pairs):
        return None
    found = {f.code for f in findings if at_gate(f.severity, gate)}
    if session.tapes and found & {*FAULTS, "G004"}:
        return None  # what the launches did was seen, and that it is wrong
    spoilt = any(
        c.wrong for t in session.tapes for x in t.launches if x.by_hand is not None
        for c in x.by_hand.changes
    )  # fmt: skip
    if spoilt and "G003" in found:
        return None  # the same of functions of other frameworks
    if any(
        t.whole is not None and t.whole.verdict in ("pass", "fail", "nan") for t in session.tapes
    ):
        return None
    if not session.tapes and session.recorded:
        count = len(session.recorded)
        which = (
            "one tape, number 0" if count == 1 else f"{counted(count, 'tape')}, 0 to {count - 1}"
        )
        return Failure(
            "no-launch", "nothing was checked: --tape and --launch select no launch",
            f"the script made {which}, with {_launches(session.recorded)}",
        )  # fmt: skip
    if not session.tapes and session.processes:
        return Failure(
            "no-tape",
            "nothing was checked: the script made no tape in its own process, and it started "
            f"{counted(session.processes, 'other')}, which adtool cannot check",
            "record the tapes in the script's own process, for instance without workers",
        )
    if not session.tapes and session.unwatched:
        told = any(f.code == "G012" and not f.suppressed for f in findings)
        return endings.unwatched(session.unwatched, told)
    if not session.tapes and session.undifferentiated:
        return endings.undifferentiated(session.undifferentiated)
    if not session.tapes and session.left_alone:
        return endings.untouched(session.left_alone, "script")
    if not session.tapes and session.unimported:
        return endings.unimported(session.unimported, "script")
    if not session.tapes:
        return endings.uncalled(session.frameworks, "script")
    if not launches and not session.kernels:
        return Failure(
            "no-launch", "nothing was checked: no kernel was launched inside a tape",
            "move the launches into the block of `with engine.Tape() as tape:`",
        )  # fmt: skip
    kernels = session.kernels
    if not launches and session.options.launches:
        return Failure(
            "no-launch", "nothing was checked: no tape has a launch with the number in --launch",
            f"the tapes have {_launches(session.recorded)}",
        )  # fmt: skip
    if kernels and all(session.options.deselects(k) for k in kernels):
        return Failure(
            "no-kernel", "nothing was checked: --kernel and --skip-kernel select no kernel",
            "the tapes hold " + _some([f"`{k}`" for k in kernels]),
        )  # fmt: skip
    reasons = _reasons(launches)
    listed = "; ".join(f"{r} ({counted(n, 'launch')})" for r, n in list(reasons.items())[:_REASONS])
    if not reasons:
        unchecked = [u for t in session.tapes for u in t.unchecked]
        reasons = {u.reason: 1 for u in unchecked}
        listed = _left_out(unchecked)
    rest = len(reasons) - _REASONS
    also = f"; and {more(rest, 'reason')}" if rest > 0 else ""
    if any(p.verdict == "inconclusive" for launch in launches for p in launch.pairs):
        return Failure(
            "inconclusive",
            f"nothing was checked, no reference derivative is trustworthy: {listed}{also}",
            "see the warnings for ways to decide",
        )
    flags = ["requires_grad" in r for r in reasons]
    help = "see the notes for the places, and `adtool explain G012`"
    if any(flags):
        help = "create the arrays to differentiate with requires_grad=True"
    help = next(filter(None, map(remedy, reasons)), help)
    peer = next((x.peer for t in session.tapes for x in t.launches if x.peer is not None), None)
    if peer is not None and not any(flags):
        help += (
            f"; --alias {peer.name.lower()} lets the script use the engine instead of {peer.name}"
        )
    kind = "no-gradient" if all(flags) else "skipped"
    return Failure(kind, f"nothing was checked: {listed}{also}", help)


def _left_out(unchecked: Sequence[Unchecked]) -> str:
    """What was not checked for each of the first reasons, and why."""
    found: dict[str, dict[str, None]] = {}
    for u in unchecked:
        found.setdefault(u.reason, {})[u.what] = None
    each = [
        f"{_some(list(what), _NAMED)}: {reason}" for reason, what in list(found.items())[:_REASONS]
    ]
    return "; ".join(each) or "adtool kept no call"


def _reasons(launches: tuple[Launch, ...]) -> dict[str, int]:
    """Why launches were not checked, and how many each time."""
    found: dict[str, set[tuple[int, int]]] = {}
    for launch in launches:
        given = [launch.skipped] if launch.skipped else [p.reason for p in launch.pairs]
        for reason in given or [""]:
            found.setdefault(reason or "nothing was compared", set()).add(
                (launch.tape, launch.index)
            )
    return {reason: len(where) for reason, where in found.items()}


def _unmatched(session: Session) -> tuple[str, ...]:
    """A mistyped pattern would silently check too much or too little."""
    options, known = session.options, session.kernels
    given = [("--kernel", p) for p in options.kernels]
    given += [("--skip-kernel", p) for p in options.skip_kernels]
    return tuple(
        f"{option} {pattern!r} matches no kernel on the tapes: {_some(list(known))}"
        for option, pattern in given
        if known and not any(fnmatchcase(k, pattern) for k in known)
    )


def _notes(session: Session) -> tuple[str, ...]:
    return (*_unmatched(session), *strayed_notes(session))


def strayed_notes(session: Session) -> tuple[str, ...]:
    """What is said of options of the tool that went to the script."""
    if not session.strayed:
        return ()
    named = _some([f"`{o}`" for o in session.strayed])
    it = "it" if len(session.strayed) == 1 else "them"
    return (
        f"{named} after `{session.target.name}` went to the script, which does not seem to use "
        f"{it}: write options of adtool before the script",
    )


def _launches(of_tapes: Sequence[int]) -> str:
    """How many launches tapes have: `1 launch`, `3, 4 launches`."""
    noun = "launch" if set(of_tapes) == {1} else "launches"
    return f"{_some([str(n) for n in of_tapes])} {noun}"


def _some(words: list[str], limit: int = 12) -> str:
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + more
