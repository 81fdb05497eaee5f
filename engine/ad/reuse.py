"""Finds elements that one thread both reads and stores, and the order of these accesses.

Of statements that every thread runs, with indices that are the same expression. An update that only
adds to what is there (`a[i] = a[i] + x`, atomics) is no use of the element, and does not lose it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from engine.ad.structure import by_every_thread
from engine.classes import dataclass
from engine.ir import nodes as n

_ADDS = ("add", "sub")


@dataclass(frozen=True, slots=True)
class Reuse:
    """Array parameters of a kernel, by name.

    lost: of which a thread reads an element and stores another value there afterwards. back: of
    which it reads an element that it has written. stored: of which every thread stores an element.
    """

    lost: frozenset[str]
    back: frozenset[str]
    stored: frozenset[str]


def reuse(fn: n.Function) -> Reuse:
    """Looks at a prepared kernel."""
    body = list(by_every_thread(fn))
    known = _Expressions(fn)
    added = _added(fn, body, known)
    read, written = _Elements(), _Elements()
    lost, back, stored = set(), set(), set()
    for s in body:
        if not isinstance(s, (n.Load, n.Store, n.Atomic)):
            continue
        element = known.element(s)
        if isinstance(s, n.Load):
            if id(s) not in added:
                read.add(*element)
                back |= {s.array.name} if written.has(*element) else set()
            continue
        if isinstance(s, n.Store) and id(s) not in added:
            stored.add(s.array.name)
            lost |= {s.array.name} if read.has(*element) else set()
        written.add(*element)
    return Reuse(frozenset(lost), frozenset(back), frozenset(stored))


_Keys = tuple[Hashable, ...]


class _Elements:
    """Elements of arrays, or components of them."""

    def __init__(self) -> None:
        self._paths: dict[_Keys, list[_Keys]] = {}

    def add(self, element: _Keys, path: _Keys) -> None:
        self._paths.setdefault(element, []).append(path)

    def has(self, element: _Keys, path: _Keys) -> bool:
        """Whether some of it is there."""
        return any(
            a[: len(path)] == path[: len(a)] for a in self._paths.get(element, ())
        )  # fmt: skip


class _Expressions:
    """What variables are, as far as equal expressions have equal values all the time."""

    def __init__(self, fn: n.Function) -> None:
        self._lets: dict[n.Var, n.Let] = {}
        defined: Counter[n.Var] = Counter()
        for s in n.walk(fn.body):
            defined.update(n.defs_of(s))
            if isinstance(s, n.Let):
                self._lets[s.dst] = s
        self._changing = {v for v, count in defined.items() if count > 1}
        self._of: dict[n.Var, Hashable] = {}

    def of(self, a: n.Atom) -> Hashable:
        """Equal for atoms with equal values."""
        if isinstance(a, n.Const):
            return a.value
        if a in self._changing:
            return object()
        if a not in self._of:
            s = self._lets.get(a)
            if s is None:
                self._of[a] = a
            elif s.op == "wrap_index":  # what is read or stored is inside
                self._of[a] = self.of(s.args[0])
            else:
                self._of[a] = (s.op, a.type, *map(self.of, s.args))
        return self._of[a]

    def element(self, s: n.Load | n.Store | n.Atomic) -> tuple[_Keys, _Keys]:
        """Which element an access is of, and which part of it."""
        return (s.array.name, *map(self.of, s.index)), tuple(map(self.of, s.path))


def _added(fn: n.Function, body: list[n.Stmt], known: _Expressions) -> set[int]:
    """Loads and stores that are updates, by identity: what is loaded has no other use."""
    uses = Counter(a for s in n.walk(fn.body) for a in n.uses_of(s) if isinstance(a, n.Var))
    loads = {s.dst: s for s in body if isinstance(s, n.Load)}
    sums = {s.dst: s for s in body if isinstance(s, n.Let) and s.op in _ADDS}
    found: set[int] = set()
    for s in body:
        total = sums.get(s.value) if isinstance(s, n.Store) and isinstance(s.value, n.Var) else None
        if total is None or not isinstance(s, n.Store):
            continue
        for a in total.args if total.op == "add" else total.args[:1]:
            load = loads.get(a) if isinstance(a, n.Var) else None
            if load is not None and uses[load.dst] == 1:
                if known.element(load) == known.element(s):
                    found |= {id(load), id(s)}
    return found
