"""Streams and events on the CPU, where launches run in the order in which they are made.

What programs do with them keeps its meaning: whatever is asked for on a stream has happened when
the call returns, so that waiting is over at once, and the time between two events is that between
their records.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from time import perf_counter
from typing import Any

from engine.runtime import recording
from engine.runtime.device import Device, DeviceLike, get_device, set_current
from engine.runtime.launch_errors import fail


class Stream:
    """A queue of launches of a device. On the CPU all queues are one.

    Raises LaunchError (E208) for an unknown device.
    """

    def __init__(self, device: DeviceLike = None, priority: int = 0, **options: Any) -> None:
        del options
        self.device = get_device(device)
        self.priority = priority
        self.is_complete = True  # what it has to do is done when the call returns
        self.is_blocking = True

    @property
    def is_capturing(self) -> bool:
        """Whether a graph is captured."""
        return recording.graph.get() is not None

    def record_event(self, event: Event | None = None, external: bool = False) -> Event:
        """Marks this point of time by an event, a new one for None."""
        del external
        found = Event(self.device, enable_timing=True) if event is None else _event(event)
        if not recording.deferred(found._now):
            found._now()
        return found

    def wait_event(self, event: Event, external: bool = False) -> None:
        """Waits for what came before an event."""
        _event(event)

    def wait_stream(
        self, other_stream: Stream, event: Event | None = None, external: bool = False
    ) -> None:
        """Waits for what another stream has to do."""
        _stream(other_stream)

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
        self.is_complete = True
        self._at: float | None = None

    def _now(self) -> None:
        self._at = perf_counter()


_streams: dict[str, Stream] = {}
_current: ContextVar[Stream | None] = ContextVar("engine_stream", default=None)


def get_stream(device: DeviceLike = None) -> Stream:
    """The stream that launches go to. Raises LaunchError (E208)."""
    place = get_device(device)
    found = _current.get()
    if found is not None and found.device == place:
        return found
    return _streams.setdefault(place.alias, Stream(place))


def set_stream(stream: Stream, device: DeviceLike = None, sync: bool = False) -> None:
    """Makes launches go to a stream. Raises LaunchError (E202) for what is none."""
    del device, sync
    _current.set(_stream(stream))


def synchronize_stream(stream_or_device: Stream | DeviceLike = None) -> None:
    """Waits for a stream, or the one of a device."""
    if not isinstance(stream_or_device, Stream):
        get_device(stream_or_device)


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
    _event(event)


def get_event_elapsed_time(start_event: Event, end_event: Event, synchronize: bool = True) -> float:
    """Milliseconds from one event to another.

    Raises LaunchError (E213) where one was not recorded, or made without `enable_timing`.
    """
    times = []
    for event in (start_event, end_event):
        if not _event(event).enable_timing or event._at is None:
            why = "was not recorded" if event.enable_timing else "has no time"
            raise fail("E213", f"no time can be taken: an event {why}",
                       help="make events with enable_timing=True, and record them")  # fmt: skip
        times.append(event._at)
    return (times[1] - times[0]) * 1000.0


class ScopedStream:
    """`with ScopedStream(stream):` makes launches go to a stream of its device inside the block.

    Nothing changes for None.
    """

    def __init__(
        self, stream: Stream | None, sync_enter: bool = True, sync_exit: bool = False
    ) -> None:
        del sync_enter, sync_exit
        self.stream = None if stream is None else _stream(stream)
        self._tokens: list[tuple[Token[Stream | None], Token[Device | None]]] = []

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._tokens.append((_current.set(self.stream), set_current(self.stream.device)))
        return self.stream

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            stream, device = self._tokens.pop()
            _current.reset(stream)
            device.var.reset(device)


def _stream(found: Any) -> Stream:
    if not isinstance(found, Stream):
        raise fail("E202", f"a stream is wanted, got {found!r}")
    return found


def _event(found: Any) -> Event:
    if not isinstance(found, Event):
        raise fail("E202", f"an event is wanted, got {found!r}")
    return found
