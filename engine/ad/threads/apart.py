"""Proves that two accesses of different threads share no element.

Two threads that do the accesses `a` and `b` of one element agree in the index of each dimension:
`sum of k * (t - t') + rest = 0`, with one term for each coordinate of the thread. Where one k is
greater than all the rest of an equation can be, that coordinate is the same for both (as digits
of a number are). Threads with the same coordinates are one thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.ad.threads.affine import Axis, Coordinate, Form, Part, Poly
from engine.ad.threads.bounds import Bounds, Interval
from engine.ad.threads.collect import Access


class Numbers:
    """Accesses of a kernel with the numbers of one launch."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.axes = [d for d, n in enumerate(bounds.dim) if n > 1]
        # By accesses, which stay: others would come to have their numbers.
        self._known: dict[int, Access] = {}
        self._forms: dict[int, list[Form | None]] = {}
        self._along: dict[tuple[int, int], Interval] = {}
        self._never: dict[int, bool] = {}

    def _number(self, a: Access) -> int:
        self._known[id(a)] = a
        return id(a)

    def forms(self, a: Access) -> list[Form | None]:
        """The index of each dimension where it is known in this launch."""
        number = self._number(a)
        found = self._forms.get(number)
        if found is None:
            holds = self.bounds.holds
            found = [v.form if v is not None and holds(v, a.facts) else None for v in a.index]
            self._forms[number] = found
        return found

    def along(self, a: Access, axis: int) -> Interval:
        """Between which coordinates of an axis the threads are that do an access."""
        number = self._number(a)
        found = self._along.get((number, axis))
        if found is None:
            found = self.bounds.interval(Form.along(Axis(axis)), a.facts)
            assert found is not None
            self._along[number, axis] = found
        return found

    def never(self, a: Access) -> bool:
        """Whether no thread does it, as far as is known."""
        number = self._number(a)
        found = self._never.get(number)
        if found is None:
            # One that no thread has a part in, as that of an argument, or one along an axis.
            reach = (
                self.bounds.interval(Form(Poly()), a.facts),
                *(self.along(a, d) for d in self.axes),
            )
            found = self._never[number] = any(r is not None and r[0] > r[1] for r in reach)
        return found

    def apart(self, a: Access, b: Access) -> bool:
        """Whether no two threads can touch one element of an array by these accesses."""
        if self.never(a) or self.never(b):
            return True
        pairs = zip(self.forms(a), self.forms(b), strict=True)
        equations = [_Equation(self, x, y, a, b) for x, y in pairs if x and y]
        same: set[Coordinate] = set()
        for d in self.axes:
            low, high = self.along(a, d)
            if low == high and self.along(b, d) == (low, high):
                same.add(Axis(d))
        while True:
            if all(Axis(d) in same for d in self.axes):
                return True
            known = len(same)
            for e in equations:
                if e.impossible(same):
                    return True
                e.solve(same)
            self._close(same, equations)
            if len(same) == known:
                return False

    def disjoint(self, a: Access, b: Access) -> bool:
        """Whether no element is touched by both, by one thread or by two."""
        if self.never(a) or self.never(b):
            return True
        pairs = zip(self.forms(a), self.forms(b), strict=True)
        return any(_Equation(self, x, y, a, b).impossible(set()) for x, y in pairs if x and y)

    def _close(self, same: set[Coordinate], equations: Sequence[_Equation]) -> None:
        """What follows of coordinates that are the same."""
        for e in equations:
            for c in e.shared:
                if not isinstance(c, Part):
                    continue
                inner = self.bounds.numeric(c.of)
                assert inner is not None
                if c not in same and all(x in same for x in inner[1]):
                    same.add(c)
                twin = Part("rem" if c.what == "quot" else "quot", c.of, c.by)
                missing = [x for x in inner[1] if x not in same]
                if c in same and len(missing) == 1:
                    if twin in same or self._is_zero(twin):
                        same.add(missing[0])

    def _is_zero(self, c: Part) -> bool:
        return self.bounds.range(c) == (0, 0)

    def of_thread(self, c: Coordinate) -> bool:
        """Whether a coordinate is one number for each thread."""
        if isinstance(c, Part):
            inner = self.bounds.numeric(c.of)
            return inner is not None and all(map(self.of_thread, inner[1]))
        return isinstance(c, Axis)


class _Equation:
    """Index of `a` in one dimension = that of `b`."""

    def __init__(self, n: Numbers, x: Form, y: Form, a: Access, b: Access) -> None:
        self.n, self.x, self.y, self.a, self.b = n, x, y, a, b
        p, q = n.bounds.numeric(x), n.bounds.numeric(y)
        self.usable = p is not None and q is not None
        left, right = (p[1] if p else {}), (q[1] if q else {})
        # Terms with one factor on both sides.
        self.shared = {c: k for c, k in left.items() if n.of_thread(c) and right.get(c) == k}
        self._wide = {c: self._width(c) for c in self.shared}
        self._left = self._rest()

    def _width(self, c: Coordinate) -> int:
        if isinstance(c, Axis):
            (l1, h1), (l2, h2) = self.n.along(self.a, c.dim), self.n.along(self.b, c.dim)
            return max(abs(h1 - l2), abs(h2 - l1))
        found = self.n.bounds.range(c)
        return 1 << 62 if found is None else found[1] - found[0]

    def _rest(self) -> Interval | None:
        """What the equation has besides the shared terms."""
        if not self.usable:
            return None
        taken = tuple((c, Poly.of(k)) for c, k in self.shared.items())
        out = Form(Poly(), taken)
        x = self.n.bounds.interval(self.x - out, self.a.facts)
        y = self.n.bounds.interval(self.y - out, self.b.facts)
        return None if x is None or y is None else (x[0] - y[1], x[1] - y[0])

    def _open(self, same: set[Coordinate]) -> dict[Coordinate, int]:
        return {c: k for c, k in self.shared.items() if c not in same}

    def impossible(self, same: set[Coordinate]) -> bool:
        rest = self._left
        if rest is None:
            return False
        left = self._open(same)
        reach = sum(abs(k) * self._wide[c] for c, k in left.items())
        if rest[0] - reach > 0 or rest[1] + reach < 0:
            return True
        step = math.gcd(*left.values()) if left else 0
        return rest[0] == rest[1] and step > 0 and rest[0] % step != 0

    def solve(self, same: set[Coordinate]) -> None:
        """Adds coordinates that must be the same on both sides."""
        rest = self._left
        if rest is None:
            return
        left = sorted(self._open(same).items(), key=lambda term: -abs(term[1]))
        most = max(abs(rest[0]), abs(rest[1]))
        for at, (c, k) in enumerate(left):
            others = sum(abs(m) * self._wide[x] for x, m in left[at + 1 :])
            if abs(k) <= others + most:
                return
            same.add(c)
