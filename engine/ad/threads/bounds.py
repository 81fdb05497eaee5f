"""The values and ranges of affine forms for one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.ad.threads.affine import (
    Axis,
    Between,
    Coordinate,
    Fact,
    Form,
    Given,
    Part,
    Poly,
    Symbol,
    Trips,
    Turn,
    Value,
)

Interval = tuple[int, int]
Numeric = tuple[int, dict[Coordinate, int]]
_DEPTH = 6  # how far values of which only bounds are known are looked into


class Bounds:
    """dim: the grid. given: the values of scalar arguments and extents.

    What cannot be known is None.
    """

    def __init__(self, dim: Sequence[int], given: Mapping[Given, int]) -> None:
        self.dim = tuple(dim)
        self.given = given
        self._symbols: dict[Symbol, int | None] = {}
        self._numeric: dict[Form, Numeric | None] = {}
        self._ranges: dict[Coordinate, Interval | None] = {}

    # ---- numbers

    def value(self, p: Poly) -> int | None:
        total = 0
        for key, k in p.terms:
            for s in key:
                number = self._symbol(s)
                if number is None:
                    return None
                k *= number
            total += k
        return total

    def _symbol(self, s: Symbol) -> int | None:
        if isinstance(s, Given):
            return self.given.get(s)
        if s not in self._symbols:
            self._symbols[s] = self._computed(s) if isinstance(s, Trips) else None
        return self._symbols[s]

    def _computed(self, s: Trips) -> int | None:
        start, stop, step = (self.value(a) for a in s.args)
        if start is None or stop is None or step is None:
            return None
        return _trips(start, stop, step)

    def numeric(self, f: Form) -> Numeric | None:
        """A form with numbers for its constant and its coefficients, none of them zero."""
        if f not in self._numeric:
            self._numeric[f] = self._with_numbers(f)
        return self._numeric[f]

    def _with_numbers(self, f: Form) -> Numeric | None:
        constant = self.value(f.constant)
        factors: dict[Coordinate, int] = {}
        for c, k in f.terms:
            factor = self.value(k)
            if factor is None:
                return None
            if factor:
                factors[c] = factor
        return None if constant is None else (constant, factors)

    # ---- intervals

    def interval(self, f: Form, facts: Sequence[Fact] = ()) -> Interval | None:
        """The least and the greatest value of a form where some facts hold, both included.

        Least and greatest are in the wrong order where the facts exclude each other.
        """
        found = self._spread(f, _DEPTH)
        for fact in facts:
            if found is None:
                return None
            given = fact.value.form
            above, below = self._spread(f - given, _DEPTH), self._spread(f + given, _DEPTH)
            low, high = found
            if above is not None and above[0] > low and self.holds(fact.value):
                low = above[0]
            if below is not None and below[1] < high and self.holds(fact.value):
                high = below[1]
            found = low, high
        return found

    def holds(self, v: Value, facts: Sequence[Fact] = ()) -> bool:
        """Whether a value is its form in this launch."""
        for need in v.needs:
            found = self.interval(need.form, facts)
            if found is None or found[0] < need.low or found[1] > need.high:
                return False
        return True

    def _spread(self, f: Form, depth: int) -> Interval | None:
        found = self.numeric(f)
        if found is None:
            return None
        low = high = found[0]
        for c, k in found[1].items():
            if depth and isinstance(c, Between) and c.how in ("min", "max", "either"):
                return self._chosen(f, c, k, depth - 1)
        for c, k in found[1].items():
            reach = self.range(c)
            if reach is None:
                return None
            ends = k * reach[0], k * reach[1]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _chosen(self, f: Form, c: Between, k: int, depth: int) -> Interval | None:
        """Of a form with the least or greatest of some others: what it is with each of them."""
        rest = f - Form(Poly(), ((c, f.coefficients[c]),))
        found = [self._spread(rest + a.times(Poly.of(k)), depth) for a in c.args]
        some = [i for i in found if i is not None]
        if len(some) < len(found):
            return None
        lows, highs = [i[0] for i in some], [i[1] for i in some]
        if c.how == "either":
            return min(lows), max(highs)
        choose: Any = min if (c.how == "min") == (k > 0) else max
        return choose(lows), choose(highs)

    def range(self, c: Coordinate) -> Interval | None:
        """The least and the greatest value of a coordinate."""
        if c not in self._ranges:
            self._ranges[c] = self._range(c)
        return self._ranges[c]

    def extent(self, dim: int) -> int:
        return self.dim[dim] if dim < len(self.dim) else 1

    def _range(self, c: Coordinate) -> Interval | None:
        if isinstance(c, Axis):
            return 0, max(self.extent(c.dim) - 1, 0)
        if isinstance(c, Turn):
            return self._turns(c)
        if isinstance(c, Part):
            whole, by = self._spread(c.of, _DEPTH), self.value(c.by)
            if whole is None or by is None or by <= 0:
                return None
            low, high = max(whole[0], 0), max(whole[1], 0)
            return (0, min(by - 1, high)) if c.what == "rem" else (low // by, high // by)
        if isinstance(c, Between) and c.how == "trips":
            start, stop, step = (self._spread(a, _DEPTH) for a in c.args)
            if start is None or stop is None or step is None or step[0] != step[1] or not step[0]:
                return None
            ends = (start[0], stop[1]) if step[0] > 0 else (start[1], stop[0])
            return 0, _trips(*ends, step[0])
        return None

    def _turns(self, c: Turn) -> Interval | None:
        start, stop, step = (
            self._spread(c.start, _DEPTH), self._spread(c.stop, _DEPTH), self.value(c.step),
        )  # fmt: skip
        if start is None or stop is None or not step:
            return None
        ends = (start[0], stop[1]) if step > 0 else (start[1], stop[0])
        return 0, max(0, _trips(*ends, step) - 1)


def _trips(start: int, stop: int, step: int) -> int:
    """How many values a range has; none for a step of 0."""
    length = stop - start if step > 0 else start - stop
    return max(0, -(-length // abs(step))) if step else 0
