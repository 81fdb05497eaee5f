"""Named groups of records, for readers of a tape."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from engine.classes import dataclass

# (records before it, name, metadata) where a scope begins, (records before it, None, None) where
# the innermost one ends.
Marker = tuple[int, str | None, dict[str, Any] | None]


@dataclass(slots=True)
class Scope:
    """Records `begin` to `end` (exclusive, -1 while open), nested `depth` deep."""

    name: str
    begin: int
    end: int = -1
    depth: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


class ScopeStack:
    """The scopes of a tape, and those of them that are open."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self._open: list[int] = []

    def begin(self, name: str, metadata: dict[str, Any] | None, at: int) -> int:
        """Opens a scope before record `at`. Returns its index."""
        self._open.append(len(self.scopes))
        self.scopes.append(Scope(name, at, depth=len(self._open) - 1, metadata=metadata or {}))
        return self._open[-1]

    def markers(self) -> list[Marker]:
        """Begins and ends in the order in which they were recorded, as Warp keeps them."""
        out: list[Marker] = []
        around: list[Scope] = []
        for s in self.scopes:
            while len(around) > s.depth:
                out.append((around.pop().end, None, None))
            out.append((s.begin, s.name, s.metadata))
            around.append(s)
        return out + [(s.end, None, None) for s in reversed(around) if s.end >= 0]

    def until(self, count: int) -> ScopeStack:
        """The scopes that began before record `count`."""
        out = ScopeStack()
        out.scopes = [s for s in self.scopes if s.begin < count]
        out._open = [k for k in self._open if k < len(out.scopes)]
        return out

    def end(self, at: int, remove_if_empty: bool) -> bool:
        """Closes the innermost open scope after record `at - 1`; False where none is open."""
        if not self._open:
            return False
        index = self._open.pop()
        self.scopes[index].end = at
        if remove_if_empty and self.scopes[index].begin == at and index == len(self.scopes) - 1:
            self.scopes.pop()
        return True
