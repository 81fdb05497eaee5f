"""What a graph has captured, as far as others need to know what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.diagnostics.site import Site
    from engine.runtime.array import array
    from engine.runtime.plan_parts import Call

Operation = Callable[[], object]


class DeferredLaunch:
    """A launch that a graph has captured. run: runs it, and tells all who listen.

    simple: whether it takes just the arguments of `call`, as they are, and is not kept off tapes.
    """

    __slots__ = ("call", "run", "simple", "site")

    def __init__(self, call: Call, run: Operation, simple: bool, site: Site | None) -> None:
        self.call = call
        self.run = run
        self.simple = simple
        self.site = site

    def __call__(self) -> None:
        self.run()


class DeferredWrite:
    """A copy of `src`, or a fill with `element` where that is None. run: as of a launch."""

    __slots__ = ("dest", "element", "run", "src")

    def __init__(self, dest: array, src: array | None, element: Any, run: Operation) -> None:
        self.dest = dest
        self.src = src
        self.element = element
        self.run = run

    def __call__(self) -> None:
        self.run()
