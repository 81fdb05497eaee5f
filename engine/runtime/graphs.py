"""Captured graphs: operations are noted when called, and run when the graph is launched.

While a graph captures, launches, adjoints, copies, fills and what tapes do (recording, backward
passes, clearing) are checked and noted, and nothing of it runs. `capture_launch` runs them in their
order, on the same arrays as they are then, as often as it is called. The host reads arrays at once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from engine.accelerator import accelerator
from engine.lang.types import is_integer
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.blocks import Block, Leave
from engine.runtime.device import Device, DeviceLike, get_device
from engine.runtime.device_graphs import DeviceGraph
from engine.runtime.launch_errors import fail
from engine.runtime.modules import force_load
from engine.runtime.streams import ScopedStream, Stream

if TYPE_CHECKING:
    from engine.runtime.deferred import Noted


class CaptureMode(IntEnum):
    """Warp's names for how CUDA captures; they mean nothing on the CPU."""

    GLOBAL = 0
    THREAD_LOCAL = 1
    RELAXED = 2


class Graph(events.Taker):
    """A captured sequence of operations, to be run by `capture_launch`."""

    def __init__(self, device: Device, outer: Graph | None = None) -> None:
        self.device = device
        self._operations: list[Noted] = []
        self._steps: list[Noted] = []  # the same as it runs
        # Tapes that it records on, with what puts each back to how it was before; to be called
        # where a run begins to record there.
        self._rewinds: dict[int, Callable[[], None]] = {}
        self._waiting: dict[int, Callable[[], None]] = {}
        # Tapes that are made in it: what makes each a new one, as a run begins.
        self._fresh: list[Callable[[], None]] = []
        # Of the outermost graph: those of all graphs in it, by tape; and tapes that operations
        # record on outside of their blocks, which go back at once.
        self._made: dict[int, Callable[[], None]] = {}
        self._at_once: list[int] = []
        self._runs = 0
        # What runs all of it, if nobody else has its tapes.
        self._fused: Callable[[], bool] | None = None
        self._outer: Graph | None = None if outer is None else outer._root
        self._on_device = DeviceGraph(device)
        self._captures = False

    @property
    def _root(self) -> Graph:
        return self if self._outer is None else self._outer

    def add(self, operation: Callable[[], object], records: events.Recorder | None = None) -> None:
        """Notes an operation, and the tape that is active. records: one that it records on."""
        tape, root = events.tape(), self._root
        for t in (tape, records):
            if t is not None and id(t) not in root._rewinds and id(t) not in root._made:
                root._rewinds[id(t)] = t.rewinding()
                if t is not tape:
                    root._at_once.append(id(t))
        self._operations.append((operation, tape))

    def tape_made(self, tape: Any) -> None:
        """Notes a tape that is made while it captures, to be made anew by each run."""
        if events.graph() is self:  # else a branch in it does
            anew = tape._anew
            self._fresh.append(anew)
            self._root._made[id(tape)] = anew

    def __len__(self) -> int:
        return len(self._operations)

    def __repr__(self) -> str:
        return f"<graph of {len(self)} operations>"

    def _begin(self) -> None:
        self._captures = True
        events.enter(self)

    def _end(self) -> None:
        self._captures = False
        events.leave(self)
        self._steps = accelerator.graph_steps(self._operations)

    def _run(self) -> None:
        """Runs the operations. Tapes that it has not made go on from where they are."""
        for anew in self._fresh:
            anew()
        before, now = events.here.get(), events.tape()
        waiting = self._root._waiting
        try:
            others = events.passing_over("graph")
            for operation, tape in self._steps:
                if tape is not now:
                    events.here.set(others if tape is None else (*others, tape))
                    now = tape
                if waiting and tape is not None and (rewind := waiting.pop(id(tape), None)):
                    rewind()
                operation()
        finally:
            events.here.set(before)  # whatever a signal's handler has interrupted

    @property
    def left_to_python(self) -> str:
        """Why a GPU does not run it by itself; empty where it does, or will from now on."""
        return self._on_device.left

    def _replay(self) -> None:
        """Runs it on tapes as they were before the capture."""
        self._on_device.run(self._operations, self._by_python)

    def _by_python(self) -> None:
        if self._fused is not None:
            if self._fused():
                return
            self._fused, self._runs = None, 1  # it may be made anew later
        if not self._runs:  # what tapes have is what was noted, and has not happened
            self._forget()
        self._waiting = dict(self._rewinds)
        for tape in self._at_once:
            self._waiting.pop(tape)()
        self._run()
        self._runs += 1
        if self._runs.bit_count() == 1:  # again and again, but seldom
            if self._fresh and not self._rewinds:
                self._fused = accelerator.fused_graph(self._operations, self._steps, self._fresh)
            if self._fused is not None:
                self._forget()

    def _forget(self) -> None:
        """Makes tapes forget what they have recorded."""
        for forget in (*self._rewinds.values(), *self._made.values()):
            forget()


def capture_begin(
    device: DeviceLike = None,
    stream: Any = None,
    force_module_load: bool | None = None,
    external: bool = False,
    apic: bool = False,
    capture_mode: CaptureMode = CaptureMode.THREAD_LOCAL,
) -> None:
    """Begins to note operations in place of running them, up to `capture_end`.

    Args:
        device: where launches go that are captured.
        stream: the same, by a stream.
        force_module_load: True compiles all modules first.
        external: accepted for GPU code; it means nothing on the CPU.
        apic: accepted for GPU code; it means nothing on the CPU.
        capture_mode: accepted for GPU code; it means nothing on the CPU.

    Raises LaunchError: E213 inside another capture, E208 for an unknown device.
    """
    del external, apic, capture_mode
    place = get_device(device if stream is None else stream.device)
    if events.graph() is not None:
        raise fail("E213", "a capture cannot begin inside another one", help="end that one first")
    if force_module_load:
        force_load(place)
    Graph(place)._begin()


def capture_end(device: DeviceLike = None, stream: Any = None) -> Graph:
    """Ends a capture. Raises LaunchError (E213) where none has begun."""
    del device, stream
    graph = events.graph()
    if not isinstance(graph, Graph):
        raise fail("E213", "there is no capture to end", help="call capture_begin first")
    graph._end()
    return graph


def capture_launch(graph: Graph, stream: Any = None) -> None:
    """Runs what a graph has captured. Raises what the operations raise, and LaunchError (E213).

    Inside of a capture, the launch of the graph is one more operation. A tape that the graph
    records on has the records of its last run; one that was made there begins anew each time, and
    of one that nobody else has there may be none. A tape that records while the graph is launched
    gets no record of it, as in Warp: capture its block, too (`adtool check` tells of it: G004).
    """
    if not isinstance(graph, Graph) or graph._captures:
        what = "a graph that is still captured" if isinstance(graph, Graph) else repr(graph)
        raise fail("E213", f"capture_launch takes a captured graph, got {what}")
    if events.deferred(graph._replay):
        return
    if stream is None:
        graph._replay()
        return
    with ScopedStream(stream if isinstance(stream, Stream) else None, sync_enter=False):
        graph._replay()


class ScopedCapture(Block):
    """`with ScopedCapture() as capture:` captures the block; the result is `capture.graph`.

    The arguments are those of `capture_begin`, and so are the errors.
    """

    def __init__(self, device: DeviceLike = None, stream: Any = None, **options: Any) -> None:
        self.device = device
        self.stream = stream
        self.active = False
        self.graph: Graph | None = None
        self._options = options

    def __enter__(self) -> ScopedCapture:
        self._token = True if events.graph() is None else None
        capture_begin(self.device, self.stream, **self._options)
        self.active = True
        return self

    @Leave
    def __exit__(self, *exc: object) -> None:
        self.active = False
        self.graph = capture_end(self.device, self.stream)
        self._token = self._watch = None

    def _end(self) -> None:
        """Captures nothing any more; there is no graph."""
        self.active = False
        while self._token and isinstance(captured := events.graph(), Graph):
            captured._captures = False  # this one, or a branch in it
            events.leave(captured)
        self._token = None


Branch = Callable[..., Any] | Graph


def capture_if(
    condition: array,
    on_true: Branch | None = None,
    on_false: Branch | None = None,
    stream: Any = None,
    **kwargs: Any,
) -> None:
    """Runs one of two branches; inside a capture, as an operation of the graph.

    Args:
        condition: an array of one int; what it holds decides, each time.
        on_true: a function, called with `kwargs`, or a captured graph: where it is not 0.
        on_false: the same where it is 0.
        stream: accepted for GPU code.
        kwargs: what functions are called with.

    Raises LaunchError (E213) for other arguments.
    """
    del stream
    _check_condition(condition, "capture_if")
    yes, no = (_branch(b, kwargs, "capture_if") for b in (on_true, on_false))

    def run() -> None:
        (yes if _holds(condition) else no)()

    if not events.deferred(run):
        run()


def capture_while(condition: array, while_body: Branch, stream: Any = None, **kwargs: Any) -> None:
    """Runs a body as long as `condition` (an array of one int) is not 0.

    The arguments and errors are those of `capture_if`.
    """
    del stream
    _check_condition(condition, "capture_while")
    body = _branch(while_body, kwargs, "capture_while")

    def run() -> None:
        while _holds(condition):
            body()

    if not events.deferred(run):
        run()


def is_conditional_graph_supported() -> bool:
    """False, as Warp says where there is no GPU: programs have another way then."""
    return False


def _holds(condition: array) -> bool:
    return bool(condition._host().ravel()[0])


def _check_condition(condition: Any, what: str) -> None:
    if (
        not isinstance(condition, array)
        or condition.size != 1
        or not is_integer(condition._ir.element)
    ):
        raise fail("E213", f"{what} takes an array of one int as its condition, got {condition!r}")


def _branch(branch: Branch | None, kwargs: dict[str, Any], what: str) -> Callable[[], object]:
    """What runs a branch; of a function inside a capture, what it asks for there."""
    if branch is None:
        return lambda: None
    if isinstance(branch, Graph):
        return branch._replay
    if not callable(branch):
        raise fail("E213", f"{what} takes functions and graphs, got {branch!r}")
    outer = events.graph()
    if not isinstance(outer, Graph):
        return lambda: branch(**kwargs)
    inner = Graph(outer.device, outer)
    inner._begin()
    try:
        branch(**kwargs)
    finally:
        inner._end()
    return inner._run
