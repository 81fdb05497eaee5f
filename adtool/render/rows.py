"""Selects the rows of a table: a long rollout must not print a row for every launch."""

from __future__ import annotations

import math
from collections.abc import Iterable

from adtool.report import EndToEnd, Launch, Pair, Report
from engine.classes import dataclass

SHORT = 24  # a table of up to this many rows is shown whole
SHOWN = 10  # of the failing rows of a longer one
TABLES = 8  # of a run
HUGE = 1e6  # a relative error above this tells no more
DIGITS = 1e-3  # rounding of a tape's values that costs so much is told


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, as text. verdict is one of the report's."""

    launch: str
    kernel: str
    input: str
    output: str
    checked: str
    max_abs: str
    max_rel: str
    ad: str
    reference: str
    verdict: str


@dataclass(frozen=True, slots=True)
class TableData:
    """A table for one tape, or for tapes with the same launches. hidden: failing rows left out."""

    title: str
    rows: tuple[Row, ...]
    hidden: int = 0
    failing: bool = False


@dataclass(frozen=True, slots=True)
class _Item:
    launch: Launch
    pair: Pair | None

    @property
    def bad(self) -> bool:
        return self.pair is not None and self.pair.verdict in ("fail", "nan")

    @property
    def verdict(self) -> str:
        return "skipped" if self.pair is None else self.pair.verdict

    @property
    def size(self) -> float:
        """How bad it is; a NaN is worst."""
        if self.pair is None:
            return -1.0
        error = self.pair.max_rel_error
        if error is None:
            error = math.inf if self.pair.max_abs_error else 0.0
        return math.inf if self.pair.verdict == "nan" or math.isnan(error) else error


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


def wholes(report: Report) -> list[str]:
    """What is to be said of the tapes as wholes: a line for each verdict and reason."""
    groups: dict[tuple[str, str], list[EndToEnd]] = {}
    for e in report.end_to_end:
        groups.setdefault((e.verdict, e.reason), []).append(e)
    out = []
    for (verdict, reason), group in groups.items():
        which = f"tape {group[0].tape}" if len(group) == 1 else f"{len(group)} tapes"
        worst = _most(e.rel_error for e in group)
        known = worst is not None and verdict in ("pass", "fail")
        size = f", relative error {error(worst)}" if known else ""
        if worst is not None and worst > HUGE:
            size = f", relative error >{HUGE:.0e}"
        why = f" ({reason})" if reason else ""
        lost = _most(e.rounding for e in group)
        values = ""
        if lost is not None and lost >= DIGITS and verdict == "pass":
            values = f"; rounded values put the gradient off by {error(lost)}"
        out.append(f"{which} as a whole, end to end: {verdict}{size}{why}{values}")
    return out


def left_to_wholes(report: Report) -> str:
    """What is to be said of launches that the checks of whole tapes answer for; empty for none."""
    left = sum(any(p.by_whole for p in x.pairs) for x in report.launches)
    if not left:
        return ""
    what = "1 launch was" if left == 1 else f"{left:,} launches were"
    return (
        f"{what} looked at briefly, and checked as parts of whole tapes: many of the same kind "
        "were checked by themselves"
    )


def sampled(report: Report) -> str:
    """What is to be said of calls of functions of which few were looked at; empty for none."""
    last: dict[int, tuple[str, int, int]] = {}
    for x in report.launches:
        if x.framework:
            _, count, most = last.get(x.tape, ("", 0, 0))
            last[x.tape] = x.framework, count + 1, max(most, x.index)
    names = [name for name, count, most in last.values() if most >= count]
    if not names:
        return ""
    return (
        f"of equal calls of {' and '.join(dict.fromkeys(names))} functions, the first, the second, "
        "the fifth, and so on were checked"
    )


def _table(tapes: list[int], launches: list[Launch], verbose: bool) -> TableData:
    items = [_Item(x, p) for x in launches for p in (x.pairs or (None,))]
    many = len(tapes) > 1
    failing = any(i.bad for i in items)
    title = _title(tapes, len(launches), launches[0].framework)
    if verbose or (not many and len(items) <= SHORT):
        return TableData(title, tuple(_single(i, many) for i in items), 0, failing)
    bad = sorted((i for i in items if i.bad), key=lambda i: -i.size)
    rows = [_single(i, many) for i in bad[:SHOWN]]
    groups: dict[object, list[_Item]] = {}
    for i in items:
        if not i.bad:
            names = ("", "") if i.pair is None else (i.pair.input, i.pair.output)
            groups.setdefault((i.launch.kernel, names, i.verdict), []).append(i)
    rows += [_single(g[0], many) if len(g) == 1 else _merged(g) for g in groups.values()]
    return TableData(title, tuple(rows), max(0, len(bad) - SHOWN), failing)


def _title(tapes: list[int], launches: int, framework: str) -> str:
    each = launches // len(tapes)
    count = f"{each} launch" + ("es" if each != 1 else "")
    if framework:
        count = f"{each} call" + ("s" if each != 1 else "") + f" of {framework} functions"
    if len(tapes) == 1:
        return f"tape {tapes[0]}, {count}"
    span = f"tapes {tapes[0]} to {tapes[-1]}"
    if tapes[-1] - tapes[0] + 1 != len(tapes):
        span = f"{len(tapes)} tapes from {tapes[0]} to {tapes[-1]}"
    return f"{span}, {count} each (numbered tape:launch)"


def _single(item: _Item, many: bool) -> Row:
    launch = item.launch
    label = f"{launch.tape}:{launch.index}" if many else str(launch.index)
    return _row(label, [item])


def _merged(items: list[_Item]) -> Row:
    return _row(f"x{len(items)}", items)


def _row(label: str, items: list[_Item]) -> Row:
    first = items[0]
    pairs = [i.pair for i in items if i.pair is not None]
    if not pairs or first.verdict == "skipped":
        source, result = (pairs[0].input, pairs[0].output) if pairs else ("-", "-")
        return Row(label, first.launch.kernel, source, result, "-", "-", "-", "-", "-", "skipped")
    worst = max(pairs, key=lambda p: (p.worst is not None, p.max_rel_error or 0.0))
    ad = reference = "-"
    if worst.worst is not None:
        ad, reference = value(worst.worst.ad), value(worst.worst.oracle)
    max_abs = error(_most(p.max_abs_error for p in pairs))
    relative = _most(p.max_rel_error for p in pairs)
    max_rel = error(relative)
    if relative is not None and relative > HUGE and first.verdict != "nan":
        max_rel = f">{HUGE:.0e}"
    return Row(
        label,
        first.launch.kernel,
        worst.input,
        worst.output,
        "whole"
        if all(p.by_whole for p in pairs)
        else checked(sum(p.checked for p in pairs), sum(p.directional for p in pairs)),
        max_abs,
        max_rel,
        ad,
        reference,
        worst.verdict,
    )


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
