"""How closely a launch is looked at: by how many launches like it have been looked at before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Literal

# entries: along random directions for each pair of arrays, and entry by entry. pairs: along these
# directions. jointly: along one direction through all inputs at once, and closer where that
# does not agree.
Look = Literal["entries", "pairs", "jointly"]


class Experience:
    """Launches that were checked, counted by kind: one kernel, with arguments of equal shapes.

    The first of a kind is looked at entry by entry, then the second, the fifth, the seventeenth
    and so on along directions for each pair of its arrays, the others along one direction through
    all inputs. Given to the checks of several tapes, it holds for all of them.
    """

    def __init__(self) -> None:
        self._met: Counter[Hashable] = Counter()
        self._asked: set[Hashable] = set()
        self._kinked: set[Hashable] = set()

    def count(self, kind: Hashable) -> int:
        """How many launches of a kind were checked."""
        return self._met[kind]

    def look(self, kind: Hashable) -> Look:
        """How to look at the next launch of a kind."""
        met = self._met[kind]
        if not met:
            return "entries"
        power_of_four = met & (met - 1) == 0 and met.bit_length() % 2 == 1
        return "pairs" if power_of_four else "jointly"

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
