"""Reruns the program with moved inputs, and compares the change of the loss with the gradient.

For what no replay can follow: values that go through the host, and functions given to
`Tape.record_func`. The inputs of a tape are moved when it first touches them, along a direction
that follows from their order and contents alone, so that a run of the same program moves the same.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from engine.autograd.facts import Broken, Event, FunctionCheck, Moved, Sought
from engine.autograd.watch.alone import alone
from engine.autograd.watch.places import WeakPlaces
from engine.diagnostics.site import Site, call_site
from engine.draws import default_rng
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Hold
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape, Monitor, active_tape
from engine.tape.outline import Outline, outline
from engine.tape.records.record import Record
from engine.tape.restoration import contents

# Steps of the differences, in sizes of the inputs. Values are float32: much smaller ones drown.
STEP = 1e-2
STEPS = (0.0, STEP, -STEP, STEP / 2, -STEP / 2)
# How far derivatives may be apart, of the larger one; and how often their estimated error.
_RTOL = 0.01
_TRUST = 5.0
# The same where something from outside of the tape is seen to have changed, which may matter little
# beside all else that moves.
_SEEN = 0.002
_EPS = 2.0**-23
# How far two runs of a program may be apart that does the same: sums of floats that a GPU makes are
# others each time. By how much they are, what comes of them is uncertain.
_REPEATS = 1e-4
# Below it float32 loses digits, which is none of the derivatives' fault.
_TINY = float(np.finfo(np.float32).tiny)

Array = np.ndarray[Any, Any]


class Touches:
    """The inputs of one tape that require a gradient, in the order in which it touched them."""

    def __init__(self) -> None:
        self._arrays: list[tuple[ref[array], Hold]] = []
        # The same by memory, and what the tape wrote: a long tape has many of both.
        self._known: WeakPlaces[ref[array]] = WeakPlaces()
        self._written: WeakPlaces[None] = WeakPlaces()
        # Of those touched before the tape began, those that it has not read yet.
        self._early: list[tuple[array, Hold]] = []
        # Touched since then by something beside the tape, and not read by it yet.
        self._unread: dict[bytes, int] = {}
        # Of those, which were overwritten meanwhile, by their elements.
        self.late: dict[bytes, int] = {}
        # Those that a launch beside the tape had made, until the tape reads them.
        self._made: dict[bytes, int] = {}
        self.muddled = False

    def begin(self) -> None:
        """The tape begins: what was touched so far was touched beforehand."""
        self._early = [(a, hold) for of, hold in self._arrays if (a := of()) is not None]
        self._unread.clear()

    def _reread(self, a: array) -> None:
        """Looks whether an input still holds what it did when it was touched beforehand."""
        for early in list(self._early):
            if may_meet(early[0], a):
                self._early.remove(early)
                self.muddled |= not a.storage.unchanged(early[1])

    @property
    def waits(self) -> bool:
        """Whether it must see the tape's first reads as they happen."""
        return bool(self._early)

    def touch(self, a: array, aside: bool = False, made: bool = False) -> int | None:
        """Takes note of an array that is about to be read; its number, the first time.

        aside: by something beside the tape. made: by a launch beside it.
        """
        number = self._touch(a, None)
        if not aside:
            self._made.pop(a._packed, None)
            if a._packed in self._unread:
                self._first_read(a, a.storage.hold(a.lo, a.hi))
        elif number is not None:
            self._unread[a._packed] = number
            if made:
                self._made[a._packed] = number
        return number

    def touched(self, a: array, hold: Hold | None) -> None:
        """The same of an array that the tape has read. hold: of what it held then."""
        if self._made:
            self._made.pop(a._packed, None)
        if self._touch(a, hold) is not None:
            self.muddled |= hold is None
        elif a._packed in self._unread:
            self._first_read(a, hold)

    def _first_read(self, a: array, hold: Hold | None) -> None:
        """Looks whether an input holds what it did when something beside the tape read it."""
        number = self._unread.pop(a._packed)
        of, before = self._arrays[number]
        x = contents(a, before)
        y = None if hold is None else contents(a, hold)
        if hold is None or x is None or y is None:
            self.muddled = True
        elif x.tobytes() != y.tobytes():
            self.late[a._packed] = number
            self._arrays[number] = of, hold

    def _touch(self, a: array, hold: Hold | None) -> int | None:
        if not a._flag or not a._info.floating or not a.requires_grad:
            return None
        if self.computed(a) or a._info.numpy.names or not a.size:
            return None
        if self.has(a):
            if self._early:
                self._reread(a)
            return None
        self._arrays.append((ref(a), hold or a.storage.hold(a.lo, a.hi)))
        self._known.at(a.storage).put(a, ref(a))
        return len(self._arrays) - 1

    @property
    def held_back(self) -> tuple[int, ...]:
        """Inputs that only what the tape reads of them counts of, by their number.

        The host had overwritten them before; or a launch beside the tape made them, and the tape
        never reads them, nor starts from them: data, of which nobody wants a gradient.
        """
        return tuple(sorted({*self.late.values(), *self._made.values()}))

    def seeded(self, a: array) -> None:
        """A backward pass has a cotangent for an array: it is no mere data."""
        self._made.pop(a._packed, None)

    def has(self, a: array) -> bool:
        """Whether an array is one of the inputs."""
        known = self._known.get(a.storage)
        return known is not None and any(b() is not None for b in known.meeting(a))

    def computed(self, a: array) -> bool:
        """Whether the tape has written to an array."""
        return self._written.meets(a)

    def recorded(self, record: Record) -> None:
        """The tape got a record."""
        loose = (a for a in record.declared if not self.has(a))
        for a in (*record.written, *loose):
            self._written.at(a.storage).put(a, None)

    def derivative(self) -> float | None:
        """What the gradients say of the direction.

        None where what an input held is lost, or was something else when it was touched first.
        Inputs that no run moves, as the tape never reads them, are no part of the direction.
        """
        if self.muddled:
            return None
        total = 0.0
        still = frozenset(self._made.values())
        for number, (of, hold) in enumerate(self._arrays):
            a = of()
            if a is None or number in still:
                continue  # of one that is gone, nobody can ask for the gradient any more
            held = None if hold.unseen and hold.storage is not None else contents(a, hold)
            if held is None:
                return None
            grad = a.existing_grad
            if grad is not None:
                d = direction(held, number)
                total += float(np.sum(grad._host().astype(np.float64) * d))
        return total


def direction(held: Array, number: int) -> Array:
    """A random displacement of an array, of its numbers' own sizes.

    Follows from what the array holds and from its number among the inputs.
    """
    x = held.astype(np.float64)
    finite = x[np.isfinite(x)]
    typical = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    size = np.maximum(np.abs(x), 0.1 * typical if typical else 1.0)
    v = default_rng([0x5EED, number]).standard_normal(x.shape)
    return np.where(np.isfinite(x), v * size, 0.0)


def value_of(run: Pass) -> float:
    """What a backward pass starts from, as one number: the cotangents times the contents."""
    total = 0.0
    with np.errstate(all="ignore"):
        for a, cotangent in run.seeds:
            total += float(np.sum(a._host().astype(np.float64) * np.asarray(cotangent)))
    return total


def _digest(run: Pass) -> str:
    """Of the cotangents: they may depend on what the inputs are."""
    digest = hashlib.blake2b(digest_size=16)
    for _, cotangent in run.seeds:
        digest.update(np.asarray(cotangent).tobytes())
    return digest.hexdigest()


class Enough(BaseException):
    """Ends the program: what was wanted of it is known."""


class Mover(Monitor):
    """Moves the inputs of one tape by a step, and ends the program at its first backward pass."""

    def __init__(self, tape: int, step: float, late: Collection[int] = ()) -> None:
        self._tape = tape
        self._step = step
        # Inputs that are moved when the tape reads them, whatever reads them before.
        self._late = late
        self._held_back: dict[bytes, int] = {}
        self._touches = Touches()
        self._events: list[tuple[Event, Outline | None]] = []
        self._declared: list[Outline] = []
        self._meant: list[Outline] = []
        self._begun = False  # some tape has recorded something
        self._last = -1  # the one that did last, unless it has run backward
        # Threads of the program while tapes were recorded: what is alive now is none of its own.
        self._none = threading.active_count()
        self._most = 0
        self._in_main = self._in_others = False
        self.result: Moved | None = None

    def _count_threads(self) -> None:
        alive = threading.active_count() - self._none
        self._most = max(self._most, alive)
        main = threading.current_thread() is threading.main_thread()
        self._in_main |= main and alive > 0
        self._in_others |= not main

    @property
    def _threads(self) -> bool:
        """Whether several threads may have recorded tapes at the same time."""
        return self._in_others and (self._most > 1 or self._in_main)

    @alone
    def recording(self, tape: CapturedTape, reads: Sequence[array], values: Sequence[Any]) -> None:
        self._begun, self._last = True, tape.index
        self._count_threads()
        if tape.index != self._tape:
            return
        site = call_site(2)
        into = values[0] if len(values) == 2 and len(reads) == 1 and reads[0] is values[1] else None
        for number, v in enumerate(values):
            if not isinstance(v, array):
                self._note(number, site, repr(v).encode())
            elif any(v is a for a in reads) and not self._touches.computed(v):
                if not self._touches.has(v) or v._packed in self._held_back:  # else it was moved
                    self._note(number, site, v._host().tobytes(), v, into)
        for a in reads:
            self._move(a)

    def _move(self, a: array, aside: bool = False) -> None:
        number = self._touches.touch(a, aside)
        if number is not None and aside and number in self._late:
            self._held_back[a._packed] = number
            return
        if not aside and a._packed in self._held_back:
            number = self._held_back.pop(a._packed)
        if number is not None and self._step:
            d = direction(a._host(), number)
            a.storage.before_write(a.lo, a.hi)
            with np.errstate(all="ignore"):
                a._put((a._host().astype(np.float64) + self._step * d).astype(a._info.numpy))

    def _note(
        self, number: int, site: Site | None, said: bytes, a: array | None = None,
        into: array | None = None,
    ) -> None:  # fmt: skip
        """Something came from outside. into: where a copy puts it."""
        digest = hashlib.blake2b(said, digest_size=16).hexdigest()
        meant = a is not None and any(may_meet(a, m) for m in self._meant)
        event = Event(number, None if site is None else site.span, digest, meant)
        target = into if isinstance(into, array) else a
        self._events.append((event, None if target is None else outline(target)))

    @alone
    def recorded(self, tape: CapturedTape, record: Record) -> None:
        self._begun, self._last = True, tape.index
        if tape.index == self._tape:
            self._touches.recorded(record)
            self._declared += map(outline, record.declared)

    def _concerns(self) -> bool:
        """Whether what happens off the tapes now belongs to the tape: see `Witness._current`."""
        tape = active_tape(self)
        if tape is not None:
            self._begun = True
            return tape.index == self._tape
        return self._last == self._tape if self._begun else self._tape == 0

    @alone
    def lent(self, a: array) -> None:
        if self._concerns():
            self._move(a, True)

    @alone
    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        if meant:
            self._meant.append(outline(dest))

    @alone
    def began(self, tape: CapturedTape, run: Pass) -> Callable[[int], None] | None:
        if tape.index == self._tape:
            # What a recorded function answers for came from nowhere else.
            events = tuple(
                e for e, target in self._events
                if target is None or not any(may_meet(target, o) for o in self._declared)
            )  # fmt: skip
            self.result = Moved(self._step, value_of(run), events, _digest(run), self._threads)
            raise Enough
        if tape.index == self._last:
            self._last = -1
        return None


def repeats(sought: Sought, still: Moved) -> bool:
    """Whether a run of the program that moves nothing does what the first one did."""
    return abs(still.value - sought.value) <= _REPEATS * abs(sought.value)


def decided(sought: Sought, runs: Mapping[float, Moved]) -> bool:
    """Whether the runs so far say already that there is nothing to be found, or to be known."""
    still, moved = runs.get(0.0), runs.get(STEP)
    if still is not None and not repeats(sought, still):
        return True
    if still is not None and moved is not None and still.seeds != moved.seeds:
        return True  # the values are sums with other weights
    if still is None or moved is None or sought.functions or sought.loose:
        return False
    return _edge(still.events, moved.events) is None


def judged(sought: Sought, runs: Mapping[float, Moved]) -> Broken | FunctionCheck | None:
    """What the runs say: a broken way, a recorded function that is right or wrong, or nothing."""
    if decided(sought, runs) or any(step not in runs for step in STEPS):
        return None
    still = runs[0.0]
    one = (runs[STEP].value - runs[-STEP].value) / (2 * STEP)
    half = (runs[STEP / 2].value - runs[-STEP / 2].value) / STEP
    best = (4 * half - one) / 3
    noise = max(_EPS * abs(still.value), abs(still.value - sought.value))
    error = abs(best - half) + 4 * noise / STEP
    off, size = abs(best - sought.derivative), max(abs(best), abs(sought.derivative))
    allowed = max(_RTOL * size, _TRUST * error)
    wrong = off > allowed
    if not np.isfinite(off) or size < _TINY:
        return None
    if off > max(_SEEN * size, _TRUST * error):
        edge = _edge(still.events, runs[STEP].events)
        if edge is not None:
            reads = sought.reads or sought.seen
            site = reads[-1] if reads else edge.site
            return Broken("host", "", site, sought.inputs, to=edge.site)
        if wrong and sought.loose and sought.reads and not sought.functions:
            return Broken("host", "", sought.reads[-1], sought.inputs)
    if not sought.functions or _constants(still.events, runs[STEP].events):
        return None
    sure = error <= _RTOL * size
    if wrong or sure:
        tolerance = allowed / max(abs(best), _TINY)
        return FunctionCheck(sought.functions, wrong, sought.derivative, best, float(tolerance))
    return None


def _edge(still: Sequence[Event], moved: Sequence[Event]) -> Event | None:
    """The first thing that came from outside of the tape and has changed."""
    for a, b in zip(still, moved, strict=False):
        if (a.argument, a.site) != (b.argument, b.site):
            return None  # it went another way
        if a.digest != b.digest and not b.meant:
            return b
    return None


def _constants(still: Sequence[Event], moved: Sequence[Event]) -> bool:
    """Whether a constant that is meant to be one has changed: the loss moves with it, too."""
    return any(a.digest != b.digest and b.meant for a, b in zip(still, moved, strict=False))
