"""Finds reads of gradients that are None, because their array has no requires_grad."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from types import CodeType, FrameType
from weakref import ref

from engine.autograd.facts import Ungraded
from engine.autograd.watch.creations import Creations
from engine.autograd.watch.gradient_reads import GradientRead, read_at, turns_off_gradients
from engine.classes import dataclass
from engine.diagnostics.callers import call_at, copied
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.storage import Storage
from engine.tape.capture import CapturedTape
from engine.tape.records import LaunchRecord

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_TRIES = 8  # reads at one place that are looked up among the tapes
_PLACES = 64  # that are told


@dataclass(slots=True)
class _Place:
    """A place in a program that reads such a gradient. memory: of the arrays that it read."""

    read: GradientRead
    site: Site
    fact: Ungraded
    tries: int = 0
    memory: list[ref[Storage]] = field(default_factory=list)
    tape: CapturedTape | None = None


class Asked:
    """The gradients that a program asked for in vain. Keeps no array alive."""

    def __init__(self, creations: Creations) -> None:
        self._creations = creations
        # None for places where the program expects None.
        self._places: dict[tuple[CodeType, int], _Place | None] = {}
        self._last: _Place | None = None

    def asked(self, a: array, frame: FrameType, tapes: Sequence[CapturedTape]) -> None:
        """A frame asked for a gradient that is None. tapes: of the program."""
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
            for tape in reversed(tapes):
                if tape.passes and self._found(place, tape):
                    return

    def began(self, tape: CapturedTape) -> None:
        """A tape begins a backward pass: it may have inputs of which the gradient was read."""
        for place in self._places.values():
            if place is not None and place.tape is None:
                self._found(place, tape)

    @property
    def facts(self) -> Sequence[Ungraded]:
        """All of them, on tapes or not, the one that was read last at the end."""
        others = (p for p in self._places.values() if p is not self._last)
        return [p.fact for p in (*others, self._last) if p is not None]

    def of_tapes(self) -> Iterator[tuple[CapturedTape, Ungraded]]:
        """Those that are used where they are read, of inputs of tapes that ran backward."""
        for place in self._places.values():
            if place is not None and place.tape is not None:
                yield place.tape, place.fact

    def _place(self, a: array, frame: FrameType) -> _Place | None:
        code = frame.f_code
        if len(self._places) >= _PLACES or _INSTALLED.match(code.co_filename):
            return None
        site = Site(code, frame.f_lasti, frame.f_lineno)
        read = read_at(site)
        if read is None:
            return None
        made = self._creations.of(a)
        if _is_meant(made) or (made is None and turns_off_gradients(code.co_filename)):
            return None
        span = None if made is None else made.span
        name = (copied(made)[0] if read.given else "") or read.array
        return _Place(read, site, Ungraded(read.text, name, site.span, span))

    def _found(self, place: _Place, tape: CapturedTape) -> bool:
        """Whether a launch of a tape has such an array as an input, and nothing on it wrote it."""
        alive = [s for r in place.memory if (s := r()) is not None]
        if not alive:
            return False
        number, found = -1, None
        for r in tape.records:
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
