"""Launches of a kernel that are told as one: a line for a kernel, a pair of arrays and a verdict.

A wrong kernel in a loop is wrong once. So everything that people read shows the worst of its
launches, and how many there are; the JSON report has each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from adtool.counts import counted
from adtool.report import Launch, Pair
from engine.classes import dataclass

BAD = ("fail", "nan")
TIE = 0.01  # excesses that differ by a smaller part are equal, as within a launch


@dataclass(frozen=True, slots=True)
class Item:
    """A pair of a launch, or a launch that has none."""

    launch: Launch
    pair: Pair | None

    @property
    def verdict(self) -> str:
        """One of the report's."""
        return "skipped" if self.pair is None else self.pair.verdict

    @property
    def reason(self) -> str:
        """Why it is inconclusive or was skipped."""
        return self.launch.skipped if self.pair is None else self.pair.reason

    @property
    def kernel(self) -> tuple[str, str, int]:
        """The kernel, told from others of its name."""
        return self.launch.kernel, self.launch.file, self.launch.line

    @property
    def names(self) -> tuple[str, str]:
        """Input and output; empty for a launch without pairs."""
        return ("", "") if self.pair is None else (self.pair.input, self.pair.output)

    @property
    def excess(self) -> float:
        """How many times what is allowed it is off by; infinite where it is not finite."""
        if self.pair is None:
            return -1.0
        shown = measures(self.pair)
        worst = self.pair.worst
        if shown.error is None:
            return 0.0
        if worst is None or not worst.allowed:
            return math.inf if math.isnan(shown.error) else shown.error
        return math.inf if math.isnan(shown.error) else shown.error / worst.allowed

    @property
    def size(self) -> float:
        """The error that is shown; infinite where it is not finite, -1 where it is not known."""
        error = None if self.pair is None else measures(self.pair).error
        return -1.0 if error is None else math.inf if math.isnan(error) else error


@dataclass(frozen=True, slots=True)
class Measures:
    """What a line tells of a pair: the numbers of one entry, or of one random direction.

    error: between adjoint and reference. relative: None where the reference is zero as far as the
    comparison can tell. Each is None where it was not measured.
    """

    error: float | None
    relative: float | None
    adjoint: float | None
    reference: float | None
    direction: bool = False


def measures(pair: Pair) -> Measures:
    """The numbers of a pair's worst entry or direction; none that are not of this pair alone."""
    w = pair.worst
    if pair.joint:  # they are those of a sum, of which the pair is a part
        return Measures(None, None, None, None)
    if w is None:
        known = pair.verdict in BAD
        return Measures(pair.max_abs_error, pair.max_rel_error if known else None, None, None)
    if pair.verdict == "nan" and math.isfinite(w.ad):  # seen in another precision
        return Measures(pair.max_abs_error, pair.max_rel_error, None, None, w.row < 0)
    relative = pair.max_rel_error if pair.verdict == "nan" else w.rel_error
    return Measures(abs(w.ad - w.oracle), relative, w.ad, w.oracle, w.row < 0)


@dataclass(frozen=True, slots=True)
class Fold:
    """Items of one kernel, pair and verdict. total: of that kernel and pair with any verdict."""

    items: tuple[Item, ...]
    total: int

    @property
    def verdict(self) -> str:
        """The verdict of all."""
        return self.items[0].verdict

    @property
    def worst(self) -> Item:
        """The one that is furthest over what is allowed; of equal ones, the largest error."""
        excess = [i.excess for i in self.items]
        most = max(excess)
        least = most if math.isinf(most) else most - TIE * abs(most)
        # A wrong factor makes all launches wrong by the same part: the largest tells most.
        equal = (i for i, x in zip(self.items, excess, strict=True) if x >= least)
        return max(equal, key=lambda i: i.size)

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of the items."""
        return [i.pair for i in self.items if i.pair is not None]

    @property
    def bad(self) -> bool:
        """Whether an adjoint is wrong, or not finite."""
        return self.verdict in BAD

    @property
    def share(self) -> str:
        """How many of how many launches: `x40` for all of 40, `3/40`; empty for a single one."""
        count = len(self.items)
        if count == 1:
            return ""
        return f"x{count}" if count == self.total else f"{count}/{self.total}"


def items_of(launches: Iterable[Launch]) -> list[Item]:
    """The pairs of launches, in order."""
    return [Item(x, p) for x in launches for p in (x.pairs or (None,))]


def kinds(items: Iterable[Item]) -> list[list[Item]]:
    """The items of each kernel and pair, in first-seen order."""
    out: dict[object, list[Item]] = {}
    for i in items:
        out.setdefault((i.kernel, i.names), []).append(i)
    return list(out.values())


def folds(items: Iterable[Item]) -> list[Fold]:
    """The items of each kernel, pair and verdict; wrong ones first, by how far they are off."""
    out = []
    for kind in kinds(items):
        by_verdict: dict[str, list[Item]] = {}
        for i in kind:
            by_verdict.setdefault(i.verdict, []).append(i)
        out += [Fold(tuple(x), len(kind)) for x in by_verdict.values()]
    wrong = sorted((f for f in out if f.bad), key=lambda f: -f.worst.excess)
    return wrong + [f for f in out if not f.bad]


def span(tapes: Sequence[int]) -> str:
    """Some tapes by their numbers, in order."""
    if len(tapes) == 1:
        return f"tape {tapes[0]}"
    if tapes[-1] - tapes[0] + 1 != len(tapes):
        return f"{counted(len(tapes), 'tape')} from {tapes[0]} to {tapes[-1]}"
    return f"tapes {tapes[0]} to {tapes[-1]}"
