"""The head of a page: the verdict, and what was not checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adtool import verdicts
from adtool.counts import counted, more, plural
from adtool.coverage import coverage
from adtool.page.data import PageRun
from adtool.render.rows import limits
from adtool.report import at_gate
from engine.classes import dataclass

_ORDER = ("fail", "nan", "inconclusive", "nondeterministic", "rounding", "kink", "skipped", "pass")


@dataclass(frozen=True, slots=True)
class Count:
    """A number and what it counts."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Share:
    """A verdict's part of all pairs. percent: its width in a bar."""

    verdict: str
    count: int
    percent: float


@dataclass(frozen=True, slots=True)
class Summary:
    """verdict: a `verdicts.Kind`; word: the same for people; why: a sentence."""

    verdict: str
    word: str
    why: str
    counts: tuple[Count, ...]
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """Something that was not checked, and why. where: the first places."""

    what: str
    why: str
    where: str


def summary(run: PageRun) -> Summary:
    """The summary of a run."""
    r = run.report
    open_ = [f for f in r.findings if not f.suppressed]
    hidden = len(r.findings) - len(open_)
    levels = {"error": "error", "warning": "warning or error", "note": "note, warning or error"}
    accuracy = "" if r.gate_accuracy is None else f"; accuracy {r.gate_accuracy:g}"
    if r.error is not None:
        why = r.error.message
    elif r.ok:
        why = f"No finding at the gate ({levels[r.gate]}{accuracy})."
    else:
        at = (f for f in open_ if at_gate(f.severity, r.gate))
        codes = dict.fromkeys(f"{f.code} {f.name}" for f in at)
        why = f"At the gate ({levels[r.gate]}{accuracy}): " + ", ".join(codes) + "."
    every = coverage(r)
    if every.words:
        why += f"{'' if why.endswith('.') else '.'} {every.words.capitalize()}."
    counts = [*_findings(open_)]
    if hidden:
        counts.append(Count("suppressed", f"{hidden:,}"))
    counts += [
        Count("tapes", f"{r.tapes:,}"),
        Count("launches", f"{len(r.launches):,}" if every.whole else
              f"{every.checked:,} of {every.recorded:,}"),
        Count("pairs checked", f"{r.decided:,}"), Count("seconds", f"{r.seconds:.1f}"),
    ]  # fmt: skip
    tally: Counter[str] = Counter(p.verdict for x in r.launches for p in x.pairs)
    total = sum(tally.values())
    shares = tuple(Share(v, tally[v], 100 * tally[v] / total) for v in _ORDER if tally[v])
    return Summary(verdicts.kind(r), verdicts.verdict(r), why, tuple(counts), shares)


def _findings(found: Sequence[object]) -> tuple[Count, ...]:
    tally = Counter(getattr(f, "severity", "") for f in found)
    return tuple(
        Count(s if tally[s] == 1 else plural(s), f"{tally[s]:,}")
        for s in ("error", "warning", "note")
    )


def left_out(run: PageRun) -> tuple[Left, ...]:
    """What was not checked, with reasons: of the page, of tapes, of launches and pairs."""
    out = [Left(m.what, m.why + (f"; {m.way}" if m.way else ""), "") for m in run.missing]
    out += _unselected(run)
    groups: dict[tuple[str, str], list[str]] = {}
    for e in run.report.end_to_end:
        if e.verdict in ("skipped", "inconclusive"):
            groups.setdefault(("tape as a whole", e.reason), []).append(f"tape {e.tape}")
    for x in run.report.launches:
        at = f"{x.tape}:{x.index} {x.kernel}"
        if x.skipped or not x.pairs:
            groups.setdefault(("launch", x.skipped), []).append(at)
            continue
        for p in x.pairs:
            if p.verdict in ("skipped", "inconclusive"):
                groups.setdefault(("pair", p.reason), []).append(
                    f"{at}: {p.input} \u2192 {p.output}"
                )
    for (what, why), where in groups.items():
        rest = f" and {len(where) - 3:,} more" if len(where) > 3 else ""
        out.append(Left(counted(len(where), what, _PLURAL[what]), why or "nothing was compared",
                        "; ".join(where[:3]) + rest))  # fmt: skip
    out += [Left("full checks", line, "") for line in limits(run.report)]
    if not run.report.end_to_end and run.report.error is None:
        out.append(Left("tapes as wholes", "no tape was checked as a whole", ""))
    out += [Left("note", n, "") for n in run.report.notes]
    return tuple(out)


def _unselected(run: PageRun) -> list[Left]:
    """The launches that the check did not come to, by tape."""
    every = coverage(run.report)
    if every.whole:
        return []
    why = "options of the check selected other launches"
    if run.report.error is not None:
        why = "the check ended before"
    left = [(tape, count - checked) for tape, checked, count in every.tapes if count > checked]
    where = "; ".join(f"tape {tape}: {counted(n, 'launch')}" for tape, n in left[:3])
    rest = f" and {more(len(left) - 3, 'tape')}" if len(left) > 3 else ""
    return [Left(counted(every.recorded - every.checked, "launch"), why, where + rest)]


_PLURAL = {"tape as a whole": "tapes as wholes", "launch": "launches", "pair": "pairs"}
