"""Tests whether threads of a launch meet in memory that several arguments share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from engine.ad.threads import Access
from engine.ad.threads.affine import Axis, Form, Part, Poly, Value
from engine.ad.threads.apart import Numbers
from engine.ad.threads.bounds import Bounds
from engine.compile.threads import Placed, Threads

_ORDERLY = frozenset(["store", "take", "ordered", "native"])  # even among themselves
_PAIRS = 2_000  # of accesses, looked at: else it is not proven
_SHIFTS = 64  # by which two elements may lie to each other, looked at


def meeting(threads: Threads, dim: tuple[int, ...], args: bytes) -> tuple[Access, Access] | None:
    """Two accesses by which a thread may touch what another one does, by arguments that overlap.

    None where it is proven that there are none, or none whose order matters. The second one
    changes what is there.
    """
    arrays = threads.arrays(args)
    given = threads.given(args, arrays)
    there = {a.name: a for a in arrays if not a.empty}
    accesses: dict[str, dict[Access, Access]] = {name: {} for name in there}
    for a in threads.collected.accesses:
        if a.array in accesses:
            accesses[a.array].setdefault(a, a)
    numbers, looked = Numbers(Bounds(dim, given)), 0
    for one, other in tangled(list(there.values())):
        for x in accesses[one]:
            for y in accesses[other]:
                if x.kind == y.kind and x.kind not in _ORDERLY:
                    continue
                looked += 1
                if looked > _PAIRS or not _apart(numbers, x, y, there[one], there[other]):
                    return (x, y) if y.kind in _ORDERLY else (y, x)
    return None


def clashing(
    threads: Threads, dim: tuple[int, ...], args: bytes, accesses: Iterable[Access]
) -> tuple[Access, Access] | None:
    """The same of accesses of one array, of which not everything is known.

    Two indices of which nothing is known are taken to be those of one permutation, and native
    functions to touch what is the thread's own.
    """
    numbers, looked = Numbers(Bounds(dim, threads.given(args, threads.arrays(args)))), 0
    different = list(dict.fromkeys(a for a in accesses if a.kind != "native"))
    unknown = [None in numbers.forms(a) for a in different]
    for k, y in enumerate(different):
        for j, x in enumerate(different[: k + 1]):
            if (x.kind == y.kind and x.kind not in _ORDERLY) or (unknown[j] and unknown[k]):
                continue
            looked += 1
            if looked > _PAIRS or not numbers.apart(x, y):
                return (x, y) if y.kind in _ORDERLY else (y, x)
    return None


def tangled(arrays: list[Placed]) -> Iterable[tuple[str, str]]:
    """Names of arrays that share memory and are not one; of those, too, that overlap themselves."""
    for k, a in enumerate(arrays):
        for b in arrays[: k + 1]:
            if a.overlaps_itself if a.same_as(b) else a.meets(b):
                yield b.name, a.name


def _apart(n: Numbers, x: Access, y: Access, a: Placed, b: Placed) -> bool:
    """Whether no two threads touch the same bytes by the access `x` of `a` and `y` of `b`."""
    if n.never(x) or n.never(y):
        return True
    sizes = a.type.element.size, b.type.element.size
    unit = math.gcd(*a.strides, *b.strides, *sizes, b.address - a.address)
    left, right = _flat(n, x, a, 0, unit), _flat(n, y, b, b.address - a.address, unit)
    if left is None or right is None:
        return False
    shifts = range(1 - sizes[1] // unit, sizes[0] // unit)
    if len(shifts) > _SHIFTS:
        return False
    ways = [(left, right)]
    known = [_remainders(n, x), _remainders(n, y)]
    if both := known[0].keys() & known[1].keys():
        ways.append((_split(left, known[0], both), _split(right, known[1], both)))
    return all(
        any(n.apart(_at(x, one), _at(y, other - Form.of(shift))) for one, other in ways)
        for shift in shifts
    )  # fmt: skip


def _remainders(n: Numbers, x: Access) -> dict[Axis, tuple[Part, int]]:
    """Coordinates of whose threads it is known what is left by some divisor: `if i % 2 == 0`."""
    out: dict[Axis, tuple[Part, int]] = {}
    for fact in x.facts:
        for c in fact.value.form.coefficients:
            if not isinstance(c, Part) or c.what != "rem" or len(c.of.terms) != 1:
                continue
            ((axis, _),) = c.of.terms
            if not isinstance(axis, Axis) or c.of != Form.along(axis):
                continue
            found = n.bounds.interval(Form.along(c), x.facts)
            if found is not None and found[0] == found[1]:
                out[axis] = c, found[0]
    return out


def _split(form: Form, known: dict[Axis, tuple[Part, int]], axes: Iterable[Axis]) -> Form:
    """A form with coordinates as multiples of what divides them, and the rest."""
    for axis in axes:
        factor = form.coefficients.get(axis)
        if factor is not None:
            part, rest = known[axis]
            whole = Form.along(replace(part, what="quot")).times(part.by) + Form.of(rest)
            form += (whole - Form.along(axis)).times(factor)
    return form


def _flat(n: Numbers, x: Access, a: Placed, at: int, unit: int) -> Form | None:
    """Where the element of an access begins, in units from some place; None if not known."""
    out = Form.of(at // unit)
    for form, stride, length in zip(n.forms(x), a.strides, a.shape, strict=False):
        if length == 1 or not stride:
            continue
        if form is None:
            return None
        out += form.times(Poly.of(stride // unit))
    return out


def _at(x: Access, place: Form) -> Access:
    """The same access of an array of units."""
    return replace(x, index=(Value(place),))
