"""Selects the rows of a table: a long rollout must not print a row for every launch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from adtool.counts import counted, was
from adtool.folds import BAD, Fold, folds, items_of, measures, span
from adtool.report import EndToEnd, Launch, Pair, Report
from engine.classes import dataclass

SHORT = 24  # a table of up to this many rows is shown whole
TABLES = 8  # of a run
WHOLE, JOINT = "whole", "joint"  # in place of how much of a pair was compared
HUGE = 1e6  # a relative error above this tells no more
DIGITS = 1e-3  # rounding of a tape's values that costs so much is told


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, as text. verdict is one of the report's.

    launch: its number, or how many launches it stands for, of which the worst is shown. error,
    relative, ad, reference: of one entry, or of one direction, which an error has a `d` for.
    """

    launch: str
    kernel: str
    input: str
    output: str
    checked: str
    error: str
    relative: str
    ad: str
    reference: str
    verdict: str


@dataclass(frozen=True, slots=True)
class TableData:
    """A table for one tape, or for tapes with the same launches. folded: rows stand for several."""

    title: str
    rows: tuple[Row, ...]
    failing: bool = False
    folded: bool = False


def tables(report: Report, verbose: bool = False) -> tuple[list[TableData], int]:
    """The tables of a report, in the order of the tapes, and how many were left out.

    verbose: one table a tape and one row a pair. Else tapes with the same launches share
    a table and rows that differ in the launch only are one.
    """
    by_tape: dict[int, list[Launch]] = {}
    for launch in report.launches:
        by_tape.setdefault(launch.tape, []).append(launch)
    if verbose:
        return [_table([t], launches, True) for t, launches in by_tape.items()], 0
    alike: dict[object, list[int]] = {}
    for tape, launches in by_tape.items():
        key = tuple((x.kernel, tuple((p.input, p.output) for p in x.pairs)) for x in launches)
        alike.setdefault(key, []).append(tape)
    found = [
        _table(numbers, [x for n in numbers for x in by_tape[n]], False)
        for numbers in alike.values()
    ]
    if len(found) <= TABLES:
        return found, 0
    shown = sorted(found, key=lambda t: not t.failing)[:TABLES]
    return [t for t in found if t in shown], len(found) - TABLES


def legend(shown: Sequence[TableData]) -> str:
    """What the marks in some tables mean, in one line; empty where there are none.

    No part of it looks like a finding (`error: ...`), which searches of logs look for.
    """
    rows = [row for t in shown for row in t.rows]
    out = []
    launches = [row.launch for row in rows]
    if m := _first(r"x(\d+)", launches):
        out.append(f"{m[0]} stands for {counted(int(m[1]), 'row')}, of which the worst is shown")
    if m := _first(r"(\d+)/(\d+)", launches):
        out.append(f"{m[0]} stands for {m[1]} rows of {m[2]}, of which the worst is shown")
    if m := _first(r"(\d+)\+(\d+)d", [row.checked for row in rows]):
        entries = "1 Jacobian entry" if m[1] == "1" else f"{m[1]} Jacobian entries"
        lines = "1 random direction" if m[2] == "1" else f"{m[2]} random directions"
        out.append(f"{m[0]} means {entries} and {lines} over the whole array")
    if any(row.checked == JOINT for row in rows):
        out.append(f"{JOINT} means one random direction through several inputs at once, which has "
                   "no numbers for each of them")  # fmt: skip
    if any(row.checked == WHOLE for row in rows):
        out.append(f"{WHOLE} means as a part of its whole tape")
    if any(row.error.endswith("d") for row in rows):
        out.append("an error with d is that of a direction")
    if any(map(_is_beside_larger, rows)):
        out.append("where larger derivatives beside it let an entry pass, its relative error is "
                   "relative to them")  # fmt: skip
    return f"columns: {'; '.join(out)}" if out else ""


def _is_beside_larger(row: Row) -> bool:
    """Whether the relative error of a row is clearly less than that of the numbers beside it."""
    try:
        error, relative = float(row.error.removesuffix(" d")), float(row.relative)
        return relative < 0.5 * error / abs(float(row.reference))
    except (ValueError, ZeroDivisionError):
        return False


def _first(pattern: str, cells: Iterable[str]) -> re.Match[str] | None:
    return next(filter(None, (re.fullmatch(pattern, cell) for cell in cells)), None)


def wholes(report: Report) -> list[str]:
    """What is to be said of the tapes as wholes: a line for each verdict and reason."""
    groups: dict[tuple[str, str], list[EndToEnd]] = {}
    for e in report.end_to_end:
        groups.setdefault((e.verdict, e.reason), []).append(e)
    out = []
    for (verdict, reason), group in groups.items():
        which = f"tape {group[0].tape}" if len(group) == 1 else counted(len(group), "tape")
        worst = _most(e.rel_error for e in group)
        known = worst is not None and verdict in ("pass", "fail")
        size = f", relative error {error(worst)}" if known else ""
        if worst is not None and worst > HUGE:
            size = f", relative error >{HUGE:.0e}"
        why = f" ({reason})" if reason else ""
        lost = _most(e.rounding for e in group)
        values = ""
        if lost is not None and lost >= DIGITS and verdict == "pass":
            values = f"; rounded values change the gradient (relative change {error(lost)})"
        out.append(f"{which} as a whole, end to end: {verdict}{size}{why}{values}")
    return out


def limits(report: Report) -> list[str]:
    """What is to be said of launches that were not looked at pair by pair: a line for each kind."""
    out = []
    if joint := sum(any(p.joint for p in x.pairs) for x in report.launches):
        out.append(
            f"{_launches(joint)} checked only along one random direction through several inputs "
            "at once, because similar launches were checked in full"
        )
    if left := sum(any(p.by_whole for p in x.pairs) for x in report.launches):
        out.append(
            f"{_launches(left)} checked only as parts of whole tapes, because many similar "
            "launches were checked in full"
        )
    if report.sampled:
        out.append(_sampled(report))
    return out


def _launches(number: int) -> str:
    return f"{counted(number, 'launch')} {was(number)}"


def _sampled(report: Report) -> str:
    """What is to be said of equal calls of functions, of which few are checked."""
    own = [x for x in report.launches if x.framework in report.sampled]
    every = sum(report.recorded[t] for t in {x.tape for x in own} if t < len(report.recorded))
    return (
        f"{len(own):,} of {counted(every, 'call')} of {' and '.join(report.sampled)} functions "
        f"{was(len(own))} checked in full: of equal calls, calls 1, 2, 5, 17 and so on, and those "
        "that a quick check suspects"
    )


def _table(tapes: list[int], launches: list[Launch], verbose: bool) -> TableData:
    items = items_of(launches)
    many = len(tapes) > 1
    title = _title(tapes, len(launches), launches[0].framework)
    failing = any(i.verdict in BAD for i in items)
    # Calls have no numbers that the program knows: equal ones are one row, wrong ones come first.
    calls = bool(launches[0].framework)
    if verbose or (not many and not calls and len(items) <= SHORT):
        return TableData(title, tuple(_row(Fold((i,), 1), many) for i in items), failing)
    found = folds(items)
    folded = any(f.share for f in found)
    return TableData(title, tuple(_row(f, many) for f in found), failing, folded)


def _title(tapes: list[int], launches: int, framework: str) -> str:
    each = launches // len(tapes)
    what = f"{counted(each, 'call')} of {framework} functions" if framework else (
        counted(each, "launch")
    )  # fmt: skip
    if len(tapes) == 1:
        return f"{span(tapes)}, {what}"
    return f"{span(tapes)}, {what} each (numbered tape:launch)"


def _row(fold: Fold, many: bool) -> Row:
    worst = fold.worst
    launch, pair = worst.launch, worst.pair
    label = f"{launch.tape}:{launch.index}" if many else str(launch.index)
    names = worst.names if pair is not None else ("-", "-")
    if pair is None or fold.verdict == "skipped":
        rest = ("-",) * 5
        return Row(fold.share or label, launch.kernel, *names, *rest, "skipped")
    m = measures(pair)
    size = error(m.error) + (" d" if m.direction and m.error is not None else "")
    relative = error(m.relative)
    if m.relative is not None and m.relative > HUGE and fold.verdict != "nan":
        relative = f">{HUGE:.0e}"
    ad, reference = ("-" if x is None else value(x) for x in (m.adjoint, m.reference))
    return Row(
        fold.share or label, launch.kernel, *names, _checked(fold), size, relative, ad, reference,
        fold.verdict,
    )  # fmt: skip


def _checked(fold: Fold) -> str:
    return word_for(fold.pairs) or checked(
        sum(p.checked for p in fold.pairs), sum(p.directional for p in fold.pairs)
    )


def word_for(pairs: Iterable[Pair]) -> str:
    """What stands for the counts of pairs none of which was looked at by itself; else empty."""
    found = {WHOLE if p.by_whole else JOINT if p.joint else "" for p in pairs}
    return "" if "" in found else max(found, key=[WHOLE, JOINT].index, default="")


def _most(errors: Iterable[float | None]) -> float | None:
    """The largest of those that are known."""
    known = [e for e in errors if e is not None]
    return max(known, key=lambda e: math.inf if math.isnan(e) else e, default=None)


def checked(entries: int, directions: int) -> str:
    """How much was compared: `64` entries, `64+3d` with three random directions."""
    if not directions:
        return count(entries)
    return (f"{count(entries)}+" if entries else "") + f"{count(directions)}d"


def count(number: int) -> str:
    """A count in at most four characters below a billion."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if number >= size:
            scaled = number / (1000 if unit == "k" else size)
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return str(number)


def error(size: float | None) -> str:
    """An error with two digits, as 1.2e-05; a dash for one that is not known."""
    return "-" if size is None else f"{size:.2g}"


def value(number: float, width: int = 9) -> str:
    """A value with as many digits as fit, up to float32's seven."""
    for digits in range(7, 1, -1):
        text = f"{number:.{digits}g}"
        if len(text) <= width:
            return text
    return f"{number:.1g}"
