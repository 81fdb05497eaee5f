"""Classifies the accesses of a launch's threads to each array, and whether their order matters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from engine.ad.threads.affine import Axis, Between, Form, Given, Part, Poly
from engine.ad.threads.apart import Numbers
from engine.ad.threads.bounds import Bounds
from engine.ad.threads.collect import Access, Collected
from engine.classes import dataclass

# The last two need one thread after another; `take` does without where the journal tells whose
# each element is.
Sharing = Literal["shared", "owned", "accumulate", "replace", "take", "ordered", "unproven"]
_ADDS = (("add",), ("and",), ("or",), ("xor",))
_REPLACES = (("min",), ("max",))
# Pairs of accesses that are compared before it is given up: so many, and one more for so many
# operations of the launch. A pair takes about as long as ten thousand operations.
PAIRS, WORTH = 200, 10_000


@dataclass(frozen=True)
class Group:
    """Array parameters that are one array, and what a launch does to it.

    sharing: `shared`, only read; `owned`, what is written is touched by one thread; `accumulate`,
    only added to; `replace`, only by atomic minima or by maxima; `take`, the gradient of what is
    replaced; `ordered`, the order of the threads decides; `unproven`, it may. why: the accesses
    that make it one of the last three.
    reach: of `accumulate`, how far apart along the first axis that has any length two threads
    are at most that add to one element; None where that is not known.
    """

    names: tuple[str, ...]
    sharing: Sharing
    accesses: tuple[Access, ...]
    why: tuple[Access, ...] = ()
    reach: int | None = None


@dataclass(frozen=True)
class Classes:
    """What a launch does to its arrays.

    known: the kernel is small enough to be looked at. stops: a thread can end the launch.
    cost: operations of one thread, about.
    """

    groups: tuple[Group, ...]
    known: bool
    stops: bool
    cost: int

    @property
    def order_free(self) -> bool:
        """Whether the threads may run in any order."""
        return self.order_free_but_for(frozenset())

    def order_free_but_for(self, dealt: frozenset[str]) -> bool:
        """The same, where the gradients `dealt` are dealt out to those threads that take them."""
        return (
            self.known
            and not self.stops
            and all(
                g.sharing not in ("take", "ordered", "unproven")
                or (g.sharing == "take" and dealt.issuperset(g.names))
                for g in self.groups
            )
        )


def classify(
    kernel: Collected,
    dim: Sequence[int],
    given: Mapping[Given, int],
    same: Mapping[str, int],
    overlapping: Iterable[tuple[str, str]] = (),
) -> Classes:
    """Classifies the accesses of a launch.

    given: integer arguments and extents of arrays. same: a number for each array parameter,
    equal for those that are one array; none for those that are not there. overlapping: pairs
    that share memory in another way.
    """
    numbers = Numbers(Bounds(dim, given))
    cost = kernel.cost(numbers.bounds)
    most = PAIRS + cost * math.prod(dim) // WORTH
    groups: dict[int, list[Access]] = {}
    for a in kernel.accesses:
        if a.array in same:
            groups.setdefault(same[a.array], []).append(a)
    tangled = {name for pair in overlapping for name in pair}
    out = []
    for number, accesses in groups.items():
        names = tuple(name for name, k in same.items() if k == number)
        out.append(_group(numbers, names, accesses, most))
    if tangled:
        out = _tangle(out, list(overlapping), same)
    return Classes(tuple(out), kernel.known, kernel.stops, cost)


def _group(n: Numbers, names: tuple[str, ...], accesses: list[Access], most: int) -> Group:
    kinds = {a.kind for a in accesses}
    every = tuple(accesses)
    if kinds == {"read"}:
        return Group(names, "shared", every)
    if "native" in kinds:
        return Group(names, "unproven", every, tuple(a for a in accesses if a.kind == "native")[:1])
    adds = tuple(kinds) in _ADDS
    reach = _reach(n, accesses) if adds or len(n.axes) == 1 else None
    if reach == 0 and len(n.axes) == 1:
        return Group(names, "owned", every)
    bad = _meeting(n, accesses, most)
    if not bad:
        return Group(names, "owned", every)
    if adds:
        return Group(names, "accumulate", every, reach=reach)
    if tuple(kinds) in _REPLACES:
        return Group(names, "replace", every)
    if kinds == {"take"}:
        return Group(names, "take", every, bad)
    unknown = any(a.kind in ("store", "take") and None in n.forms(a) for a in bad)
    return Group(names, "unproven" if unknown else "ordered", every, bad)


def _tangle(
    groups: list[Group], pairs: Sequence[tuple[str, str]], same: Mapping[str, int]
) -> list[Group]:
    """Groups that share memory with others, where one of them is written, cannot be told apart."""
    written = {name for g in groups if g.sharing != "shared" for name in g.names}
    bad = {name for pair in pairs if written & set(pair) for name in pair}
    return [
        Group(g.names, "unproven", g.accesses, g.accesses[:1]) if bad & set(g.names) else g
        for g in groups
    ]


def _meeting(n: Numbers, accesses: list[Access], most: int) -> tuple[Access, ...]:
    """Two accesses by which two threads may touch one element, one of them to change it.

    most: pairs that are looked at; with more, the first two count as such.
    """
    # What is done to an element does not matter, only whether one of two changes it.
    places: dict[tuple[object, ...], Access] = {}
    for a in accesses:
        key = (a.index, a.facts)
        if key not in places or places[key].kind == "read":
            places[key] = a
    different = list(places.values())
    if len(different) * (len(different) + 1) // 2 > most:
        return tuple(different[:2])
    for at, a in enumerate(different):
        for b in different[at:]:
            if not a.kind == b.kind == "read" and not n.apart(a, b):
                return (a, b) if a is not b else (a,)
    return ()


def _reach(n: Numbers, accesses: list[Access]) -> int | None:
    if not n.axes:
        return None
    found = [_reach_of(n, accesses, e) for e in range(len(accesses[0].index))]
    return min((r for r in found if r is not None), default=None)


def _reach_of(n: Numbers, accesses: list[Access], dimension: int) -> int | None:
    """How far apart threads are that have the same index in a dimension."""
    axis = Axis(n.axes[0])
    forms = [(n.forms(a)[dimension], a) for a in accesses]
    unfolded = [(None if f is None else _unfolded(n, f), a) for f, a in forms]
    factor = scale = 0
    for found, _ in unfolded:
        if found is None:
            return None
        form, by = found
        numeric = n.bounds.numeric(form)
        if numeric is None:
            return None
        factor, scale = factor or _along(n, form, axis), scale or by
        if by != scale:
            return None
    if not factor:
        return None
    ends: list[int] = []
    along = Form(Poly(), ((axis, Poly.of(factor)),))
    for found, a in unfolded:
        rest = None if found is None else n.bounds.interval(found[0] - along, a.facts)
        if rest is None:
            return None
        ends += rest
    return max(max(ends) - min(ends), 0) // abs(factor)


def _along(n: Numbers, form: Form, axis: Axis) -> int:
    """By how much a form goes along an axis, itself or what it is the least or greatest of."""
    numeric = n.bounds.numeric(form)
    factors = numeric[1] if numeric is not None else {}
    if axis in factors:
        return factors[axis]
    for c, k in factors.items():
        inner = [_along(n, a, axis) for a in c.args] if isinstance(c, Between) else []
        found = next((x for x in inner if x), 0)
        if found:
            return k * found
    return 0


def _unfolded(n: Numbers, form: Form) -> tuple[Form, int] | None:
    """A form times a number, such that a quotient of the thread's axis is told by the axis."""
    numeric = n.bounds.numeric(form)
    if numeric is None:
        return None
    for c, k in numeric[1].items():
        if isinstance(c, Part) and c.what == "quot" and n.of_thread(c):
            by = n.bounds.value(c.by)
            assert by is not None
            rest = form - Form(Poly(), ((c, form.coefficients[c]),))
            whole = c.of - Form.along(replace(c, what="rem"))
            return rest.times(Poly.of(by)) + whole.times(Poly.of(k)), by
    return form, 1
