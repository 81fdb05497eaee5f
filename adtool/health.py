"""The state of each operation and array of a tape: findings, verdicts, gradient norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from adtool.coverage import partly
from adtool.gradients import before, ends_at, together, whole
from adtool.last import Last
from adtool.places import shortened
from adtool.report import Finding
from engine.autograd import Mark, TapeListing, TapeTrace, norm_text
from engine.classes import dataclass

# The level of each verdict, what the picture says, and the rule that reports it.
_VERDICTS = {
    "fail": ("error", "wrong gradient", "G001"),
    "nan": ("nonfinite", "gradient not finite", "G002"),
    "inconclusive": ("warning", "inconclusive", "G006"),
    "nondeterministic": ("warning", "nondeterministic", "G007"),
    "rounding": ("warning", "rounding", "G011"),
}
_LEVELS = ("error", "nonfinite", "warning")
# From the worst on: what is suppressed comes after all that counts.
_RANK = {
    (level, suppressed): rank for rank, (level, suppressed) in enumerate(
        [*((x, False) for x in _LEVELS), *((x, True) for x in _LEVELS),
         ("unreached", False), ("gradient", False)]
    )
}  # fmt: skip
_SUPPRESSED = " (suppressed)"
_UNCHECKED = "G012"


@dataclass(frozen=True, slots=True)
class Health:
    """Marks of a tape: of operations by the index of their records, of arrays by position.

    first: the index of the operation where it goes wrong first, None where nothing does;
    why: what is wrong there. array: the position of the array that this is about, where a finding
    names one and no operation. homeless: findings that nothing in the picture stands for, such as
    those that say what was not checked: that is no problem.
    unchecked: what is to be said of launches that were not checked, empty where all were.
    """

    operations: dict[int, Mark]
    arrays: dict[int, Mark]
    first: int | None = None
    why: str = ""
    array: int | None = None
    homeless: tuple[Finding, ...] = ()
    unchecked: str = ""

    @property
    def outside(self) -> tuple[Finding, ...]:
        """What is wrong, and nothing in the picture stands for."""
        return tuple(f for f in self.homeless if f.code != _UNCHECKED)

    @property
    def place(self) -> tuple[int | None, int | None]:
        """Where it goes wrong first: an operation, or an array that a finding names."""
        return (self.first, None) if self.array is None else (None, self.array)

    @property
    def mark(self) -> Mark | None:
        """What is wrong there; None where nothing is, or a gradient only ends."""
        if self.first is None:
            return None
        if self.array is not None:
            return self.arrays[self.array]
        found = self.operations.get(self.first)
        return found if found is not None and found.level in _LEVELS else None

    @property
    def wrong(self) -> bool:
        """Whether something is wrong that the user has not suppressed."""
        return self.first is not None and not (self.mark is not None and self.mark.suppressed)


def health(last: Last, trace: TapeTrace) -> Health:
    """The health of one tape of a run."""
    operations: dict[int, Mark] = {}
    listing = trace.listing

    def put(index: int, mark: Mark) -> None:
        known = operations.get(index)
        if known is None or _rank(mark) < _rank(known):
            operations[index] = mark

    by_launch = {x.launch: x.index for x in listing.operations if x.launch >= 0}
    hidden = _hidden(last.findings)
    lost = _lost("gradient not finite", ("G002", "") in hidden)
    arrays = _arrays(trace, lost)
    named: dict[int, Mark] = {}
    homeless = []
    for f in last.findings:
        if f.tape not in (trace.tape, -1) or f.severity == "note":
            continue
        if f.code == _UNCHECKED:
            homeless.append(f)
            continue
        mark = _mark(f)
        index = by_launch.get(f.launch) if f.tape >= 0 and f.launch >= 0 else _at(listing, f)
        about = _called(listing, f.arrays)
        if index is not None and f.tape >= 0:
            put(index, mark)
        elif about and f.tape >= 0:
            for a in about:
                if a not in named or _rank(mark) < _rank(named[a]):
                    named[a] = mark
        else:
            homeless.append(f)
    for v in last.verdicts:
        if v.tape == trace.tape and v.verdict in _VERDICTS and v.launch in by_launch:
            level, text, code = _VERDICTS[v.verdict]
            suppressed = (code, v.kernel) in hidden
            text += _SUPPRESSED * suppressed
            mark = Mark(level, text, suppressed=suppressed)  # type: ignore[arg-type]
            put(by_launch[v.launch], mark)
    nonfinite = _gradients(trace, put, lost)
    first, why, array = _first(trace, operations, named, nonfinite)
    unchecked = partly(last.report, trace.tape)
    return Health(operations, arrays | named, first, why, array, tuple(homeless), unchecked)


def _rank(mark: Mark) -> int:
    return _RANK[mark.level, mark.suppressed]


def _hidden(findings: Sequence[Finding]) -> set[tuple[str, str]]:
    """Codes of which all findings are suppressed: for each kernel, and "" for any kernel."""
    open_, found = set[tuple[str, str]](), set[tuple[str, str]]()
    for f in findings:
        for kernel in ("", f.kernel):
            (found if f.suppressed else open_).add((f.code, kernel))
    return found - open_


def _lost(text: str, suppressed: bool) -> Mark:
    """The mark of a gradient that is not finite."""
    return Mark("nonfinite", text + _SUPPRESSED * suppressed, suppressed=suppressed)


def _mark(f: Finding) -> Mark:
    level = "error" if f.severity == "error" else "warning"
    if f.code == "G002":
        level = "nonfinite"
    text = f"{f.code} {f.name}" + _SUPPRESSED * f.suppressed
    return Mark(level, text, None, shortened(f.message), f.suppressed)  # type: ignore[arg-type]


def _called(listing: TapeListing, names: tuple[str, ...]) -> list[int]:
    """The arrays of these names that some operation has to do with, by position."""
    used = {a for x in listing.operations for a in x.arrays}
    return [
        i for i, a in enumerate(listing.arrays)
        if i in used and any(name and name in (a.name, a.short) for name in names)
    ]  # fmt: skip


def _at(listing: TapeListing, f: Finding) -> int | None:
    """The operation that a finding without a launch points to."""
    for place in ((f.file, f.line), *f.near):
        for x in listing.operations:
            if x.site >= 0 and listing.sites[x.site] == place:
                return x.index
    for x in listing.operations:
        kernel = listing.kernels[x.kernel]
        if kernel.file and (kernel.file, kernel.line) == (f.file, f.line):
            return x.index
    return None


def _gradients(trace: TapeTrace, put: Callable[[int, Mark], None], lost: Mark) -> int | None:
    """Marks operations by their gradients. Returns the first that gave one that is not finite.

    lost: the mark of those.
    """
    first = None
    for position in reversed(range(len(trace.operations))):
        x, flow = trace.listing.operations[position], trace.operations[position].flow
        kernel = trace.listing.kernels[x.kernel]
        if flow is None:
            continue
        came, gave = together(flow.incoming), together(flow.added)
        seen = [n for n in (came, gave) if n is not None]
        if any(not math.isfinite(n) for n in seen):
            mark = lost
            if first is None:
                first, mark = x.index, _lost("first gradient that is not finite", lost.suppressed)
            put(x.index, mark)
        elif came:
            put(x.index, Mark("gradient", f"|grad| {norm_text(came)}", came))
        elif kernel.kind == "launch" or (kernel.reads and kernel.kind != "function"):
            put(x.index, Mark("unreached", "no gradient reached it"))
    return first


def _arrays(trace: TapeTrace, lost: Mark) -> dict[int, Mark]:
    """Arrays by the largest gradient that was seen there. lost: the mark of one not finite."""
    seen: dict[int, list[float]] = {}
    for x, traced in zip(trace.listing.operations, trace.operations, strict=True):
        if traced.flow is None:
            continue
        for a, came, gave in zip(x.arrays, traced.flow.incoming, traced.flow.outgoing, strict=True):
            if a >= 0:
                seen.setdefault(a, []).extend(n for n in (came, gave) if n is not None)
    out = {}
    for a, norms in seen.items():
        if not norms:
            continue
        if any(not math.isfinite(n) for n in norms):
            out[a] = lost
        elif max(norms) == 0.0:
            out[a] = Mark("unreached", "no gradient reached it")
        else:
            out[a] = Mark("gradient", f"|grad| {norm_text(max(norms))}", max(norms))
    return out


def _first(
    trace: TapeTrace, operations: dict[int, Mark], arrays: dict[int, Mark], nonfinite: int | None
) -> tuple[int | None, str, int | None]:
    """Where it goes wrong first: what a check found, else what the backward pass shows.

    arrays: those that findings name. The operation, what is wrong, and of what array if of one.
    """
    for level, suppressed in ((x, s) for s in (False, True) for x in _LEVELS):
        kind = (level, suppressed)
        found = [i for i, m in sorted(operations.items()) if (m.level, m.suppressed) == kind]
        if found:
            index = nonfinite if level == "nonfinite" and nonfinite in found else found[0]
            assert index is not None
            return index, operations[index].text, None
        for x in trace.listing.operations:
            for a in x.arrays:
                if a in arrays and (arrays[a].level, arrays[a].suppressed) == kind:
                    return x.index, arrays[a].text, a
    end = ends_at(trace)
    if end is None:
        return None, "", None
    return trace.listing.operations[end].index, "the gradient ends here", None


def path_of(listing: TapeListing, index: int) -> frozenset[int]:
    """The operations that lead to one, and those that lead on from it: by flow of data."""
    at = next(i for i, x in enumerate(listing.operations) if x.index == index)
    kept = {index, *before(listing, at)[0]}
    reached = {whole(listing, a) for a in listing.outputs(listing.operations[at])}
    ahead = []
    for x in listing.operations[at + 1 :]:
        if reached & {whole(listing, a) for a in listing.inputs(x)}:
            reached |= {whole(listing, a) for a in listing.outputs(x)}
            ahead.append(x)
    # Of what comes after, what leads to where the backward pass began, if that is known.
    wanted = {whole(listing, a) for a in listing.seeded} & reached
    if not wanted:
        return frozenset(kept | {x.index for x in ahead})
    for x in reversed(ahead):
        if wanted & {whole(listing, a) for a in listing.outputs(x)}:
            kept.add(x.index)
            wanted |= {whole(listing, a) for a in listing.inputs(x)}
    return frozenset(kept)
