"""Selects the operations of a framework that are kept for the check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import field, replace
from typing import Protocol

from engine.autograd.facts import Undifferentiated
from engine.autograd.results import TapeResult, Unchecked
from engine.autograd.tape.options import Options
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.foreign.operation import Operation
from engine.locks import Lock

FULL = "copies of its arguments and of the others would take more than config.snapshot_limit_bytes"


QUICK = 64  # calls of a kind of which those that are not checked are looked at, at least
QUICK_BYTES = 1 << 20  # those that are no larger

_lock = Lock()


class Tapes(Protocol):
    """What watches tapes of another package, which are results of their own, one for each.

    counts: how many launches each has. names: of their kernels.
    """

    @property
    def counts(self) -> tuple[int, ...]: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def results(
        self,
        first: int,
        options: Options,
        launches_of: Callable[[int], tuple[int, ...] | None],
        progress: Callable[[int, int, str], None] | None,
    ) -> Iterator[TapeResult]:
        """Checks them, numbered from `first`, and forgets them. See `Watched.results`."""


class Budget:
    """How much memory copies may take, for all frameworks together."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._half = limit // 2

    def take(self, nbytes: int, half: bool = False) -> bool:
        """Whether so much is left; it is taken then. half: of the first half."""
        with _lock:
            if nbytes > self._left - (self._half if half else 0):
                return False
            self._left -= nbytes
            return True


@dataclass
class Collection:
    """What one framework's watcher fills: operations, and what is to be told of others.

    framework: its name, as it is told. tapes: what watches its tapes, where it has some.
    wants: whether operations of a name will be checked at all. chosen: whether the user named them.
    left: functions that are left alone, and the package of each.
    undifferentiated: the user's functions of which calls wanted no gradient, by any key.
    Of equal calls (`kind`) the first is kept, the second, the fifth, the seventeenth ...
    quick: numbers of others that are kept, too, to be checked only where a quick look tells to.
    sampled: whether some of them are not checked.
    """

    framework: str
    budget: Budget
    wants: Callable[[str], bool] = lambda name: True
    chosen: Callable[[str], bool] = lambda name: False
    operations: list[tuple[int, Operation]] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    undifferentiated: dict[Hashable, Undifferentiated] = field(default_factory=dict)
    calls: int = 0
    tapes: Tapes | None = None
    quick: set[int] = field(default_factory=set)
    sampled: bool = False
    _counts: Counter[Hashable] = field(default_factory=Counter)
    _said: set[Hashable] = field(default_factory=set)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many calls there are in each of its results."""
        own = (self.calls,) if self.calls or self.unchecked else ()
        return own if self.tapes is None else (*own, *self.tapes.counts)

    def number(
        self, name: str, kind: Hashable, nbytes: int, site: Span | None = None, quick: bool = False
    ) -> int:
        """The number of a call, or -1 where it is not to be kept. kind: equal for equal calls.

        nbytes: what copies of it take. site: its place. quick: whether it can be looked at quickly.
        """
        with _lock:
            number = self.calls
            self.calls += 1
            self.names[name] = None
            self._counts[kind] += 1
            count = self._counts[kind]
        if not self.wants(name):
            return -1
        if not _sampled(count):
            small = quick and count <= QUICK and nbytes <= QUICK_BYTES
            if not small or not self.budget.take(nbytes, half=True):
                self.sampled = True
                return -1
            with _lock:
                self.quick.add(number)
            return number
        if not self.budget.take(nbytes):
            self.leave_out(name, FULL, site, number)
            return -1
        return number

    def add(self, number: int, operation: Operation) -> None:
        """Keeps the operation of that number."""
        with _lock:
            self.operations.append((number, operation))

    def leave_out(
        self, name: str, reason: str, site: Span | None = None, number: int = -1, part: str = "{}"
    ) -> None:
        """Says, once for each name and reason, that something is not checked.

        part: what of the function, as "{} at its own values"; all of it if left out.
        """
        with _lock:
            self.names[name] = None
            if (name, reason) not in self._said:
                self._said.add((name, reason))
                what = part.format(f"function `{name}`")
                self.unchecked.append(Unchecked(number, what, reason, site))

    def leaves_alone(self, name: str, package: str) -> bool:
        """Whether a function is not looked at, as it belongs to an installed package.

        package: empty for one of the user's. What the user has chosen by its name is looked at.
        """
        if not package or self.chosen(name):
            return False
        with _lock:
            self.left.setdefault(name, package)
        return True

    def again(self, key: Hashable) -> bool:
        """Counts one more call that wants no gradient; False for the first one."""
        with _lock:
            found = self.undifferentiated.get(key)
            if found is not None:
                self.undifferentiated[key] = replace(found, calls=found.calls + 1)
            return found is not None

    def note(self, text: str) -> None:
        """Something to tell the user, once."""
        with _lock:
            if text not in self.notes:
                self.notes.append(text)


def _sampled(count: int) -> bool:
    """Whether the call of that number among equal ones is kept: 1, 2, 5, 17, 65 ..."""
    power = count - 1
    return power < 1 or (power & (power - 1) == 0 and power.bit_length() % 2 == 1)
