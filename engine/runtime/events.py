"""The stream of events: what happens to launches, arrays and tapes, and who observes it.

Observers come from two places. Those of a context (a tape that records, a graph that is captured)
are a tuple in a context variable: threads and async tasks have their own, and blocks nest. Those of
the process see what happens in any thread, as they look at memory, which all threads share; threads
that other libraries start have no context to inherit. Two settings have an observer each.
`observers` is all of them, who are told of launches; of arrays and tapes those of the process are,
of writes those of the context too, and what needs the host is told to these alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from engine import config
from engine.classes import dataclass
from engine.diagnostics.site import Site, call_site, is_own
from engine.locks import Lock

if TYPE_CHECKING:
    from engine.runtime.array import array
    from engine.runtime.execute import Done, Executable
    from engine.runtime.faults import Fault
    from engine.runtime.kernel import Kernel
    from engine.runtime.plan import Plan
    from engine.runtime.plan_parts import BoundLaunch
    from engine.runtime.storage import Storage

Written = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Optimized:
    """A parameter that an optimizer of another framework has moved.

    size: how many numbers it has. values, gradient: give those of the parameter after the step, and
    of its gradient, as NumPy has them, in any shape.
    """

    size: int
    values: Callable[[], Any]
    gradient: Callable[[], Any]


class Observer:
    """Is told what happens. Its methods do nothing: an observer has those that it needs.

    _heeds: the names of the methods that a class has of its own. _is_tape, _is_graph: whether it is
    a tape that records, or a graph that is captured. bounds, races: whether launches are watched
    for accesses outside of arrays, and for races. keeps: whether memory that may change unseen is
    copied where it is held.
    """

    __slots__ = ()

    _heeds: ClassVar[frozenset[str]] = frozenset()
    _is_tape: ClassVar[bool] = False
    _is_graph: ClassVar[bool] = False
    keeps: ClassVar[bool] = False
    bounds: bool = False
    races: bool = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._heeds = frozenset(
            name for name, value in vars(Observer).items()
            if callable(value) and getattr(cls, name) is not value
        )  # fmt: skip

    # ---- launches

    def launching(self, kernel: Kernel, dim: tuple[int, ...], values: list[Any] | None) -> None:
        """A launch is about to run, on a tape or not. values: its arguments; None where JAX has
        them.
        """

    def unrecorded(self, launch: BoundLaunch) -> None:
        """A launch is about to run that no tape records, though it was not asked to stay off."""

    def launched(self, plan: Plan, values: list[Any]) -> None:
        """A launch has run."""

    def differentiated(self, plan: Plan, gradients: Sequence[tuple[str, array]]) -> None:
        """An adjoint has run. gradients: what it added to, by the names of the parameters."""

    def faulty(self, fault: Fault) -> None:
        """A launch that was watched has done something wrong."""

    # ---- arrays

    def made(self, a: array) -> None:
        """A program has made an array, by `zeros`, `array` and their like."""

    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array] = ()) -> None:
        """Arrays are about to be read, on a tape or not.

        host: they are lent to user code, which may write them instead. written: what the launch
        that reads them writes.
        """

    def lent(self, a: array) -> None:
        """The host is about to read an array."""

    def writing(self, memory: Storage, lo: int, hi: int) -> None:
        """Bytes (by address) are about to change, by anything that the engine does."""

    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        """Elements are about to be copied off any tape; `src` may be a view of NumPy's memory.

        meant: as a constant, by `stop_gradient`. clone: into an array that is made for it.
        """

    def filled(self, dest: array) -> None:
        """All elements are about to get one value, off any tape."""

    def asked(self, a: array, frame: FrameType) -> None:
        """A program asks for the gradient of an array that requires none. frame: what asks."""

    def optimized(self, steps: Sequence[Optimized]) -> None:
        """An optimizer of another framework has made a step."""

    def needs_host(self, what: str) -> None:
        """What only the host can do is about to happen."""

    # ---- tapes

    def follows(self, tape: Any) -> bool:
        """Whether it is to be told what a tape records and runs backward."""
        return False

    def copies(self, tape: Any, kernel: str) -> bool:
        """Whether it needs copies of what launches of a kernel read on a tape."""
        return False

    def tape_made(self, tape: Any) -> None:
        """A tape was made."""

    def tape_entered(self, tape: Any) -> None:
        """A block of recording begins."""

    def tape_left(self, tape: Any) -> None:
        """A block of recording has ended."""

    def tape_recording(self, tape: Any, reads: Sequence[array], values: Sequence[Any]) -> None:
        """A tape is about to run something that it records: what it just reads; all arguments."""

    def tape_recorded(self, tape: Any, record: Any, seconds: float | None) -> None:
        """A tape gets a record of what has run. seconds: what that took, where it is known."""

    def tape_seeded(self, tape: Any) -> None:
        """What a backward pass begins with is known; nothing else of it has happened."""

    def tape_reversing(self, tape: Any, run: Any) -> None:
        """A backward pass begins (`engine.tape.backward.Pass`)."""

    def record_reversing(self, tape: Any, number: int, record: Any) -> None:
        """A record of the pass is about to run backward."""

    def record_reversed(self, tape: Any) -> None:
        """It has run."""

    def tape_reversed(self, tape: Any, done: bool) -> None:
        """The pass that began last came to its end, or was left by an exception."""

    def tape_forgot(self, tape: Any) -> None:
        """A tape is about to forget its records."""


class Recorder:
    """What a tape is to the runtime. It has no events: these are names that users may want."""

    __slots__ = ()
    _heeds: ClassVar[frozenset[str]] = frozenset()
    _is_tape: ClassVar[bool] = True
    _is_graph: ClassVar[bool] = False

    def begin_launch(self, launch: BoundLaunch) -> tuple[Executable, Done]:
        """Has a launch that is about to run recorded.

        What it runs as; and what is to be called when it has run, with what it saved.
        """
        raise NotImplementedError

    def record_write(
        self, kind: str, name: str, dest: array, src: array | None = None,
        numbers: Sequence[float] = (),
    ) -> Written | None:  # fmt: skip
        """Called before all of `dest` is overwritten by what is no launch.

        kind: of the record (see `engine.tape.records.linear`): `copy` of `src` (same shape, maybe
        another float width), `write` of values that carry no gradient, ... name: what messages
        call it. numbers: the constants of the kind. What it gives is called when that has happened.
        """
        raise NotImplementedError

    def record_scope_begin(self, scope_name: str, metadata: dict[str, Any] | None = None) -> Any:
        """Opens a named group of records."""
        raise NotImplementedError

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """Closes the group opened last."""
        raise NotImplementedError

    def sketch_launch(self, launch: BoundLaunch) -> None:
        """Notes a launch that a graph has captured, and that has not run."""
        raise NotImplementedError

    def sketch_write(
        self, kind: str, name: str, dest: array, src: array | None = None,
        numbers: Sequence[float] = (),
    ) -> None:  # fmt: skip
        """The same for what `record_write` gets."""
        raise NotImplementedError

    def rewinding(self) -> Callable[[], None]:
        """What makes it forget all that is recorded from now on."""
        raise NotImplementedError


class Taker(Observer):
    """What takes operations in place of running them: a graph that is captured."""

    __slots__ = ()
    _is_graph = True

    def add(self, operation: Callable[[], object], records: Recorder | None = None) -> None:
        """Takes one. records: the tape that it records on, where that is not the active one."""
        raise NotImplementedError


class PassedOver(Observer):
    """A tape in whose block a graph or command runs, which it does not record.

    site: of the call that runs it. kind: which of the two it is.
    """

    __slots__ = ("kind", "site", "tape")

    def __init__(
        self, tape: Recorder, site: Site | None, kind: Literal["graph", "command"]
    ) -> None:
        self.tape, self.site, self.kind = tape, site, kind


# ---- who observes

Here = tuple["Observer | Recorder", ...]

# Those of the context: native functions look here, too, and at the list.
here: ContextVar[Here] = ContextVar("engine_observers", default=())
# Those of the process.
everywhere: list[Observer] = []
# Those that a setting asks for, by its name.
_by_setting: dict[str, Observer] = {}
_lock = Lock()


def observers() -> tuple[Observer, ...]:
    """All who are to be told now."""
    found: tuple[Observer, ...] = ()
    if config.print_launches or config.verify_fp:
        settings = vars(config)
        found = tuple(o for name, o in _by_setting.items() if settings[name])
    if everywhere:
        found = (*found, *everywhere)
    if local := here.get():
        found = (*found, *(o for o in local if isinstance(o, Observer)))
    return found


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """While active, an observer is told what happens in any thread."""
    with _lock:
        everywhere.append(observer)
    try:
        yield
    finally:
        with _lock:
            _remove(everywhere, observer)


def _remove(found: list[Any], observer: object) -> None:
    """Takes out the one that came last: an observer may be there several times."""
    for k in range(len(found) - 1, -1, -1):
        if found[k] is observer:
            del found[k]
            return


def by_setting(name: str, observer: Observer) -> None:
    """Has an observer told wherever a setting is true.

    name: `print_launches` or `verify_fp`, which compiled code looks at, too.
    """
    _by_setting[name] = observer


def enter(observer: Observer | Recorder) -> None:
    """Has an observer told what happens in this context, until it leaves."""
    here.set((*here.get(), observer))


def leave(observer: Observer | Recorder) -> None:
    """Ends that, if it is so: a block may be left in another context than it was entered in."""
    found = here.get()
    if len(found) == 1 and found[0] is observer:
        here.set(())
    elif observer in found:
        others = list(found)
        _remove(others, observer)
        here.set(tuple(others))


def pause_tapes() -> Here:
    """Has no tape record, until `resume_tapes` gets what this gives."""
    found = here.get()
    paused = tuple(o for o in found if o._is_tape)
    if paused:
        here.set(tuple(o for o in found if not o._is_tape))
    return paused


def resume_tapes(paused: Here) -> None:
    """Has tapes record again; what else has come here meanwhile stays."""
    if paused:
        here.set((*paused, *here.get()))


def passing_over(kind: Literal["graph", "command"]) -> Here:
    """Those who observe here while a graph or command runs: no tape, which is known to observers.

    To be called from where a user's call runs it.
    """
    found = here.get()
    others = tuple(o for o in found if not o._is_tape)
    passed = tape() if everywhere and len(others) < len(found) else None
    return others if passed is None else (*others, PassedOver(passed, call_site(2), kind))


def without_recording() -> Token[Here]:
    """Has no tape record, and no graph take what happens; until `restore`."""
    return here.set(tuple(o for o in here.get() if not (o._is_tape or o._is_graph)))


def with_observer(observer: Observer) -> Token[Here]:
    """Has an observer told what happens in this context, until `restore`."""
    return here.set((*here.get(), observer))


def is_only_observer(observer: Observer | Recorder) -> bool:
    """Whether an observer is the only one here."""
    found = here.get()
    return len(found) == 1 and found[0] is observer


def restore(token: Token[Here]) -> None:
    """Has those observe who did before."""
    here.reset(token)


def tape() -> Recorder | None:
    """The tape that records here."""
    found = here.get()
    if not found:
        return None
    for o in reversed(found):
        if o._is_tape:
            return o  # type: ignore[return-value]
    return None


def graph() -> Taker | None:
    """The graph that is captured here."""
    for o in reversed(here.get()):
        if o._is_graph:
            return o  # type: ignore[return-value]
    return None


def passed_over() -> PassedOver | None:
    """The tape in whose block something runs here that it does not record."""
    for o in reversed(here.get()):
        if o.__class__ is PassedOver:
            return o
    return None


def sanitizers() -> list[Observer]:
    """Those for whom launches are watched."""
    return [o for o in everywhere if o.bounds] if everywhere else []


def are_any() -> bool:
    """Whether anybody is told of launches."""
    return bool(everywhere or here.get())


def are_writes_observed() -> bool:
    """Whether anybody is told of each write, or takes it."""
    found = here.get()
    if not (found or everywhere):
        return False
    return any("writing" in o._heeds for o in (*everywhere, *found))


# ---- what happens


def deferred(operation: Callable[[], object], records: Recorder | None = None) -> bool:
    """Has a graph that is captured take an operation; else False, and it has to be run now.

    records: the tape that it records on, where that need not be the active one.
    """
    found = graph()
    if found is None:
        return False
    found.add(operation, records)
    return True


def needs_host(what: str) -> None:
    """To be called before what only the host can do. Raises NotCaptured where a device captures."""
    for o in here.get():
        if "needs_host" in o._heeds:
            o.needs_host(what)  # type: ignore[union-attr]


def writing(memory: Storage, lo: int, hi: int) -> None:
    """Tells that bytes are about to change."""
    for o in (*everywhere, *here.get()):
        if "writing" in o._heeds:
            o.writing(memory, lo, hi)  # type: ignore[union-attr]


def tell(event: str, *what: Any) -> None:
    """Tells the observers of the process of an event, by the name of the method."""
    for o in tuple(everywhere):
        getattr(o, event)(*what)


def reading(arrays: Sequence[array], host: bool = False, written: Sequence[array] = ()) -> None:
    """Tells that arrays are about to be read. written: by the launch that reads."""
    for o in tuple(everywhere):
        o.reading(arrays, host, written)


def asked(a: array) -> None:
    """Tells that a function was asked for the gradient of an array that has none.

    To be called by that function.
    """
    frame = sys._getframe(2)
    if a._info.floating and not is_own(frame):
        tell("asked", a, frame)


def optimized(steps: Sequence[Optimized]) -> None:
    """Tells that an optimizer of another framework has made a step."""
    tell("optimized", steps)
