"""Builds the report of a session: runs the rules, decides the exit code."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from adtool import __version__
from adtool.report import (
    SCHEMA,
    EndToEnd,
    Failure,
    Finding,
    Launch,
    Pair,
    Report,
    Severity,
    Worst,
    exit_code,
)
from adtool.rules import load_rules
from adtool.rules.base import more_memory
from adtool.taylor_report import taylor_of

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import LaunchResult, PairResult

_REASONS = 3  # named where nothing was checked
_ORDER = {"error": 0, "warning": 1, "note": 2}


def build_report(session: Session, gate: Severity) -> Report:
    """The report of a session. Where nothing was checked it is a failure, never a success."""
    found = [f for rule in load_rules() for f in rule.check(session)]
    findings = tuple(sorted(found, key=lambda f: _ORDER[f.severity]))
    launches = tuple(_launch(t.tape, x) for t in session.tapes for x in t.launches)
    error = session.failure or _nothing(session, launches, findings, gate)
    code = exit_code(findings, gate, error is not None)
    return Report(
        schema=SCHEMA,
        tool=f"adtool {__version__}",
        script=session.target.name,
        device=session.options.device or "cpu",
        ok=code == 0,
        exit_code=int(code),
        launches=launches,
        end_to_end=tuple(
            EndToEnd(t.tape, t.whole.verdict, t.whole.rel_error, t.whole.reason)
            for t in session.tapes
            if t.whole is not None
        ),
        findings=findings,
        error=error,
        gate=gate,
        tapes=len(session.tapes),
        seconds=round(session.seconds, 3),
        notes=_unmatched(session),
        taylor=taylor_of(session.tapes),
    )


def _launch(tape: int, launch: LaunchResult) -> Launch:
    site = launch.site
    return Launch(
        tape, launch.index, launch.kernel, launch.span.file, launch.span.line, launch.dim,
        tuple(_pair(p) for p in launch.pairs),
        "" if site is None else site.file,
        0 if site is None else site.line,
        launch.skipped,
    )  # fmt: skip


def _pair(p: PairResult) -> Pair:
    w = p.worst
    worst = None if w is None else Worst(w.row, w.col, w.ad, w.oracle, w.row_name, w.col_name)
    return Pair(
        p.input, p.output, p.verdict, p.checked, p.max_abs_error, p.max_rel_error, worst,
        p.directional, p.reason,
    )  # fmt: skip


def _nothing(
    session: Session, launches: tuple[Launch, ...], findings: tuple[Finding, ...], gate: str
) -> Failure | None:
    if any(p.decided for launch in launches for p in launch.pairs):
        return None
    if any(t.whole is not None and t.whole.verdict in ("fail", "nan") for t in session.tapes):
        return None
    if not session.tapes:
        return Failure(
            "no-tape", "nothing was checked: the script made no tape",
            "record the launches to check: `with engine.Tape() as tape: ...`",
        )  # fmt: skip
    if not launches and not session.kernels:
        return Failure(
            "no-launch", "nothing was checked: no kernel was launched inside a tape",
            "move the launches into the block of `with engine.Tape() as tape:`",
        )  # fmt: skip
    kernels = session.kernels
    if kernels and all(session.options.deselects(k) for k in kernels):
        return Failure(
            "no-kernel", "nothing was checked: --kernel and --skip-kernel leave no kernel",
            "the tapes hold " + _some([f"`{k}`" for k in kernels]),
        )  # fmt: skip
    reasons = _reasons(launches)
    listed = "; ".join(f"{r} ({_count(n)})" for r, n in list(reasons.items())[:_REASONS])
    more = f"; and {len(reasons) - _REASONS} more reasons" if len(reasons) > _REASONS else ""
    if any(p.verdict == "inconclusive" for launch in launches for p in launch.pairs):
        return Failure(
            "inconclusive",
            f"nothing was checked, no reference derivative is trustworthy: {listed}{more}",
            "see the warnings for what would settle it",
        )
    flags = ["requires_grad" in r for r in reasons]
    help = "see the notes for the places, and `adtool explain G012`"
    if any(flags):
        help = "create the arrays to differentiate with requires_grad=True"
    help = next(filter(None, map(more_memory, reasons)), help)
    kind = "no-gradient" if all(flags) else "skipped"
    return Failure(kind, f"nothing was checked: {listed}{more}", help)


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


def _count(launches: int) -> str:
    return f"{launches} launch" + ("es" if launches != 1 else "")


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


def _some(words: list[str], limit: int = 12) -> str:
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + more
