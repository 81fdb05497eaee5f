"""A captured operation of a graph, in the form that other modules need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.runtime.array import array
    from engine.runtime.events import Recorder
    from engine.runtime.plan_parts import BoundLaunch

Operation = Callable[[], object]
Noted = tuple[Operation, "Recorder | None"]  # with the tape that is active


class DeferredLaunch:
    """A launch that a graph has captured.

    run: runs it again. simple: whether it takes just its arguments, as they are, and is not kept
    off tapes.
    """

    __slots__ = ("launch", "run", "simple")

    def __init__(
        self, launch: BoundLaunch, run: Callable[[BoundLaunch], None], simple: bool
    ) -> None:
        self.launch = launch
        self.run = run
        self.simple = simple

    def __call__(self) -> None:
        self.run(self.launch)


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
