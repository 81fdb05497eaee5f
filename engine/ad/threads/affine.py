"""Integers of a kernel as affine sums of thread indices and loop counters.

A `Form` is `constant + sum of coefficient * coordinate`: coordinates are those of the thread in
the grid, the iteration of a loop, and values of which only bounds are known. Constants and
coefficients are polynomials in what is the same for all threads (`Poly`): scalar arguments,
extents of arrays. A form means integers without limits; `Value.needs` says what must hold for
the kernel's own integers to be these.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from engine.cached import cached_property
from engine.classes import dataclass

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
    """Quotient (`quot`) or remainder (`rem`) of a form, not negative, by a positive number."""

    what: str
    of: Form
    by: Poly


@dataclass(frozen=True)
class Between:
    """A value of which only bounds are known: `min`, `max`, `either` or `trips` of some forms."""

    how: str
    args: tuple[Form, ...]
    number: int = 0


@dataclass(frozen=True)
class Given:
    """A symbol: a scalar argument, or with `dim` the extent of an array argument."""

    name: str
    dim: int = -1


@dataclass(frozen=True)
class Trips:
    """A symbol: how many values a range has whose bounds are the same for all threads.

    args: start, stop, step.
    """

    args: tuple[Poly, ...]


@dataclass(frozen=True)
class Need:
    """A form that must lie between two numbers, both included."""

    form: Form
    low: int
    high: int


@dataclass(frozen=True)
class Value:
    """An integer of a kernel: the form, if everything that it needs holds."""

    form: Form
    needs: frozenset[Need] = frozenset()


@dataclass(frozen=True)
class Fact:
    """A value that is not negative where some code runs."""

    value: Value
