"""Sets the effort of a launch's check by the number of similar launches checked before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Literal

import numpy as np

from engine.autograd.launch.blame import Shown
from engine.autograd.launch.equal import EqualLaunches
from engine.autograd.launch.glance import Glances
from engine.autograd.results import LaunchResult, PairResult, WholeResult
from engine.tape.records import LaunchRecord

# entries: along random directions for each pair of arrays, and entry by entry. pairs: along these
# directions. jointly: along one direction through all inputs at once, and closer where that
# does not agree. whole: not by itself, where the check of its tape as a whole may answer for it.
Look = Literal["entries", "pairs", "jointly", "whole"]

# So many of a kind are looked at each by itself, and then one of so many.
EACH, ONE_OF = 24, 64
_RIGHT, _WRONG = {"pass", "kink", "skipped"}, {"fail", "nan", "nondeterministic"}


class Experience:
    """Launches that were checked, counted by kind: one kernel, with arguments of equal shapes.

    Of equal launches, whose arguments have the same values too, one is checked for all. The first
    of a kind is looked at entry by entry, then the second, the fifth, the seventeenth and so on
    along directions for each pair of its arrays, the others along one direction through all inputs.
    Given to the checks of several tapes, it holds for all of them.

    Where all derivatives of a kernel are generated and no launch of a kind was wrong, the check
    of the tape as a whole answers for those beyond the first 24 of the kind, but for each 64th: of
    these a glance is enough (see `Glances`). Where the whole does not pass, they are looked at
    after all.
    """

    def __init__(self) -> None:
        self._glances = Glances()
        self.equal = EqualLaunches()
        self.shown = Shown()
        self._met: Counter[Hashable] = Counter()
        self._asked: set[Hashable] = set()
        self._kinked: set[Hashable] = set()
        # What a launch of a kind gives that a whole answers for; None where the last was not right.
        self._like: dict[Hashable, LaunchResult | None] = {}
        self._barred: set[Hashable] = set()
        self._wholes: dict[Hashable, WholeResult] = {}
        self._skipped: dict[Hashable, LaunchResult] = {}
        # What rounding added to adjoints at most, as a part of them.
        self._rounding: dict[Hashable, float] = {}

    def count(self, kind: Hashable) -> int:
        """How many launches of a kind were checked."""
        return self._met[kind]

    def look(self, kind: Hashable) -> Look:
        """How to look at the next launch of a kind."""
        met = self._met[kind]
        if not met:
            return "entries"
        power_of_four = met & (met - 1) == 0 and met.bit_length() % 2 == 1
        if power_of_four:
            return "pairs"
        return "jointly" if met < EACH or met % ONE_OF == 0 else "whole"

    def skip(self, kind: Hashable, found: LaunchResult) -> None:
        """Notes that launches of a kind have nothing to check."""
        self._skipped[kind] = found

    def skipped(self, kind: Hashable) -> LaunchResult | None:
        """The result of the next launch of a kind, if those of its kind have nothing to check."""
        return self._skipped.get(kind)

    def like(self, kind: Hashable) -> LaunchResult | None:
        """The result of the next launch of a kind, if a whole may answer for it."""
        return self._like.get(kind) if self.look(kind) == "whole" else None

    def seems_right(self, kind: Hashable, record: LaunchRecord, rng: np.random.Generator) -> bool:
        """Whether the next launch of a kind looks, at a glance, as one that is right."""
        return self._glances.seems_right(kind, record, rng, self._rounding.get(kind, 0.0))

    def learn(self, kind: Hashable, found: LaunchResult, generated: bool) -> None:
        """Notes what was found of a launch of a kind. generated: so are all its derivatives."""
        for p in found.pairs:
            if p.scale > 0.0:
                self._rounding[kind] = max(self._rounding.get(kind, 0.0), p.off / p.scale)
        verdicts = {p.verdict for p in found.pairs}
        if not generated or found.unassigned or found.skipped or verdicts & _WRONG:
            self._barred.add(kind)
        if kind in self._barred or not verdicts <= _RIGHT:
            self._like[kind] = None
        elif self._like.get(kind) is None:
            pairs = (
                PairResult(p.input, p.output, "skipped", reason=p.reason)
                if p.verdict == "skipped"
                else PairResult(p.input, p.output, "pass", by_whole=True)
                for p in found.pairs
            )
            self._like[kind] = LaunchResult(
                found.index, found.kernel, found.dim, tuple(pairs), found.span, stops=found.stops
            )

    def knows_whole(self, kind: Hashable) -> bool:
        """Whether a brief look at the next tape of a kind as a whole is enough.

        Of the first some are looked at closely, as launches are.
        """
        return self.look(kind) not in ("entries", "pairs")

    def last_whole(self, kind: Hashable) -> WholeResult | None:
        """What was found of the last tape of a kind as a whole."""
        return self._wholes.get(kind)

    def add_whole(self, kind: Hashable, found: WholeResult, again: bool = False) -> None:
        """Counts a tape that was checked as a whole. again: one that is counted already."""
        self._met[kind] += not again
        self._wholes[kind] = found

    def kinked(self, kind: Hashable) -> bool:
        """Whether a launch of a kind was seen to have kinks."""
        return kind in self._kinked

    def add_kinked(self, kind: Hashable) -> None:
        """Notes that one has."""
        self._kinked.add(kind)

    def new(self, what: Hashable) -> bool:
        """Whether this is asked for the first time."""
        known = what in self._asked
        self._asked.add(what)
        return not known

    def add(self, kind: Hashable) -> None:
        """Counts a launch that was checked."""
        self._met[kind] += 1
