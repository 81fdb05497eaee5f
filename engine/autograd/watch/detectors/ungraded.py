"""Finds reads of gradients that are None, because their array has no requires_grad."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import field, replace
from types import CodeType, FrameType
from weakref import ref

from engine.autograd.facts import Fact
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.gradient_reads import GradientRead, read_at, turns_off_gradients
from engine.autograd.watch.program import Program
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.diagnostics.callers import call_at, copied
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.storage import Storage
from engine.tape.backward import Pass
from engine.tape.records import LaunchRecord

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_TRIES = 8  # reads at one place that are looked up among the tapes
_PLACES = 64  # that are told


@dataclass(frozen=True, slots=True)
class Ungraded(Fact):
    """An array without requires_grad, of which a program read the gradient, and got None.

    text: what it read, as `k.grad`; array: what it calls the array, where it made it or, if that
    has no name, where it read. site: where it read. made:
    where the array was made, None where that is not known. kernel, argument: of a launch on a tape
    that ran backward and has the array as an input; launch: its number, -1 where there is none.
    """

    text: str
    array: str
    site: Span
    made: Span | None = None
    kernel: str = ""
    argument: str = ""
    launch: int = -1


@dataclass(slots=True)
class _Place:
    """A place in a program that reads such a gradient. memory: of the arrays that it read."""

    read: GradientRead
    site: Site
    fact: Ungraded
    tries: int = 0
    memory: list[ref[Storage]] = field(default_factory=list)
    tape: Followed | None = None


class UngradedReads(Detector):
    """Tells of the gradients that a program asked for in vain. Keeps no array alive."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        # None for places where the program expects None.
        self._places: dict[tuple[CodeType, int], _Place | None] = {}
        self._last: _Place | None = None

    def asked(self, a: array, frame: FrameType) -> None:
        key = frame.f_code, frame.f_lasti
        if key not in self._places:
            self._places[key] = self._place(a, frame)
        place = self._places[key]
        if place is None:
            return
        self._last = place
        if place.read.used and place.tape is None and place.tries < _TRIES:
            place.tries += 1
            place.memory.append(ref(a.storage))
            for tape in reversed(self.program.tapes.values()):
                if tape.tape.passes and self._found(place, tape):
                    return

    def began(self, tape: Followed, run: Pass) -> None:
        for place in self._places.values():
            if place is not None and place.tape is None:
                self._found(place, tape)

    def closed(self) -> None:
        others = (p for p in self._places.values() if p is not self._last)
        for place in (*others, self._last):  # the one that was read last at the end
            if place is not None:
                self.program.facts.append(place.fact)
        for place in self._places.values():
            if place is not None and place.tape is not None:
                place.tape.tell(place.fact)

    def _place(self, a: array, frame: FrameType) -> _Place | None:
        code = frame.f_code
        if len(self._places) >= _PLACES or _INSTALLED.match(code.co_filename):
            return None
        site = Site(code, frame.f_lasti, frame.f_lineno)
        read = read_at(site)
        if read is None:
            return None
        made = self.program.creations.of(a)
        if _is_meant(made) or (made is None and turns_off_gradients(code.co_filename)):
            return None
        span = None if made is None else made.span
        name = (copied(made)[0] if read.given else "") or read.array
        return _Place(read, site, Ungraded(read.text, name, site.span, span))

    def _found(self, place: _Place, tape: Followed) -> bool:
        """Whether a launch of a tape has such an array as an input, and nothing on it wrote it."""
        alive = [s for r in place.memory if (s := r()) is not None]
        if not alive:
            return False
        number, found = -1, None
        for r in tape.tape.records:
            if any(_lies_in(o, alive) for o in r.written):
                return False
            record = r.launch
            if record is not None:
                number += 1
                if found is None:
                    index = _reads(record, alive)
                    if index is not None:
                        found = (record.name, record.plan.params[index].name, number)
        if found is None:
            return False
        kernel, argument, launch = found
        place.fact = replace(place.fact, kernel=kernel, argument=argument, launch=launch)
        place.tape = tape
        place.memory.clear()
        return True


def _reads(r: LaunchRecord, memory: Sequence[Storage]) -> int | None:
    """The parameter of a launch by which it reads an array in some memory."""
    return next((i for i in r.plan.inputs if _lies_in(r.values[i], memory)), None)


def _lies_in(a: object, memory: Sequence[Storage]) -> bool:
    """Whether an array, of which a record has the outline, is alive and lies in some memory."""
    alive = getattr(a, "_array", None)
    found = None if alive is None else alive()
    return found is not None and any(found.storage is s for s in memory)


def _is_meant(made: Site | None) -> bool:
    """Whether the call that made an array says `requires_grad=False`."""
    call = call_at(made)
    return call is not None and any(
        k.arg == "requires_grad" and isinstance(k.value, ast.Constant) and k.value.value is False
        for k in call.keywords
    )
