"""Checks a tape as a whole, among similar tapes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from engine.autograd.launch.experience import Experience
from engine.autograd.results import LaunchResult, WholeResult
from engine.autograd.tape.end_to_end import all_right, check_end_to_end
from engine.autograd.tape.options import Options
from engine.autograd.tape.recorded_tape import RecordedTape, recorded_tape
from engine.tape.capture import CapturedTape
from engine.tape.tape import Tape


class WholeCheck:
    """The check of a tape as a whole, with what is known of tapes like it.

    It may be made before its launches are checked: in the hope that all of them are right.
    """

    def __init__(self, tape: Tape | CapturedTape, options: Options) -> None:
        self._tape, self._options = tape, options
        self._experience = options.experience or Experience()
        self.replayed = recorded_tape(tape)
        self._kind = _kind_of(tape, self.replayed)
        self._number = self._experience.count(self._kind)
        self._known = self._experience.knows_whole(self._kind)
        self._before = self._experience.last_whole(self._kind)
        self._hoped: WholeResult | None = None
        self._counted = False

    def hope(self) -> None:
        """Makes it before the checks of launches."""
        self._hoped = self._made(None)

    @property
    def answers(self) -> bool:
        """Whether it will answer for launches that were left to it, if no other is wrong."""
        hoped = self._hoped
        return hoped is not None and (hoped.verdict == "pass" or hoped.parts_right)

    def result(self, launches: Sequence[LaunchResult]) -> WholeResult:
        """The result. launches: what their checks found."""
        if self._hoped is not None and all_right(launches):
            return self._hoped
        return self._made(launches)

    def _made(self, launches: Sequence[LaunchResult] | None) -> WholeResult:
        tape, options = self._tape, self._options
        found = check_end_to_end(
            tape, options.tolerance, launches, options.seed, self._known, self._before, self._number
        )
        self._experience.add_whole(self._kind, found, again=self._counted)
        self._counted = True
        return found


def _kind_of(tape: Tape | CapturedTape, replayed: RecordedTape) -> Hashable:
    """Equal for tapes of equal launches, whose arrays go from one to the other in the same way.

    Also equal: of what kinds the facts are that were seen of them, and what their backward passes
    found overwritten.
    """
    facts = [] if isinstance(tape, Tape) else tape.facts
    seen = tuple(sorted(type(f).__name__ for f in facts)), replayed.restored, replayed.ran
    found = tuple(map(tuple, (replayed.changed, replayed.read)))
    numbers: dict[object, int] = {}

    def number(a: Any) -> object:
        key = (a.ptr, tuple(a.shape), tuple(a.strides))
        return numbers.setdefault(key, len(numbers)), key[1], bool(a.requires_grad)

    operations = tuple(r.alike(number) for r in replayed.records)
    return operations, tuple(map(number, replayed.seeded)), seen, found
