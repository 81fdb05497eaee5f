"""Captured sequences as graphs of the device, which runs them without Python.

What Python would do at each run has to come to the same: only launches, copies and fills of arrays
of one device are taken, and what tapes do. Anything that the host has to read, write or decide
leaves a sequence to Python, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from engine import config
from engine.compile.backend import NotCaptured
from engine.runtime import recording
from engine.runtime.deferred import DeferredLaunch, DeferredWrite
from engine.runtime.device import others
from engine.runtime.faults import watchers
from engine.runtime.launch_errors import fail
from engine.runtime.storage import Storage, watching

if TYPE_CHECKING:
    from engine.runtime.device import Device
    from engine.runtime.recording import Recorder

_MODULES = ("engine.runtime.launch", "engine.runtime.transfer", "engine.tape.tape")
_AFTER = 1  # runs by Python that come first: they compile, and make gradients


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


def check_recorded(tape: Any) -> None:
    """Raises LaunchError (E213) for a backward pass of such a tape."""
    if tape in bypassed and not recording.capturing.get():
        raise fail("E213", "what the tape recorded was run by the device, without Python",
                   help="capture tape.backward, too, or set engine.config.device_graphs to False"
                   )  # fmt: skip


def _recorders(
    operations: Sequence[tuple[Callable[[], object], Recorder | None]],
) -> set[Recorder]:
    """The tapes that operations are recorded on."""
    return {t for _, t in operations if t is not None}


class DeviceGraph:
    """A sequence of operations on its way to the device. why: what leaves it to Python."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.why = "" if device.backend.streams is not None else "it is on the CPU"
        self._runs = 0
        self._launch: Callable[[], None] | None = None
        self._written: list[Storage] = []
        self._tapes: list[tuple[Any, int]] = []

    def run(
        self, operations: Sequence[tuple[Callable[[], object], Recorder | None]],
        by_python: Callable[[], None],
    ) -> None:  # fmt: skip
        """Runs it, by Python as long as it has to be.

        operations: each with the tape that it is recorded on. The records of such tapes are not
            those of the last run where the device has run it.
        """
        if self.why or not self._may():
            if others and bypassed:  # by other sequences
                bypassed.difference_update(_recorders(operations))
            by_python()
            return
        if self._launch is None:
            if self._runs < _AFTER:
                self._runs += 1
                by_python()
                return
            if not self._capture(operations, by_python):
                by_python()
                return
            bypassed.update(_recorders(operations))
            self._tapes = [(t, len(t.records)) for t, _ in self._tapes]
        if any(len(t.records) != n for t, n in self._tapes):
            bypassed.difference_update(_recorders(operations))
            by_python()
            return
        for storage in self._written:
            storage.before_write(storage.lo, storage.lo + storage.nbytes)
        assert self._launch is not None
        self._launch()

    def _may(self) -> bool:
        """Whether nobody listens to what runs."""
        return config.device_graphs and not (
            recording.observers or recording.bystanders or config.print_launches
            or config.verify_fp or watching.get() is not None or recording.capturing.get()
            or watchers
        )  # fmt: skip

    def _capture(
        self, operations: Sequence[tuple[Callable[[], object], Recorder | None]],
        by_python: Callable[[], None],
    ) -> bool:  # fmt: skip
        written: dict[int, Storage] = {}

        def write(storage: Storage) -> None:
            if storage.device != self.device:
                raise NotCaptured(f"it writes an array on {storage.device}")
            written[id(storage)] = storage

        begun: set[int] = set()
        for operation, recorder in operations:
            f = _function(operation)
            if f.__module__ not in _MODULES or "record_func" in f.__qualname__:
                self.why = f"{f.__qualname__} is for Python to run"
                return False
            tape = _tape_of(operation)
            if hasattr(tape, "records"):
                self._tapes.append((tape, 0))
                begun |= {id(tape)} if f.__name__ == "backward" else set()
            if recorder is not None and id(recorder) not in begun:
                # What its records of the last run have read, nobody will ask for.
                begun.add(id(recorder))
                for record in recorder.records:  # type: ignore[attr-defined]
                    if hasattr(record, "held"):
                        record.held = ()
        streams = self.device.backend.streams
        assert streams is not None
        token, watch = recording.capturing.set(True), watching.set(write)
        try:
            self._launch = streams.captured(by_python)
        except NotCaptured as e:
            self.why = str(e)
        finally:
            watching.reset(watch)
            recording.capturing.reset(token)
        self._written = list(written.values())
        return not self.why
