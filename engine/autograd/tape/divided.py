"""Splits the check of several tapes into pieces, which processes can divide.

A piece is all launches of a kernel, for what is known of a kernel's launches decides how closely
the next one is looked at; or a tape as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.launch.experience import Experience
from engine.autograd.launch.recorded_arguments import shape_key
from engine.autograd.results import LaunchResult, TapeResult
from engine.autograd.tape.check import (
    check_one,
    result_of,
    seen,
    selected,
    with_facts,
    with_whole,
)
from engine.autograd.tape.options import Options
from engine.autograd.tape.whole import WholeCheck
from engine.cached import cached_property
from engine.compile.pipeline import Variants
from engine.ir.nodes import Block, Call, For, Function, While, blocks_of
from engine.tape.capture import CapturedTape
from engine.tape.records import LaunchRecord, Record

# Numbers of a tape and of a launch on it, with what its check found.
Found = tuple[int, LaunchResult]
# About what takes as long as the rest of a brief look at a launch: statements that its threads run,
# and those that are derived and compiled for a kernel's first launch.
RUN, COMPILED = 200_000, 0.2
TURNS = 8  # of a loop


class DividedCheck:
    """The check of all launches of some tapes, and of the tapes as wholes.

    It finds what `check_tape` finds of one after another, in whatever order its pieces are made.
    eps, atol, rtol, max_inputs, max_outputs, seed: as there.
    """

    def __init__(
        self, tapes: Sequence[CapturedTape], *, eps: float | None = None,
        atol: float | None = None, rtol: float | None = None, max_inputs: int = -1,
        max_outputs: int = -1, seed: int = 0,
    ) -> None:  # fmt: skip
        self._tapes = tapes
        self._experience = Experience()
        self._options = Options(
            Tolerance(eps, atol, rtol), max_inputs=max_inputs, max_outputs=max_outputs, seed=seed,
            experience=self._experience,
        )  # fmt: skip
        self._wholes: dict[int, WholeCheck] = {}
        self._todo: dict[str, list[tuple[int, int, Record]]] = {}
        for number, tape in enumerate(tapes):
            for index, record in selected(tape.records, self._options):
                self._todo.setdefault(record.name, []).append((number, index, record))

    def kernels(self) -> list[str]:
        """The names of all kernels launched, those first whose checks may take longest."""
        sizes = {k: _size([r for _, _, r in todo]) for k, todo in self._todo.items()}
        return sorted(sizes, key=lambda k: -sizes[k])

    @property
    def largest(self) -> int:
        """Bytes of a launch's arrays, of the one that has most."""
        every = (r for todo in self._todo.values() for _, _, r in todo)
        return max((_bytes(x) for r in every if (x := r.launch) is not None), default=0)

    def launches(self, kernel: str, tell: Callable[[int, int, str], None]) -> Iterator[Found]:
        """Checks all launches of a kernel, tape by tape. Those that were checked can be again.

        tell: called before each with the numbers of its tape and of itself, and the kernel's name.
        """
        experience = Experience()
        for number, index, record in self._todo[kernel]:
            tell(number, index, kernel)
            yield number, check_one(index, record, self._options, experience).result

    def whole(self, number: int) -> None:
        """Checks a tape as a whole, in the hope that its launches are right."""
        check = self._wholes[number] = WholeCheck(self._tapes[number], self._options)
        check.hope()

    def result(self, number: int, launches: Iterable[LaunchResult]) -> TapeResult:
        """The result for a tape. launches: what was found of them.

        Raises CheckInterrupted.
        """
        tape = self._tapes[number]
        found = with_facts(tape, result_of(tape.records, list(launches)))
        whole = self._wholes.pop(number, None)
        options = replace(self._options, experience=self._again)
        return with_whole(tape, options, found, whole)

    @cached_property
    def _again(self) -> Experience:
        """For launches that are looked at again: all were seen, so that brief looks will do.

        Whoever has checked them: of that nothing depends.
        """
        out = Experience()
        for _, _, record in chain.from_iterable(self._todo.values()):
            launch = record.launch
            if launch is not None:
                out.add(shape_key(launch))
        return out

    def part(self, number: int, launches: Iterable[LaunchResult]) -> TapeResult:
        """The result for a tape of which not all was checked."""
        tape = self._tapes[number]
        return seen(with_facts(tape, result_of(tape.records, list(launches))))


def _size(launches: Sequence[Record]) -> float:
    """How long the checks of a kernel's launches may take, in that of a small launch."""
    run = 0.0
    kernels: dict[Variants, int] = {}
    for record in launches:
        r = record.launch
        if r is not None:
            variants = r.plan.variants
            if variants not in kernels:
                kernels[variants] = _statements(variants.prepared)
            run += 1.0 + math.prod(r.dim) * kernels[variants] / RUN
    return run + COMPILED * sum(kernels.values())


def _bytes(record: LaunchRecord) -> int:
    arrays = (record.args[p.index] for p in record.plan.array_params)
    sizes = ((a.size, a._info) for a in arrays if a is not None)
    return sum(size * math.prod(info.inner) * info.numpy.itemsize for size, info in sizes)


def _statements(fn: Function, known: dict[int, int] | None = None) -> int:
    """Those that a thread runs, where it comes past all of them, and goes round loops a few times.

    known: of functions that were counted, by identity.
    """
    known = {} if known is None else known

    def count(block: Block, times: int) -> int:
        found = 0
        for s in block:
            turns = TURNS if isinstance(s, (For, While)) else 1
            found += times + sum(count(b, times * turns) for b in blocks_of(s))
            if isinstance(s, Call):
                if id(s.func) not in known:
                    known[id(s.func)] = _statements(s.func, known)
                found += times * known[id(s.func)]
        return found

    return count(fn.body, 1)
