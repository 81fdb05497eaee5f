"""The measurements of a session's checks, in the report's form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from adtool.pair_errors import known_errors
from adtool.report import EndToEnd, Launch, Pair, Worst

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import LaunchResult, PairResult, WholeResult


def launches_of(session: Session) -> tuple[Launch, ...]:
    """The launches, in recorded order."""
    known: dict[int, tuple[Pair, ...]] = {}
    return tuple(_launch(t.tape, x, known) for t in session.tapes for x in t.launches)


def wholes_of(session: Session) -> tuple[EndToEnd, ...]:
    """The tapes as wholes, those that were checked so."""
    return tuple(_whole(t.tape, t.whole) for t in session.tapes if t.whole is not None)


def _launch(tape: int, launch: LaunchResult, known: dict[int, tuple[Pair, ...]]) -> Launch:
    """known: pairs that were told, by identity: many launches have those of another one."""
    site = launch.site
    pairs = known.get(id(launch.pairs))
    if pairs is None:
        pairs = known[id(launch.pairs)] = tuple(pair_of(p) for p in launch.pairs)
    return Launch(
        tape, launch.index, launch.kernel, launch.span.file, launch.span.line, launch.dim,
        pairs,
        None if site is None else site.file,
        None if site is None else site.line,
        launch.skipped,
        "" if launch.by_hand is None else launch.by_hand.framework,
    )  # fmt: skip


def pair_of(p: PairResult) -> Pair:
    """One pair, in the report's form."""
    w = p.worst
    worst = None if w is None else Worst(
        w.row, w.col, w.ad, w.oracle, w.row_name, w.col_name, w.relative, w.allowed
    )  # fmt: skip
    scale, off = (p.scale, p.off) if p.scale > 0.0 else (None, None)
    return Pair(
        p.input, p.output, p.verdict, p.checked, *known_errors(p), worst, p.directional, p.reason,
        p.digits_lost if p.verdict == "rounding" else None, scale, off, p.forward_error, p.by_whole,
        p.tolerance if p.checked + p.directional else None, p.joint,
    )  # fmt: skip


def _whole(tape: int, w: WholeResult) -> EndToEnd:
    size: float | None = w.rel_error
    if not w.directional:
        size = None
    elif w.verdict == "nan":
        size = math.nan
    elif w.rel_error == 0.0 and w.ad != w.oracle:  # nothing to be relative to, or not known
        size = None
    return EndToEnd(tape, w.verdict, size, w.reason, w.rounding, w.tolerance)
