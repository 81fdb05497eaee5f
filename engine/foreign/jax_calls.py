"""Finds calls of functions with rules of JAX while a program runs."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from engine.foreign.collection import Collection
from engine.foreign.jax_functions import rule_name, rule_place
from engine.foreign.jax_hooks import JaxHooks
from engine.foreign.jax_kernels import KernelCall
from engine.foreign.jax_leaves import first_line
from engine.foreign.jax_notes import Call
from engine.foreign.jax_rules import RuleOperation
from engine.foreign.jax_runner import Runner
from engine.foreign.jax_samples import made_up
from engine.foreign.jax_values import values_of
from engine.foreign.operation import OperationFailed
from engine.foreign.seams import Part

COMPLEX = "derivatives by complex numbers, and of them, are not checked"
UNSEEN = "it was traced, but its values could not be seen"
MADE_UP = (
    UNSEEN + " (several devices, or compiled ahead of time): it was checked at random values "
    "between 0.1 and 0.9"
)
MOST = 3  # values of one call in a traced program that are looked at


class Watcher:
    """Fills a collection with the calls of rules that a program makes."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.hooks = JaxHooks(collection)
        self._runners: dict[object, Runner] = {}

    def parts(self, module: ModuleType) -> Mapping[str, Part]:
        """What is to be watched. See `engine.foreign.seams`."""
        return self.hooks.parts()

    def remove(self) -> None:
        """Ends it, and finds out at which values the rules ran."""
        self.hooks.remove()
        notes = self.hooks.notes
        seen = set[int]()
        open_: list[tuple[int, Call]] = []
        with self.hooks.pause(), contextlib.redirect_stdout(io.StringIO()):
            for number, call in notes.calls:
                found = []
                with contextlib.suppress(Exception):  # another version of JAX
                    found = values_of(call, notes, MOST)
                if not found:
                    open_.append((number, call))
                for k, (values, cells) in enumerate(found):
                    if self._add(number if k == 0 else self._next(), call, values, cells):
                        seen.add(id(call.rule))
            for number, call in open_:
                if id(call.rule) not in seen and self._make_up(number, call):
                    seen.add(id(call.rule))
        notes.calls.clear()
        notes.links.clear()
        notes.wanted.clear()

    def _add(self, number: int, call: Call, values: list[Any], cells: list[Any]) -> bool:
        """Adds an operation. Says whether it could be made."""
        if call.launched is not None:
            self.collection.add(number, KernelCall(call, call.launched, values))
            return True
        name = rule_name(call.rule)
        try:
            runner = Runner(self.hooks, call, values, cells)
            runner = self._runners.setdefault(runner.form, runner)
            asked = self.hooks.notes.asked_of(rule_place(call.rule), len(call.leaves))
            operation = RuleOperation(runner, call, values, asked)
        except Exception as why:  # whatever it does, the program has run, and others are checked
            told = str(why) if isinstance(why, OperationFailed) else first_line(why)
            reason = f"it cannot be run alone: {told}"
            self.collection.leave_out(name, reason, call.place, number)
            return False
        if runner.complex:
            self.collection.leave_out(name, COMPLEX, call.place, number)
        if (operation.inputs and operation.outputs) or not runner.complex:
            self.collection.add(number, operation)
        return True

    def _make_up(self, number: int, call: Call) -> bool:
        if call.launched is not None:
            self.collection.leave_out(call.launched.kernel.key, UNSEEN, call.place, number)
            return True
        name = rule_name(call.rule)
        if call.cells:
            self.collection.leave_out(
                name, "the values that it captured from a traced program are unknown",
                call.place, number,
            )  # fmt: skip
            return False
        if not self._add(number, call, made_up(call), []):
            return False
        self.collection.leave_out(name, MADE_UP, call.place, part="{} at the values of the program")
        return True

    def _next(self) -> int:
        number = self.collection.calls
        self.collection.calls += 1
        return number
