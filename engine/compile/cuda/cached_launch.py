"""Repeated launches: the driver's arguments are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from engine.codegen.cuda import local_stack
from engine.compile.backend import IN_ORDER, NOTHING, Entry, Limits, Outcome, shape
from engine.compile.cuda import runner

if TYPE_CHECKING:
    from engine.compile.cuda import Code, Cuda

KEPT = 256  # launches of one kernel and grid


class CachedLaunch:
    """Runs a kernel over a grid, where no thread can fail or say anything.

    stack, journal: the limits of all its runs.
    """

    any_arguments = False  # adjoints may be refused by how arrays lie
    job = None

    __slots__ = ("_backend", "_came", "_came_in_order", "_dim", "_entry", "_in_order", "_kept",
                 "_launch", "_limits", "journal", "stack")  # fmt: skip

    def __init__(self, backend: Cuda, entry: Entry, dim: tuple[int, ...], limits: Limits) -> None:
        self.stack, self.journal = limits
        self._backend = backend
        self._launch = backend.gpu.launch
        self._entry = entry
        self._dim = dim
        self._limits = limits
        stack = entry.code.frames.stack or 0
        self._came = Outcome(stack_bytes=stack) if stack else NOTHING
        adjoint = entry.code.is_adjoint
        self._came_in_order = self._came if adjoint else replace(self._came, journal=IN_ORDER)
        # By arguments: the launch, and what keeps its parameters. Those with an order are others.
        self._kept: dict[bytes, tuple[tuple[Any, int, int, Any], runner.Run]] = {}
        self._in_order: dict[bytes, tuple[tuple[Any, int, int, Any], runner.Run]] = {}

    def run(self, args: bytes, spare: Callable[[], Entry] | None) -> Outcome | None:
        """What `Backend.run` gives; None where that has to be asked, and nothing has run."""
        del spare
        if shape.get() is not None:
            return None
        if self._entry.in_order():
            found = self._in_order.get(args) or self._made(args, self._in_order)
            self._launch(*found[0])
            return self._came_in_order
        found = self._kept.get(args) or self._made(args, self._kept)
        self._launch(*found[0])
        return self._came

    def _made(
        self, args: bytes, kept: dict[bytes, tuple[tuple[Any, int, int, Any], runner.Run]]
    ) -> tuple[tuple[Any, int, int, Any], runner.Run]:
        entry, total = self._entry, prod(self._dim)
        made = runner.Run(self._backend, entry, self._dim, args, 0, total, self._limits)
        if len(kept) >= KEPT:
            kept.clear()
        found = kept[args] = made.ready(entry.code), made
        return found

    def outcome_of(
        self, values: list[Any], args: bytes, came: bytes, spare: Callable[[], Entry] | None
    ) -> Outcome:
        """Nothing is left of many: there is no such way on a GPU."""
        raise NotImplementedError


def cached_launch(
    backend: Cuda, entry: Entry, dim: tuple[int, ...], limits: Limits
) -> CachedLaunch | None:
    """The short way to run launches over a grid; None where there is none."""
    code: Code = entry.code
    facts = code.facts
    saves = facts.context and (
        facts.reads or facts.writes or code.frames.words or local_stack(code.frames) is None
    )
    if saves or runner.too_large(code, dim, prod(dim)) or not prod(dim):
        return None
    return CachedLaunch(backend, entry, dim, limits)
