"""Integers of a kernel as sums over what threads and iterations count.

A `Form` is `constant + sum of coefficient * coordinate`: coordinates are those of the thread in
the grid, the iteration of a loop, and values of which only bounds are known. Constants and
coefficients are polynomials in what is the same for all threads (`Poly`): scalar arguments,
extents of arrays. Forms are exact: where an operation could wrap, `Bounds` says so with numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.ir.ops import OPS

Symbol = Hashable  # what is the same for all threads
Coordinate = Hashable


@dataclass(frozen=True)
class Poly:
    """A polynomial with integer coefficients; monomials are sorted tuples of symbols."""

    terms: tuple[tuple[tuple[Symbol, ...], int], ...] = ()

    @staticmethod
    def of(value: int) -> Poly:
        return Poly((((), value),)) if value else Poly()

    @staticmethod
    def symbol(s: Symbol) -> Poly:
        return Poly((((s,), 1),))

    @property
    def number(self) -> int | None:
        """The value of a constant; None for others."""
        if not self.terms:
            return 0
        (key, value), *rest = self.terms
        return None if key or rest else value

    def __add__(self, other: Poly) -> Poly:
        out = dict(self.terms)
        for key, value in other.terms:
            out[key] = out.get(key, 0) + value
        return _poly(out)

    def __neg__(self) -> Poly:
        return Poly(tuple((key, -value) for key, value in self.terms))

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        out: dict[tuple[Symbol, ...], int] = {}
        for a, x in self.terms:
            for b, y in other.terms:
                key = tuple(sorted((*a, *b), key=repr))
                out[key] = out.get(key, 0) + x * y
        return _poly(out)

    def symbols(self) -> set[Symbol]:
        return {s for key, _ in self.terms for s in key}


def _poly(terms: Mapping[tuple[Symbol, ...], int]) -> Poly:
    return Poly(tuple(sorted(((k, v) for k, v in terms.items() if v), key=repr)))


@dataclass(frozen=True)
class Form:
    """constant + sum of coefficient * coordinate."""

    constant: Poly
    terms: tuple[tuple[Coordinate, Poly], ...] = ()

    @staticmethod
    def of(value: int) -> Form:
        return Form(Poly.of(value))

    @staticmethod
    def along(c: Coordinate) -> Form:
        return Form(Poly(), ((c, Poly.of(1)),))

    @property
    def uniform(self) -> bool:
        """Whether it is the same for all threads and iterations."""
        return not self.terms

    @cached_property
    def coefficients(self) -> dict[Coordinate, Poly]:
        return dict(self.terms)

    def __add__(self, other: Form) -> Form:
        out = dict(self.terms)
        for c, k in other.terms:
            out[c] = out.get(c, Poly()) + k
        return Form(self.constant + other.constant, _sorted(out))

    def __neg__(self) -> Form:
        return Form(-self.constant, tuple((c, -k) for c, k in self.terms))

    def __sub__(self, other: Form) -> Form:
        return self + -other

    def times(self, k: Poly) -> Form:
        return Form(self.constant * k, _sorted({c: x * k for c, x in self.terms}))


def _sorted(terms: Mapping[Coordinate, Poly]) -> tuple[tuple[Coordinate, Poly], ...]:
    return tuple(sorted(((c, k) for c, k in terms.items() if k.terms), key=repr))


# ---- coordinates and symbols that stand for something computed


@dataclass(frozen=True)
class Axis:
    """The thread's coordinate along one dimension of the grid."""

    dim: int


@dataclass(frozen=True)
class Turn:
    """The iteration of a loop, from 0. number: of the loop in its kernel."""

    number: int
    start: Form
    stop: Form
    step: Poly


@dataclass(frozen=True)
class Part:
    """Quotient or remainder of a form that is not negative by a positive number."""

    what: str
    of: Form
    by: Poly


@dataclass(frozen=True)
class Between:
    """A value of which only bounds are known. number: which it is; how: the operation."""

    number: int
    how: str
    args: tuple[Form, ...]


@dataclass(frozen=True)
class Computed:
    """A symbol: an operation on what is the same for all threads."""

    op: str
    args: tuple[Poly, ...]


@dataclass(frozen=True)
class Given:
    """A symbol: a scalar argument, or with `dim` the extent of an array argument."""

    name: str
    dim: int = -1


@dataclass(frozen=True)
class Unknown:
    """A symbol of which nothing is known but that it is the same for all threads."""

    number: int


Interval = tuple[int, int]


class Bounds:
    """The numbers behind forms, for one launch.

    dim: the grid. given: the values of `Given` symbols. What has no number is None.
    """

    def __init__(self, dim: tuple[int, ...], given: Mapping[Given, int]) -> None:
        self.dim = dim
        self.given = given
        self._symbols: dict[Symbol, int | None] = {}
        self._ranges: dict[Coordinate, Interval | None] = {}

    # ---- numbers

    def value(self, p: Poly) -> int | None:
        total = 0
        for key, k in p.terms:
            product = k
            for s in key:
                number = self.symbol(s)
                if number is None:
                    return None
                product *= number
            total += product
        return total

    def symbol(self, s: Symbol) -> int | None:
        if isinstance(s, Given):
            return self.given.get(s)
        if isinstance(s, Computed):
            if s not in self._symbols:
                self._symbols[s] = self._computed(s)
            return self._symbols[s]
        return None

    def _computed(self, s: Computed) -> int | None:
        args = [self.value(a) for a in s.args]
        if any(a is None or abs(a) >= 1 << 31 for a in args):
            return None
        return int(OPS[s.op].numpy(*args))

    # ---- intervals

    def interval(self, f: Form) -> Interval | None:
        """The least and the greatest value that a form can have, both included."""
        base = self.value(f.constant)
        if base is None:
            return None
        low = high = base
        for c, k in f.terms:
            reach, factor = self.range(c), self.value(k)
            if reach is None or factor is None:
                return None
            ends = (factor * reach[0], factor * reach[1])
            low, high = low + min(ends), high + max(ends)
        return low, high

    def range(self, c: Coordinate) -> Interval | None:
        if c not in self._ranges:
            self._ranges[c] = self._range(c)
        return self._ranges[c]

    def _range(self, c: Coordinate) -> Interval | None:
        if isinstance(c, Axis):
            return 0, (max(self.dim[c.dim], 1) - 1 if c.dim < len(self.dim) else 0)
        if isinstance(c, Turn):
            return self._turns(c)
        if isinstance(c, Part):
            return self._part(c)
        if isinstance(c, Between):
            return self._between(c)
        return None

    def _turns(self, c: Turn) -> Interval | None:
        start, stop, step = self.interval(c.start), self.interval(c.stop), self.value(c.step)
        if start is None or stop is None or not step:
            return None
        length = stop[1] - start[0] if step > 0 else start[1] - stop[0]
        return 0, max(0, -(-length // abs(step)) - 1)

    def _part(self, c: Part) -> Interval | None:
        whole, by = self.interval(c.of), self.value(c.by)
        if whole is None or by is None or by <= 0 or whole[0] < 0:
            return None
        if c.what == "rem":
            return 0, min(by - 1, whole[1])
        return whole[0] // by, whole[1] // by

    def _between(self, c: Between) -> Interval | None:
        found = [self.interval(a) for a in c.args]
        some = [i for i in found if i is not None]
        if c.how in ("min", "max") and len(some) == len(found):
            choose: Any = min if c.how == "min" else max
            return choose(i[0] for i in some), choose(i[1] for i in some)
        if c.how == "either" and len(some) == len(found):
            return min(i[0] for i in some), max(i[1] for i in some)
        if c.how == "mod" and some and found[1] is not None:
            most = max(abs(found[1][0]), abs(found[1][1])) - 1
            below = 0 if found[0] is not None and found[0][0] >= 0 else -most
            return (below, most) if most >= 0 else (0, 0)
        if c.how == "trips" and len(some) == 3:
            (a, b), (d, e), (f, g) = some
            if f == g and f:
                length = e - a if f > 0 else b - d
                return 0, max(0, -(-length // abs(f)))
        return None
