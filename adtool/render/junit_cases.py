"""The JUnit test cases of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from adtool.counts import counted
from adtool.folds import BAD, Item, folds, items_of, kinds, measures, span
from adtool.report import EndToEnd, Failure, Finding, Report, at_gate
from engine.classes import dataclass

MANY = 2000  # cases of pairs: with more, those of a kernel share one

# The verdict on a pair that each finding of this code is about.
_ABOUT = {
    "G001": "fail", "G002": "nan", "G005": "kink", "G006": "inconclusive",
    "G007": "nondeterministic", "G011": "rounding", "G012": "skipped",
}  # fmt: skip
_WHOLE = "G010"  # of tapes as wholes
_JUDGED = ("pass", "kink", "rounding")


@dataclass(slots=True)
class Case:
    """A test case. skipped: why it is neither passed nor failed, empty where it is.

    about: which launches fail, where it is about several, and the numbers of the worst.
    """

    group: str
    name: str
    gate: str
    findings: list[Finding] = field(default_factory=list)
    skipped: str = ""
    about: str = ""
    error: Failure | None = None
    seconds: float | None = None

    def fails(self, finding: Finding) -> bool:
        """Whether this finding makes a case fail."""
        return not finding.suppressed and at_gate(finding.severity, self.gate)


def cases(report: Report) -> Iterator[Case]:
    """The cases of a report: what stopped it, pairs, tapes, then findings of neither."""
    name = report.script or "adtool"
    name = name[:-3] if name.endswith(".py") else name
    if report.error is not None:
        yield Case(name, "run", report.gate, error=report.error)
    items = items_of(report.launches)
    homes = _homes(report, items)
    placed: set[int] = set()
    seconds = {(d.tape, d.launch): d.seconds for d in report.durations}
    seen: dict[tuple[str, str], int] = {}
    for label, group in _groups(items):
        at = dict.fromkeys(i for item in group for i in homes.get(_key(item), ()))
        placed.update(at)
        first = group[0].launch
        case = Case(f"{name}.{first.kernel}", label, report.gate)
        number = seen[case.group, label] = seen.get((case.group, label), 0) + 1
        if number > 1:  # another kernel of that name
            case.name += f" ({number})"
        case.findings = [report.findings[i] for i in at]
        case.skipped = _undecided([(i.verdict, i.reason) for i in group], case)
        case.about = _about(group)
        if len(group) == 1 and len(first.pairs) <= 1:  # else no time is known of the pair alone
            case.seconds = seconds.get((first.tape, first.index))
        yield case
    for label, wholes in _whole_tapes(report):
        tapes = {e.tape for e in wholes}
        case = Case(f"{name}.tapes", label, report.gate)
        for i, f in enumerate(report.findings):
            if f.code == _WHOLE and f.tape in tapes:
                placed.add(i)
                case.findings.append(f)
        case.skipped = _undecided([(e.verdict, e.reason) for e in wholes], case)
        if len(wholes) == 1:
            case.seconds = seconds.get((wholes[0].tape, -1))
        yield case
    yield from _others(report, name, placed)


def _about(group: Sequence[Item]) -> str:
    if len(group) == 1:
        return ""
    lines = []
    for fold in folds(group):
        if not fold.bad or fold.worst.pair is None:
            continue
        m, at = measures(fold.worst.pair), fold.worst.launch
        count = f"{len(fold.items):,} of {counted(fold.total, 'launch')}"
        numbers = [
            f"{word} {size:.7g}" for word, size in
            (("adjoint", m.adjoint), ("reference", m.reference), ("error", m.error))
            if size is not None
        ]  # fmt: skip
        worst = ", ".join([f"the worst is launch {at.tape}:{at.index}", *numbers])
        lines.append(f"{fold.verdict} in {count}; {worst}")
    return "\n".join(lines)


def _others(report: Report, name: str, placed: set[int]) -> Iterator[Case]:
    """Findings that no other case tells of. Equal names get numbers."""
    seen: dict[str, int] = {}
    for i, f in enumerate(report.findings):
        if i in placed:
            continue
        label = f.code if f.code == f.name else f"{f.code} {f.name}"
        if f.kernel:
            label += f" in {f.kernel}"
        if f.tape >= 0 and f.launch >= 0:
            label += f", launch {f.tape}:{f.launch}"
        seen[label] = seen.get(label, 0) + 1
        if seen[label] > 1:
            label += f" ({seen[label]})"
        case = Case(f"{name}.findings", label, report.gate, [f])
        if f.suppressed:
            case.skipped = f"suppressed by {f.suppressed_by}"
        yield case


def _groups(items: Sequence[Item]) -> Iterator[tuple[str, list[Item]]]:
    """The items of each case, with its name: those of a kernel and its arrays.

    How many launches there are is no part of the name, by which CI systems know a case again.
    """
    found = kinds(items)
    if len(found) <= MANY:
        for group in found:
            yield _names(group[0]), group
        return
    by_kernel: dict[object, list[Item]] = {}  # each launch has arrays of its own
    for i in items:
        by_kernel.setdefault(i.kernel, []).append(i)
    for group in by_kernel.values():
        yield "all pairs", group


def _names(item: Item) -> str:
    source, result = item.names
    return f"d {result} / d {source}" if item.pair is not None else "launch"


def _key(item: Item) -> tuple[tuple[str, str, int], str]:
    return item.kernel, item.verdict


def _homes(
    report: Report, items: Sequence[Item]
) -> dict[tuple[tuple[str, str, int], str], list[int]]:
    """Of each kernel and verdict, the numbers of the findings that are about such pairs."""
    verdicts: dict[tuple[int, int], set[str]] = {}
    kernels: dict[tuple[int, int], Item] = {}
    for i in items:
        at = (i.launch.tape, i.launch.index)
        verdicts.setdefault(at, set()).add(i.verdict)
        kernels[at] = i
    homes: dict[tuple[tuple[str, str, int], str], list[int]] = {}
    for number, f in enumerate(report.findings):
        at = (f.tape, f.launch)
        verdict = _ABOUT.get(f.code)
        if verdict in verdicts.get(at, ()) and kernels[at].launch.kernel == f.kernel:
            homes.setdefault((kernels[at].kernel, str(verdict)), []).append(number)
    return homes


def _whole_tapes(report: Report) -> Iterator[tuple[str, list[EndToEnd]]]:
    """Tapes as wholes, with the name of the case; those of the same kernels share one."""
    kernels: dict[int, dict[str, None]] = {}
    for x in report.launches:
        kernels.setdefault(x.tape, {})[x.kernel] = None
    groups: dict[tuple[str, ...], list[EndToEnd]] = {}
    for e in report.end_to_end:
        groups.setdefault(tuple(kernels.get(e.tape, ())), []).append(e)
    for group in groups.values():
        yield f"{span([e.tape for e in group])} end to end", group


def _undecided(verdicts: Sequence[tuple[str, str]], case: Case) -> str:
    """Why a case that does not fail has not passed; empty where it has."""
    wrong = next((v for v in verdicts if v[0] in BAD), None)
    if wrong is None and any(v in _JUDGED for v, _ in verdicts):
        return ""
    verdict, reason = wrong or verdicts[0]
    why = f"{verdict}: {reason}" if reason else verdict
    hidden = [f for f in case.findings if f.suppressed]
    if hidden:
        return f"{why} (suppressed by {hidden[0].suppressed_by})"
    if verdict in BAD and not case.findings:
        return f"{why} (another finding names the cause)"
    return why
