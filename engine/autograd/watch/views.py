"""NumPy views of the program's arrays, which it may read unnoticed at any time."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import ref

from engine.autograd.watch.paths import read_name
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.diagnostics.site import Site
from engine.runtime.array import array

_KEPT = 64  # views that are remembered


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """Where the host got it, and what the user calls its array."""

    array: ref[array]
    span: Span
    name: str


class Views:
    """The last of them that may be alive."""

    def __init__(self) -> None:
        self._views: list[View] = []

    def lent(self, a: array, site: Site | None) -> None:
        """The host is about to get a view of an array."""
        self._views = list(self._alive(another=a))
        if site is not None and len(self._views) < _KEPT:
            self._views.append(View(ref(a), site.span, read_name(site)))

    def alive(self) -> list[View]:
        """Those that there still are."""
        if self._views:
            self._views = list(self._alive())
        return self._views

    def _alive(self, another: array | None = None) -> Iterator[View]:
        for v in self._views:
            a = v.array()
            if a is not None and a is not another and a.storage.exposed:
                yield v
