"""The interface of detectors."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.events import Optimized
from engine.runtime.plan_parts import BoundLaunch
from engine.runtime.storage import Storage
from engine.tape.backward import Pass
from engine.tape.records.record import Record

if TYPE_CHECKING:
    from engine.autograd.watch.followed import Followed
    from engine.autograd.watch.program import Program


class Detector:
    """Looks for faults of one kind while a program runs, and tells tapes of them as facts.

    Each public method is an event and does nothing: a detector overrides those that it needs. The
    monitor calls one method at a time, of whatever thread. It leaves out what happens during a
    backward pass, but for the events of the pass itself, `lent` and `asked`.
    """

    def __init__(self, program: Program) -> None:
        self.program = program

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, value in vars(cls).items():  # the monitor would never call another one
            if callable(value) and not name.startswith("_") and name not in EVENTS:
                raise TypeError(f"{cls.__name__}.{name} is no event of detectors")

    # ---- arrays

    def made(self, a: array) -> None:
        """The program has made an array."""

    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array]) -> None:
        """Arrays are about to be read; see `Observer.reading`."""

    def lent(self, a: array, site: Site | None) -> None:
        """The host is about to read an array, in a backward pass or not. site: its call."""

    def asked(self, a: array, frame: FrameType) -> None:
        """A frame asks for the gradient of an array that requires none, in a pass or not."""

    def writing(self, memory: Storage, lo: int, hi: int) -> None:
        """Bytes (by address) are about to change."""

    def optimized(self, steps: Sequence[Optimized]) -> None:
        """An optimizer of another framework has made a step."""

    # ---- beside the tapes

    def unrecorded(self, launch: BoundLaunch) -> None:
        """A launch is about to run that no tape records."""

    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        """Elements are about to be copied; see `Observer.copied`."""

    def filled(self, dest: array) -> None:
        """All elements of an array are about to get one value."""

    # ---- tapes

    def first_read(self, tape: Followed, a: array) -> None:
        """A tape is about to read an array for the first time, and it may go on from others."""

    def recorded(self, tape: Followed, record: Record) -> None:
        """A tape got a record, which has run."""

    def forgetting(self, tape: Followed, records: Sequence[Record]) -> None:
        """A tape is about to forget its records."""

    # ---- backward passes

    def began(self, tape: Followed, run: Pass) -> None:
        """A backward pass begins."""

    def before(self, tape: Followed, number: int) -> None:
        """The record of that number is about to run backward."""

    def reading_in_pass(self, tape: Followed, arrays: Sequence[array]) -> None:
        """Arrays are about to be read while the pass runs."""

    def ended(self, tape: Followed, run: Pass) -> None:
        """The pass came to its end."""

    def pass_over(self, tape: Followed, done: bool) -> None:
        """The pass is over, by an exception unless done: let go of its arrays.

        It comes after `ended` of all detectors. `tape.run` is None if memory ran out as it began.
        """

    # ---- the end

    def closed(self) -> None:
        """Nothing more will happen."""


EVENTS = tuple(name for name in vars(Detector) if not name.startswith("_"))
