"""Streams and events of a GPU, and their equivalents on the CPU.

There launches run in the order in which they are made: whatever is asked for on a stream has
happened when the call returns, so that waiting is over at once, and the time between two events is
that between their records. On a GPU streams are CuPy's, and the current one is the current one of
CuPy, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import partial
from time import perf_counter
from typing import Any

from engine.compile.backend import shape
from engine.runtime import events
from engine.runtime.device import Device, DeviceLike, get_device, set_current
from engine.runtime.launch_errors import fail


class Stream:
    """A queue of launches of a device. On the CPU all queues are one.

    priority: of a GPU's stream, lower numbers come first. cuda_stream: a stream of another library,
    by its number, or as CuPy has it.

    Raises LaunchError (E208) for an unknown device.
    """

    def __init__(
        self, device: DeviceLike = None, priority: int = 0, cuda_stream: Any = None, **options: Any
    ) -> None:
        del options
        self.device = get_device(device)
        self.priority = priority
        self.is_blocking = True
        self.native: Any = None  # of a GPU, as CuPy has it
        streams = self.device.backend.streams
        if streams is not None:
            self.native = streams.new_stream(priority) if cuda_stream is None else cuda_stream

    @property
    def cuda_stream(self) -> int:
        """The number of a GPU's stream; 0 on the CPU."""
        return 0 if self.native is None else int(self.native.ptr)

    @property
    def is_complete(self) -> bool:
        """Whether it has nothing to do."""
        return self.native is None or bool(self.native.done)

    @property
    def is_capturing(self) -> bool:
        """Whether a graph is captured."""
        return events.graph() is not None

    def record_event(self, event: Event | None = None, external: bool = False) -> Event:
        """Marks this point of time by an event, a new one for None."""
        del external
        found = Event(self.device, enable_timing=True) if event is None else _event(event)
        now = partial(found._now, self)
        if not events.deferred(now):
            now()
        return found

    def wait_event(self, event: Event, external: bool = False) -> None:
        """Waits for what came before an event."""
        native = _event(event).native
        if native is not None and self.native is not None and event._at is not None:
            if not events.deferred(partial(self.native.wait_event, native)):
                self.native.wait_event(native)

    def wait_stream(
        self, other_stream: Stream, event: Event | None = None, external: bool = False
    ) -> None:
        """Waits for what another stream has to do."""
        other = _stream(other_stream)
        if self.native is not None and other.native is not None:
            self.wait_event(other.record_event(event or Event(other.device)))

    def synchronize(self) -> None:
        """Lets the host wait for it."""
        if self.native is not None:
            self.native.synchronize()

    def __eq__(self, other: object) -> bool:
        if self.native is None or not isinstance(other, Stream):
            return self is other
        return (self.device, self.cuda_stream) == (other.device, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream)) if self.native is not None else id(self)

    def __repr__(self) -> str:
        return f"<stream of {self.device}>"


class Event:
    """A point of time in a stream. Two of them with `enable_timing` tell the time between."""

    def __init__(
        self, device: DeviceLike = None, enable_timing: bool = False, **options: Any
    ) -> None:
        del options
        self.device = get_device(device)
        self.enable_timing = enable_timing
        self._at: float | None = None
        streams = self.device.backend.streams
        self.native: Any = None if streams is None else streams.new_event(enable_timing)

    @property
    def is_complete(self) -> bool:
        """Whether what came before it has happened."""
        return self.native is None or self._at is None or bool(self.native.done)

    def _now(self, stream: Stream) -> None:
        self._at = perf_counter()
        events.needs_host("an event is recorded")
        if self.native is not None:
            if stream.device != self.device:
                raise fail("E213", f"an event of {self.device} on a stream of {stream.device}")
            self.native.record(stream.native)


_streams: dict[str, Stream] = {}
_current: ContextVar[Stream | None] = ContextVar("engine_stream", default=None)


def get_stream(device: DeviceLike = None) -> Stream:
    """The stream that launches go to. Raises LaunchError (E208)."""
    place = get_device(device)
    streams = place.backend.streams
    native = None if streams is None else streams.current_stream()
    for found in (_current.get(), _streams.get(place.alias)):
        if found is not None and found.device is place:
            if native is None or found.native.ptr == native.ptr:
                return found
    made = _streams[place.alias] = Stream(place, cuda_stream=native)
    return made


def set_stream(stream: Stream, device: DeviceLike = None, sync: bool = False) -> None:
    """Makes launches go to a stream; sync: after what the one before has to do.

    Raises LaunchError (E202) for what is none.
    """
    del device
    streams = _stream(stream).device.backend.streams
    if streams is None:
        _current.set(stream)
        return
    if sync:
        stream.wait_stream(get_stream(stream.device))
    _streams[stream.device.alias] = stream  # what `get_stream` gives, while it is CuPy's, too
    streams.use(stream.native)


def synchronize_stream(stream_or_device: Stream | DeviceLike = None) -> None:
    """Waits for a stream, or the current one of a device."""
    if not isinstance(stream_or_device, Stream):
        stream_or_device = get_stream(stream_or_device)
    stream_or_device.synchronize()


def wait_stream(other_stream: Stream, event: Event | None = None, external: bool = False) -> None:
    """Makes the current stream wait for another one."""
    get_stream().wait_stream(other_stream, event, external)


def record_event(event: Event | None = None, external: bool = False) -> Event:
    """Marks this point of time on the current stream by an event, a new one for None."""
    return get_stream().record_event(event, external)


def wait_event(event: Event, external: bool = False) -> None:
    """Makes the current stream wait for what came before an event."""
    get_stream().wait_event(event, external)


def synchronize_event(event: Event) -> None:
    """Waits for what came before an event."""
    if _event(event).native is not None and event._at is not None:
        event.native.synchronize()


def get_event_elapsed_time(start_event: Event, end_event: Event, synchronize: bool = True) -> float:
    """Milliseconds from one event to another.

    Raises LaunchError (E213) where one was not recorded, or made without `enable_timing`.
    """
    times = []
    for event in (start_event, end_event):
        if not _event(event).enable_timing or event._at is None:
            why = "was not recorded" if event.enable_timing else "has no time"
            raise fail("E213", f"the time cannot be measured: an event {why}",
                       help="make events with enable_timing=True, and record them")  # fmt: skip
        times.append(event._at)
    streams = start_event.device.backend.streams
    if streams is not None:
        if synchronize:
            synchronize_event(end_event)
        return streams.milliseconds(start_event.native, end_event.native)
    return (times[1] - times[0]) * 1000.0


class ScopedStream:
    """`with ScopedStream(stream):` makes launches go to a stream of its device inside the block.

    Nothing changes for None. sync_enter: it waits first for what the stream before has to do;
    sync_exit: that one waits for it at the end.
    """

    def __init__(
        self, stream: Stream | None, sync_enter: bool = True, sync_exit: bool = False
    ) -> None:
        self.stream = None if stream is None else _stream(stream)
        self._sync = sync_enter, sync_exit
        self._tokens: list[tuple[Token[Stream | None], Token[Device | None], Stream | None]] = []

    def __enter__(self) -> Stream | None:
        stream = self.stream
        if stream is not None:
            before = get_stream(stream.device) if stream.native is not None else None
            self._tokens.append((_current.set(stream), set_current(stream.device), before))
            set_stream(stream, sync=self._sync[0])
        return stream

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            stream, device, before = self._tokens.pop()
            _current.reset(stream)
            device.var.reset(device)
            if before is not None:
                set_stream(before)
                if self._sync[1]:
                    before.wait_stream(self.stream)


@contextmanager
def shaped(stream: Any, block_dim: int, max_blocks: int) -> Iterator[None]:
    """Has launches go to a stream, in blocks of a certain size, and at most so many."""
    if not isinstance(block_dim, int) or not 0 < block_dim <= 1024:
        raise fail("E205", f"a block has 1 to 1024 threads, got block_dim={block_dim!r}")
    if not isinstance(max_blocks, int) or max_blocks < 0:
        raise fail("E205", f"max_blocks is a number of blocks, got {max_blocks!r}")
    token = shape.set((block_dim, max_blocks))
    try:
        with ScopedStream(stream, sync_enter=False):
            yield
    finally:
        shape.reset(token)


def _stream(found: Any) -> Stream:
    if not isinstance(found, Stream):
        raise fail("E202", f"a stream is wanted, got {found!r}")
    return found


def _event(found: Any) -> Event:
    if not isinstance(found, Event):
        raise fail("E202", f"an event is wanted, got {found!r}")
    return found
