"""Captured sequences as graphs of the device, which runs them without Python.

What Python would do at each run has to come to the same: only launches, copies and fills of arrays
of one device are taken, and what tapes do. Anything that the host has to read, write or decide
leaves a sequence to Python, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from engine import config
from engine.compile.backend import NotCaptured
from engine.runtime import events
from engine.runtime.deferred import DeferredLaunch, DeferredWrite, Noted
from engine.runtime.device import others
from engine.runtime.launch_errors import fail
from engine.runtime.storage import Storage

if TYPE_CHECKING:
    from engine.runtime.device import Device

_MODULES = (
    "engine.runtime.adjoint_launch", "engine.runtime.launch", "engine.runtime.transfer",
    "engine.tape.tape",
)  # fmt: skip
_AFTER = 1  # runs by Python that come first: they compile, and make gradients
_MISSES = 2  # runs in a row that found other tapes than were captured, and were left to Python


def _function(operation: Callable[[], object]) -> Any:
    """The function that an operation calls."""
    found: Any = operation
    while isinstance(found, (partial, DeferredLaunch, DeferredWrite)):
        found = found.func if isinstance(found, partial) else found.run
    return getattr(found, "__func__", found)


def _tape_of(operation: Callable[[], object]) -> Any:
    """The tape that an operation is of, as methods are; None of others."""
    found: Any = operation
    while isinstance(found, partial):
        found = found.func
    return getattr(found, "__self__", None)


# Tapes whose records are of an earlier run, as the device has run the last one.
bypassed: WeakSet[Any] = WeakSet()
# Tapes whose backward pass the device has captured by itself: it needs no other records.
_goes_back: WeakSet[Any] = WeakSet()


class _Capture(events.Observer):
    """Runs operations for a device to capture them. written: memory that they write."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.written: dict[int, Storage] = {}

    def writing(self, memory: Storage, lo: int, hi: int) -> None:
        if memory.device != self._device:
            raise NotCaptured(f"it writes an array on {memory.device}")
        self.written[id(memory)] = memory

    def needs_host(self, what: str) -> None:
        raise NotCaptured(what)


def _is_capturing() -> bool:
    return any(o.__class__ is _Capture for o in events.here.get())


def check_recorded(tape: Any) -> None:
    """Raises LaunchError (E213) for a backward pass of such a tape."""
    if tape in bypassed and not _is_capturing():
        raise fail("E213", "the device ran the tape's launches without Python",
                   help="capture tape.backward, too, or set engine.config.device_graphs to False"
                   )  # fmt: skip


Gradient = tuple[Any, bool, bool, Any]


class _Tapes:
    """What a sequence does with tapes.

    all_of_them: those that it records on, or calls. recorders: the former. halves: of these, those
    that it does not run backward. apart: those that it runs backward, and does not record before
    that. turned: whether it records on one of them later.
    """

    def __init__(self, operations: Sequence[Noted]) -> None:
        self.recorders: set[Any] = set()
        self.halves: set[Any] = set()
        self.apart: set[Any] = set()
        self.turned = False
        self.all_of_them: dict[int, Any] = {}
        for operation, recorder in operations:
            tape = _tape_of(operation)
            if hasattr(tape, "records"):
                self.all_of_them[id(tape)] = tape
                if _function(operation).__name__ == "backward":
                    if tape not in self.recorders:
                        self.apart.add(tape)
                    self.halves.discard(tape)
            if recorder is not None:
                self.all_of_them[id(recorder)] = recorder
                self.recorders.add(recorder)
                self.halves.add(recorder)
                self.turned = self.turned or recorder in self.apart


class _Seen:
    """What a tape had when a sequence was captured."""

    def __init__(self, tape: Any) -> None:
        self._tape = tape
        self._records = list(tape.records)
        found = {id(a): a for r in self._records for a in r.arrays}
        self._gradients = [_gradient(a) for a in found.values()]

    def is_there(self) -> bool:
        """Whether it has the same records, and their arrays have the same gradients."""
        now = self._tape.records
        return (
            len(now) == len(self._records) and all(map(is_, now, self._records))
            and all(_is_same(known, _gradient(known[0])) for known in self._gradients)
        )  # fmt: skip


def _gradient(a: Any) -> Gradient:
    return a, a.requires_grad, a.retain_grad, a.existing_grad


def _is_same(known: Gradient, now: Gradient) -> bool:
    g, h = known[3], now[3]
    if known[1:3] != now[1:3] or (g is None) is not (h is None):
        return False
    return g is h or all(getattr(g, k) == getattr(h, k) for k in ("storage", "_ptr", "strides"))


class DeviceGraph:
    """A sequence of operations on its way to the device. why: what leaves it to Python for good."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.why = "" if device.backend.streams is not None else "it is on the CPU"
        self._runs = 0
        self._misses = 0
        self._launch: Callable[[], None] | None = None
        self._written: list[Storage] = []
        self._tapes: _Tapes | None = None
        self._seen: list[_Seen] = []

    @property
    def left(self) -> str:
        """What leaves it to Python now; empty where the device runs it, or will from now on."""
        if not self.why and self._tapes is not None and not self._goes_back():
            return "the backward pass of its tape was not captured"
        return self.why

    def run(self, operations: Sequence[Noted], by_python: Callable[[], None]) -> None:
        """Runs it, by Python as long as it has to be.

        operations: each with the tape that it is recorded on. The records of such tapes are not
            those of the last run where the device has run it.
        """
        if not self._begins(operations):
            if others and bypassed and self._tapes is not None:  # by other sequences
                bypassed.difference_update(self._tapes.recorders)
            by_python()
            return
        tapes = self._tapes
        assert tapes is not None
        if self._launch is None:
            if not self._capture(operations, by_python):
                _goes_back.difference_update(tapes.apart)
                bypassed.difference_update(tapes.recorders)
                by_python()
                return
            _goes_back.update(tapes.apart)
            bypassed.update(tapes.recorders)
            self._seen = [_Seen(t) for t in tapes.all_of_them.values()]
        for storage in self._written:
            storage.before_write(storage.lo, storage.lo + storage.nbytes)
        assert self._launch is not None
        self._launch()

    def _begins(self, operations: Sequence[Noted]) -> bool:
        """Whether the device runs it now: what it has captured, or what it captures now."""
        if self.why:
            return False
        if self._tapes is None:
            tapes = self._tapes = _Tapes(operations)
            if tapes.turned:
                self.why = "it runs a tape backward, and records on it after that"
                return False
        if not self._may():
            return False
        if self._launch is None:
            self._runs += 1
            return self._runs > _AFTER and self._goes_back()
        if all(seen.is_there() for seen in self._seen):
            self._misses = 0
            return self._goes_back()
        # Python would use other records and gradients than are captured.
        self._launch = None
        if not bypassed.isdisjoint(self._tapes.apart):
            return True  # captures those that the device has filled: Python knows them not
        self._misses += 1
        if self._misses > _MISSES:
            self.why = "tapes have other records or gradients each time"
        return False

    def _goes_back(self) -> bool:
        """Whether nobody will ask for the records of its tapes that the device has."""
        assert self._tapes is not None
        return _goes_back.issuperset(self._tapes.halves)

    def _may(self) -> bool:
        """Whether nobody listens to what runs."""
        return config.device_graphs and not (
            events.everywhere or config.print_launches or config.verify_fp
            or events.are_writes_observed()
        )  # fmt: skip

    def _capture(self, operations: Sequence[Noted], by_python: Callable[[], None]) -> bool:
        begun: set[int] = set()
        for operation, recorder in operations:
            f = _function(operation)
            if f.__module__ not in _MODULES or "record_func" in f.__qualname__:
                self.why = f"{f.__qualname__} must run in Python"
                return False
            if f.__name__ == "backward":
                begun.add(id(_tape_of(operation)))
            if recorder is not None and id(recorder) not in begun:
                # What its records of the last run have read, nobody will ask for.
                begun.add(id(recorder))
                for record in recorder.records:  # type: ignore[attr-defined]
                    record.let_go()
        streams = self.device.backend.streams
        assert streams is not None
        capture = _Capture(self.device)
        token = events.with_observer(capture)
        try:
            self._launch = streams.captured(by_python)
        except NotCaptured as e:
            self.why = str(e)
        finally:
            events.restore(token)
        self._written = list(capture.written.values())
        return not self.why
