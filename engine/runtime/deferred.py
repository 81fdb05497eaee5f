"""A captured operation of a graph, in the form that other modules need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.compile.cpu.launcher import maker

if TYPE_CHECKING:
    from engine.diagnostics.site import Site
    from engine.runtime.array import array
    from engine.runtime.events import Recorder
    from engine.runtime.plan_parts import Call

Operation = Callable[[], object]
Noted = tuple[Operation, "Recorder | None"]  # with the tape that is active


class DeferredLaunch:
    """A launch that a graph has captured. run: runs it, and tells all who listen.

    simple: whether it takes just the arguments of `call`, as they are, and is not kept off tapes.
    """

    __slots__ = ("_inputs", "_outputs", "call", "run", "simple", "site")

    def __init__(self, call: Call, run: Operation, simple: bool, site: Site | None) -> None:
        self.call = call
        self.run = run
        self.simple = simple
        self.site = site
        self._inputs = call.values[: call.inputs]
        self._outputs = call.values[call.inputs :]

    def __call__(self) -> None:
        plan, functions = self.call.plan, maker.functions
        if (
            functions is not None and self.simple and self.site is not None
            and (plan.recipe or plan.hurry())
        ):  # fmt: skip
            came = functions.whole(
                plan.recipe, self.call.dim, self._inputs, self._outputs, True, self.site
            )
            if came is True:
                return
            if came is not None:
                plan.finish(self.call.dim, came)
                return
        self.run()


class DeferredWrite:
    """A copy of `src`, or a fill with `element` where that is None. run: as of a launch."""

    __slots__ = ("_clears", "dest", "element", "run", "src")

    def __init__(self, dest: array, src: array | None, element: Any, run: Operation) -> None:
        self.dest = dest
        self.src = src
        self.element = element
        self.run = run
        # Zeros of a whole array off any tape, as a loss gets them each time.
        self._clears = src is None and element is dest._info.zero

    def __call__(self) -> None:
        functions = maker.functions
        if self._clears and functions is not None and functions.clear(self.dest):
            return
        self.run()
