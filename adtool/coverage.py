"""How many of the recorded launches a check has looked at, where it is not all of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from adtool.counts import counted, was
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.report import Report


@dataclass(frozen=True, slots=True)
class Coverage:
    """Launches of some tapes. tapes: of each the number, how many were checked, and of how many."""

    tapes: tuple[tuple[int, int, int], ...]

    @property
    def checked(self) -> int:
        """How many launches were checked."""
        return sum(n for _, n, _ in self.tapes)

    @property
    def recorded(self) -> int:
        """How many launches there are."""
        return sum(n for _, _, n in self.tapes)

    @property
    def whole(self) -> bool:
        """Whether all launches were checked; also where it is not known how many there are."""
        return all(checked >= recorded for _, checked, recorded in self.tapes)

    @property
    def words(self) -> str:
        """`1 of 80 launches was checked`; empty where all were."""
        return "" if self.whole else self.sentence()

    def sentence(self, of: str = "") -> str:
        """`1 of 80 launches was checked`. of: stands after the noun: `of this tape`."""
        return " ".join(filter(None, (self.share, of, was(self.checked), "checked")))

    @property
    def share(self) -> str:
        """`1 of 80 launches`."""
        return f"{self.checked:,} of {counted(self.recorded, 'launch')}"


def coverage(report: Report) -> Coverage:
    """The launches of all tapes. Calls of other frameworks are left out: see `rows.limits`."""
    looked = Counter(x.tape for x in report.launches)
    calls = {x.tape for x in report.launches if x.framework}
    return Coverage(tuple(
        (tape, looked[tape], count)
        for tape, count in enumerate(report.recorded) if tape not in calls
    ))  # fmt: skip


def partly(report: Report | None, tape: int) -> str:
    """What a view of one tape says of its launches; empty where each of them was checked.

    `0 of 2 launches of this tape were checked (1 of 80 launches of all tapes)`.
    """
    if report is None:
        return ""
    every = coverage(report)
    mine = Coverage(tuple(t for t in every.tapes if t[0] == tape))
    if mine.whole:
        return ""
    if len(every.tapes) == 1:
        return mine.words
    return f"{mine.sentence('of this tape')} ({every.share} of all tapes)"
