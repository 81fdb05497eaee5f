"""The listeners of launches and writes: the active tape, and an observer of all launches.

The tape package sits above this one and registers itself here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

from engine.classes import Protocol, dataclass
from engine.compile.backend import NotCaptured
from engine.diagnostics.site import Site, is_own

if TYPE_CHECKING:
    from engine.compile.backend import Limits
    from engine.runtime.array import array
    from engine.runtime.deferred import DeferredLaunch, Noted
    from engine.runtime.kernel import Kernel
    from engine.runtime.plan import Plan
    from engine.runtime.plan_parts import Call


Written = Callable[[], None]


class Recorder(Protocol):
    """What a tape is to the runtime."""

    def run_launch(
        self, plan: Plan, dim: tuple[int, ...], values: list[Any], blob: bytes, inputs: int,
        site: Site | None,
    ) -> None:  # fmt: skip
        """Runs a launch with checked arguments (`blob` are `values`, as bytes), and records it.

        inputs: how many of them the caller named as inputs.
        """

    def finish_launch(self, record: Any, state: bytes) -> None:
        """Takes the record of a launch that ran without Python, and left something.

        state: the launch structure (see `engine.compile.cpu.launcher`).
        """

    def record_copy(self, dest: array, src: array) -> Written | None:
        """Called before `src` (same shape, maybe another float width) is copied to `dest`.

        What it gives is called when that has happened.
        """

    def record_overwrite(self, dest: array, what: str) -> Written | None:
        """Called before `dest` is filled with values that carry no gradient; gives the same."""

    def record_scope_begin(self, scope_name: str, metadata: dict[str, Any] | None = None) -> Any:
        """Opens a named group of records."""

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """Closes the group opened last."""

    def sketch_launch(self, call: Call, site: Site | None) -> None:
        """Notes a launch that a graph has captured, and that has not run."""

    def sketch_write(self, dest: array, src: array | None, what: str) -> None:
        """The same for a copy, or for a fill where `src` is None."""

    def rewinding(self) -> Callable[[], None]:
        """What makes it forget all that is recorded from now on."""

    def prepared(
        self, launches: Sequence[DeferredLaunch], now: Limits
    ) -> Sequence[Callable[[], object]] | None:
        """What runs launches of a graph and records them, in as few calls as can be.

        None where that is not known yet. now: the limits of all of them.
        """


class Deferring(Protocol):
    """What notes operations in place of running them: a graph that is captured."""

    def add(self, operation: Callable[[], object], records: Recorder | None = None) -> None:
        """Notes one. records: the tape that it records on, where that is not the active one."""

    def made(self, tape: Recorder, anew: Callable[[], None]) -> None:
        """Notes a tape that is made meanwhile, and so each time again: how it becomes a new one."""


@dataclass(frozen=True, slots=True)
class Optimized:
    """A parameter that an optimizer of another framework has moved.

    size: how many numbers it has. values, gradient: give those of the parameter after the step, and
    of its gradient, as NumPy has them, in any shape.
    """

    size: int
    values: Callable[[], Any]
    gradient: Callable[[], Any]


class Bystander(Protocol):
    """Is told of what no tape records, and of whatever is read."""

    def launched(self, call: Call, site: Site | None) -> None:
        """A launch is about to run that was not asked to stay off the tape."""

    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        """Elements are about to be copied; `src` may be a view of memory that NumPy lent.

        meant: as a constant, by `stop_gradient`. clone: into an array that is made for it.
        """

    def lent(self, a: array) -> None:
        """The host is about to read an array."""

    def made(self, a: array) -> None:
        """A program has made an array, by `zeros`, `array` and their like."""

    def filled(self, dest: array) -> None:
        """All elements are about to get one value."""

    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array] = ()) -> None:
        """Arrays are about to be read, on a tape or not.

        host: they are lent to user code, which may write them instead. written: what the launch
        that reads them writes.
        """

    def optimized(self, steps: Sequence[Optimized]) -> None:
        """An optimizer of another framework has made a step."""

    def asked(self, a: array, frame: FrameType) -> None:
        """A program asks for the gradient of an array that requires none. frame: what asks."""


active: ContextVar[Recorder | None] = ContextVar("engine_tape", default=None)
# The graph that is captured, if any; there is none anywhere before `captured` has one.
captured: list[object] = []
# Whether operations run to be captured by a device.
capturing: ContextVar[bool] = ContextVar("engine_capturing", default=False)
graph: ContextVar[Deferring | None] = ContextVar("engine_graph", default=None)


# The tape in whose block the program launches a graph or command, while what runs is not recorded
# there; the call that does it; and which of the two it is.
PassedOver = tuple["Recorder", "Site | None", Literal["graph", "command"]]
passed_over: ContextVar[PassedOver | None] = ContextVar("engine_passed_over", default=None)


def deferred(operation: Callable[[], object], records: Recorder | None = None) -> bool:
    """Notes an operation where a graph is captured; else False, and it has to be run now.

    records: the tape that it records on, where that need not be the active one.
    """
    found = graph.get()
    if found is None:
        return False
    found.add(operation, records)
    return True


def by_host(what: str) -> None:
    """To be called before what only the host can do. Raises NotCaptured where a device captures."""
    if capturing.get():
        raise NotCaptured(what)


# Gives what runs a captured sequence without records, where nobody else has its tapes (see
# `engine.tape.unseen`): of its operations, of these as they are run, and of what makes all
# of its tapes new ones.
unseen: list[
    Callable[
        [Sequence[Noted], Sequence[Noted], Sequence[Callable[[], None]]],
        Callable[[], bool] | None,
    ]
] = []


Observer = Callable[["Kernel", "tuple[int, ...]"], None]
# Called before each launch runs, recorded or not. A list, so that nesting works.
observers: list[Observer] = []
bystanders: list[Bystander] = []


def optimized(steps: Sequence[Optimized]) -> None:
    """Tells all bystanders that an optimizer of another framework has made a step."""
    for b in bystanders:
        b.optimized(steps)


def reading(arrays: Sequence[array], host: bool = False, written: Sequence[array] = ()) -> None:
    """Tells all bystanders that arrays are about to be read. written: by the launch that reads."""
    for b in bystanders:
        b.reading(arrays, host, written)


def asked(a: array) -> None:
    """Tells all bystanders that a function was asked for the gradient of an array that has none.

    To be called by that function.
    """
    frame = sys._getframe(2)
    if a._info.floating and not is_own(frame):
        for b in bystanders:
            b.asked(a, frame)


def end(recorder: Recorder, token: Token[Recorder | None] | None) -> None:
    """Ends a block in which a recorder was active. token: None where it was not yet there."""
    if token is not None:
        try:
            active.reset(token)
        except ValueError:  # the block was left in another context (an async task)
            active.set(None)
        except RuntimeError:  # a signal's handler has raised right after it
            pass
    elif active.get() is recorder:
        active.set(None)
