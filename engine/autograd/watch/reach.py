"""Which inputs arrays depend on, and where a way to them is cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakKeyDictionary, ref

import numpy as np

from engine.autograd.watch.places import Places, geometry
from engine.diagnostics import Span
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.storage import Storage

Kind = Literal["launch", "copy", "clone", "cast"]


@dataclass(frozen=True)
class Edge:
    """Where a way leaves the tape. name: the kernel or operation. at: where there is no call."""

    kind: Kind
    name: str
    site: Site | None
    at: Span | None = None


@dataclass(frozen=True)
class Leaf:
    """An input of the tape that requires a gradient. root: of its memory's gradient."""

    root: int
    name: str
    array: ref[array]


@dataclass(frozen=True)
class Reach:
    """The inputs that an array depends on. cut: those, by their roots, with where a way is cut."""

    leaves: frozenset[Leaf] = frozenset()
    cut: frozenset[tuple[Leaf, Edge]] = frozenset()

    def __or__(self, other: Reach) -> Reach:
        if other is self or not other:
            return self
        if not self:
            return other
        return Reach(self.leaves | other.leaves, self.cut | other.cut)

    def cut_at(self, edge: Edge) -> Reach:
        """What is reached beyond a cut."""
        return Reach(frozenset(), self.cut | {(x, edge) for x in self.leaves})

    def __bool__(self) -> bool:
        return bool(self.leaves or self.cut)


NONE = Reach()


@dataclass
class ReachMap:
    """What is known of memory, by whole arrays. Keeps none of it alive."""

    by: WeakKeyDictionary[Storage, Places[Reach]] = field(default_factory=WeakKeyDictionary)

    def of(self, a: array) -> Reach:
        """What an array depends on."""
        out = NONE
        known = self.by.get(a.storage)
        if known is not None:
            for reach in known.meeting(a):
                out |= reach
        return out

    def add(self, a: array, reach: Reach, whole: bool) -> None:
        """An array was written. whole: all of it."""
        known = self.by.get(a.storage)
        if known is None:
            known = self.by[a.storage] = Places()
        if not whole and (before := known.known.get(geometry(a))) is not None:
            reach |= before[1]
        if reach:
            known.put(a, reach)
        else:
            known.pop(a)


def has_gradient(leaf: Leaf) -> bool:
    """Whether an input has a gradient that is not zero everywhere."""
    a = leaf.array()
    grad = None if a is None else a.existing_grad
    if grad is None:
        return False
    host = grad._host()
    return any(np.any(host[n]) for n in host.dtype.names) if host.dtype.names else bool(host.any())
