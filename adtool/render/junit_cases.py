"""The JUnit test cases of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from adtool.report import EndToEnd, Failure, Finding, Launch, Pair, Report, at_gate
from engine.classes import dataclass

MANY = 2000  # pairs: with more, launches of a kernel share cases

# The verdict on a pair that each finding of this code is about.
_ABOUT = {
    "G001": "fail", "G002": "nan", "G005": "kink", "G006": "inconclusive",
    "G007": "nondeterministic", "G011": "rounding", "G012": "skipped",
}  # fmt: skip
_WHOLE = "G010"  # of tapes as wholes
_JUDGED = ("pass", "kink", "rounding")


@dataclass(slots=True)
class Case:
    """A test case. skipped: why it is neither passed nor failed, empty where it is."""

    group: str
    name: str
    gate: str
    findings: list[Finding] = field(default_factory=list)
    skipped: str = ""
    error: Failure | None = None
    seconds: float | None = None

    def fails(self, finding: Finding) -> bool:
        """Whether this finding makes a case fail."""
        return not finding.suppressed and at_gate(finding.severity, self.gate)


@dataclass(frozen=True, slots=True)
class _Item:
    """A pair of a launch, or a launch without pairs."""

    launch: Launch
    pair: Pair | None

    @property
    def verdict(self) -> str:
        return "skipped" if self.pair is None else self.pair.verdict

    @property
    def reason(self) -> str:
        return self.launch.skipped if self.pair is None else self.pair.reason


def cases(report: Report) -> Iterator[Case]:
    """The cases of a report: what stopped it, pairs, tapes, then findings of neither."""
    name = report.script or "adtool"
    name = name[:-3] if name.endswith(".py") else name
    if report.error is not None:
        yield Case(name, "run", report.gate, error=report.error)
    items = [_Item(x, p) for x in report.launches for p in (x.pairs or (None,))]
    homes = _homes(report, items)
    placed: set[int] = set()
    seconds = {(d.tape, d.launch): d.seconds for d in report.durations}
    for label, group in _groups(items):
        at = dict.fromkeys(i for item in group for i in homes.get(_key(item), ()))
        placed.update(at)
        first = group[0].launch
        case = Case(f"{name}.{first.kernel}", label, report.gate)
        case.findings = [report.findings[i] for i in at]
        case.skipped = _undecided([(i.verdict, i.reason) for i in group], case)
        if len(group) == 1 and len(first.pairs) <= 1:
            case.seconds = seconds.get((first.tape, first.index))
        yield case
    for label, wholes in _whole_tapes(report.end_to_end, len(items) > MANY):
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


def _groups(items: Sequence[_Item]) -> Iterator[tuple[str, list[_Item]]]:
    """The items of each case: one, or with very many those of a kernel and its arrays."""
    if len(items) <= MANY:
        for i in items:
            yield f"launch {i.launch.tape}:{i.launch.index}{_names(i)}", [i]
        return
    by_pair: dict[object, list[_Item]] = {}
    for i in items:
        by_pair.setdefault((_kernel(i.launch), _names(i)), []).append(i)
    if len(by_pair) <= MANY:
        for group in by_pair.values():
            yield f"{_count(group)}{_names(group[0])}", group
        return
    by_kernel: dict[object, list[_Item]] = {}  # each launch has arrays of its own
    for i in items:
        by_kernel.setdefault(_kernel(i.launch), []).append(i)
    for group in by_kernel.values():
        yield f"{_count(group)}, {len(group)} pairs", group


def _count(group: Sequence[_Item]) -> str:
    launches = dict.fromkeys((i.launch.tape, i.launch.index) for i in group)
    tape, index = next(iter(launches))
    many = f"{len(launches)} launches, first" if len(launches) > 1 else "launch"
    return f"{many} {tape}:{index}"


def _names(item: _Item) -> str:
    return "" if item.pair is None else f" d {item.pair.output} / d {item.pair.input}"


def _kernel(launch: Launch) -> tuple[str, str, int]:
    return launch.kernel, launch.file, launch.line


def _key(item: _Item) -> tuple[tuple[str, str, int], str]:
    return _kernel(item.launch), item.verdict


def _homes(
    report: Report, items: Sequence[_Item]
) -> dict[tuple[tuple[str, str, int], str], list[int]]:
    """Of each kernel and verdict, the numbers of the findings that are about such pairs."""
    verdicts: dict[tuple[int, int], set[str]] = {}
    kernels: dict[tuple[int, int], Launch] = {}
    for i in items:
        at = (i.launch.tape, i.launch.index)
        verdicts.setdefault(at, set()).add(i.verdict)
        kernels[at] = i.launch
    homes: dict[tuple[tuple[str, str, int], str], list[int]] = {}
    for number, f in enumerate(report.findings):
        at = (f.tape, f.launch)
        verdict = _ABOUT.get(f.code)
        if verdict in verdicts.get(at, ()) and kernels[at].kernel == f.kernel:
            homes.setdefault((_kernel(kernels[at]), str(verdict)), []).append(number)
    return homes


def _whole_tapes(wholes: Sequence[EndToEnd], many: bool) -> Iterator[tuple[str, list[EndToEnd]]]:
    if not many and len(wholes) <= MANY:
        for e in wholes:
            yield f"tape {e.tape} end to end", [e]
        return
    groups: dict[str, list[EndToEnd]] = {}
    for e in wholes:
        groups.setdefault(e.verdict, []).append(e)
    for group in groups.values():
        more = f"{len(group)} tapes, first {group[0].tape}" if len(group) > 1 else (
            f"tape {group[0].tape}"
        )  # fmt: skip
        yield f"{more}, end to end", group


def _undecided(verdicts: Sequence[tuple[str, str]], case: Case) -> str:
    """Why a case that does not fail has not passed; empty where it has."""
    if any(v in _JUDGED for v, _ in verdicts):
        return ""
    verdict, reason = verdicts[0]
    why = f"{verdict}: {reason}" if reason else verdict
    hidden = [f for f in case.findings if f.suppressed]
    if hidden:
        return f"{why} (suppressed by {hidden[0].suppressed_by})"
    if verdict in ("fail", "nan") and not case.findings:
        return f"{why} (another finding names the cause)"
    return why
