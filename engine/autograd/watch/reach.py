"""Finds the inputs that arrays depend on, and where the way to an input is cut."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias
from weakref import ref

import numpy as np

from engine.autograd.watch.places import WeakPlaces, geometry
from engine.cached import cached_property
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.diagnostics.site import Site
from engine.runtime.array import array

Kind = Literal["launch", "copy", "clone", "cast", "graph", "command"]


@dataclass(frozen=True, eq=False)
class Edge:
    """Where a way leaves the tape. name: the kernel or operation. at: where there is no call.

    Those of one call are equal, as in a loop.
    """

    kind: Kind
    name: str
    site: Site | None
    at: Span | None = None

    @cached_property
    def _key(self) -> tuple[object, ...]:
        site = None if self.site is None else (self.site.code, self.site.instruction)
        return self.kind, self.name, site, self.at

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Leaf:
    """An input of the tape that requires a gradient. root: of its memory's gradient."""

    root: int
    name: str
    array: ref[array]


_NOTHING: frozenset[Any] = frozenset()
Way: TypeAlias = "tuple[Leaf, Edge | None]"


class Reach:
    """The inputs that an array depends on, and those behind a cut, with the first one from each.

    Sets where they are small. Else it only knows what it was made of, so that a tape with an
    input at each of many launches takes time and memory for each of them once.

    bits: of the inputs, as who makes them numbers them: a set bit for each, and perhaps more.
    """

    __slots__ = ("_cut", "_depth", "_edge", "_leaves", "_parts", "bits", "is_cut", "is_smooth")

    def __init__(
        self, leaves: frozenset[Leaf] = frozenset(),
        cut: frozenset[tuple[Leaf, Edge]] = frozenset(), bits: int = 0,
    ) -> None:  # fmt: skip
        self.bits = bits
        self._depth = 0
        self._leaves = leaves
        self._cut = cut
        self._parts: tuple[Reach, ...] = ()
        self._edge: Edge | None = None  # at which all parts are cut
        self.is_smooth = bool(leaves)
        self.is_cut = bool(cut)

    @property
    def leaves(self) -> frozenset[Leaf]:
        """Inputs that are reached without a cut."""
        if not self.is_smooth:
            return _NOTHING
        return frozenset(leaf for leaf, edge in self._ways() if edge is None)

    @property
    def cut(self) -> frozenset[tuple[Leaf, Edge]]:
        """Inputs that are reached through cuts, each with the cut next to it."""
        if not self.is_cut:
            return _NOTHING
        return frozenset((leaf, edge) for leaf, edge in self._ways() if edge is not None)

    def __or__(self, other: Reach) -> Reach:
        if other is self or not (other.is_smooth or other.is_cut):
            return self
        if not (self.is_smooth or self.is_cut):
            return other
        if not (self._parts or other._parts) and self._small and other._small:
            return Reach(
                self._leaves | other._leaves, self._cut | other._cut, self.bits | other.bits
            )
        out = Reach(bits=self.bits | other.bits)
        out._parts, out._depth = (self, other), 1 + max(self._depth, other._depth)
        out.is_smooth = self.is_smooth or other.is_smooth
        out.is_cut = self.is_cut or other.is_cut
        return out

    def cut_at(self, edge: Edge) -> Reach:
        """What is reached beyond a cut."""
        if not self.is_smooth:
            return self
        if self._small:
            return Reach(frozenset(), self._cut | {(x, edge) for x in self._leaves}, self.bits)
        out = Reach(bits=self.bits)
        out._parts, out._edge, out.is_cut, out._depth = (self,), edge, True, 1 + self._depth
        return out

    def flat(self) -> Reach:
        """The same as sets, where it has become deep: what is made in a loop must not grow."""
        return self if self._depth <= _DEEP else Reach(self.leaves, self.cut, self.bits)

    def __bool__(self) -> bool:
        return self.is_smooth or self.is_cut

    @property
    def _small(self) -> bool:
        return not self._parts and len(self._leaves) + len(self._cut) <= _SMALL

    def _ways(self) -> set[Way]:
        out: set[Way] = set()
        todo: list[tuple[Reach, Edge | None]] = [(self, None)]
        seen = set()
        while todo:
            node, edge = todo.pop()
            # Where all is cut further down, cuts above it do not count.
            edge = edge if node.is_smooth else None
            if (id(node), edge) in seen:
                continue
            seen.add((id(node), edge))
            out.update((leaf, edge) for leaf in node._leaves)
            out.update(node._cut)
            todo += [(part, node._edge or edge) for part in node._parts]
        return out


# Inputs, with and without a cut, that are kept as sets.
_SMALL = 8
_DEEP = 512  # of parts of parts

NONE = Reach()


class ReachMap:
    """What is known of memory, by whole arrays. Keeps none of it alive.

    empty: nothing depends on anything. any_cut: something may be behind a cut.
    """

    __slots__ = ("_by", "any_cut", "empty")

    def __init__(self) -> None:
        # What arrays depend on, and whether a tape wrote them.
        self._by: WeakPlaces[tuple[Reach, bool]] = WeakPlaces()
        self.empty = True
        self.any_cut = False

    def of(self, a: array) -> Reach:
        """What an array depends on."""
        return self.look(a)[0]

    def look(self, a: array) -> tuple[Reach, bool]:
        """The same, and whether `add` was told of an array there that it is computed."""
        known = self._by.get(a.storage)
        if known is None:
            return _UNKNOWN
        out, computed = NONE, False
        for reach, made in known.meeting(a):
            if reach:
                out |= reach
            computed |= made
        if not a.size and (same := known.known.get(geometry(a))) is not None:
            computed = same[1][1]
        return out, computed

    def add(self, a: array, reach: Reach, whole: bool, computed: bool = False) -> None:
        """An array was written. whole: all of it. computed: what a tape recorded, or the like."""
        known = self._by.at(a.storage) if reach or computed else self._by.get(a.storage)
        if known is None:
            return
        before = known.known.get(geometry(a))
        if before is not None:
            computed |= before[1][1]
            if not whole:
                reach |= before[1][0]
        if reach:
            self.empty = False
            self.any_cut |= reach.is_cut
            known.put(a, (reach, computed))
        elif computed:
            known.put(a, _COMPUTED)
        else:
            known.pop(a)


_UNKNOWN = (NONE, False)
_COMPUTED = (NONE, True)


def has_gradient(leaf: Leaf) -> bool:
    """Whether an input has a gradient that is not zero everywhere."""
    a = leaf.array()
    grad = None if a is None else a.existing_grad
    if grad is None:
        return False
    host = grad._host()
    return any(np.any(host[n]) for n in host.dtype.names) if host.dtype.names else bool(host.any())
