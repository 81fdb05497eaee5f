"""Tests whether two arrays with one gradient memory change the result of a backward pass.

Buffers that take turns may well be shared. So the pass is run once more before it runs, with
gradients of their own in the place of those that share, and then what the inputs got is compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from engine.autograd.facts import Fact
from engine.autograd.watch.accumulated import name_of
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.program import Program
from engine.autograd.watch.trials import exposed
from engine.classes import dataclass
from engine.diagnostics import EngineError, Span
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Storage
from engine.tape.backward import Pass, reverse
from engine.tape.outline import root_array
from engine.tape.records import launches
from engine.tape.restoration import NumpyArray

_RTOL = 1e-4  # of the largest number of a gradient: another order of sums rounds otherwise


@dataclass(frozen=True, slots=True)
class Shared(Fact):
    """Two arrays whose gradients are one memory, and a gradient that is wrong because of it.

    arrays, of: what the user calls them, and the input. site: the backward pass.
    """

    arrays: tuple[str, str]
    of: str
    site: Span | None


class Aliasing(Detector):
    """Looks at the first backward pass of each tape."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._begun: set[Followed] = set()
        self._gradients: dict[Followed, SharedGradients] = {}

    def began(self, tape: Followed, run: Pass) -> None:
        if tape not in self._begun:
            self._begun.add(tape)
            self._gradients[tape] = SharedGradients(run)

    def ended(self, tape: Followed, run: Pass) -> None:
        gradients = self._gradients.get(tape)
        found = None if gradients is None else gradients.found(lambda a: name_of(run, a))
        if found is not None:
            tape.tell(found)

    def pass_over(self, tape: Followed, done: bool) -> None:
        self._gradients.pop(tape, None)


class SharedGradients:
    """One backward pass."""

    def __init__(self, run: Pass) -> None:
        self._run = run
        self._roots = _roots(run)
        self._pair = self._conflict()
        self._right: dict[int, NumpyArray] = {}
        if self._pair is not None and all(r.repeatable for r in run.records):
            self._right = self._apart()

    def found(self, name: Callable[[array], str]) -> Shared | None:
        """What is wrong, to be asked after the pass. name: gives what the user calls an array."""
        for a in self._roots:
            was = self._right.get(id(a))
            grad = a.existing_grad
            if was is None or grad is None:
                continue
            now = grad._host()
            if now.dtype.names is None and not _near(now, was):
                assert self._pair is not None
                site = None if self._run.site is None else self._run.site.span
                return Shared((name(self._pair[0]), name(self._pair[1])), name(a), site)
        return None

    def _conflict(self) -> tuple[array, array] | None:
        """Two arrays that share a gradient and no memory."""
        by: dict[Storage, list[array]] = {}
        for a in self._roots:
            grad = a.existing_grad
            if grad is not None:
                by.setdefault(grad.storage, []).append(a)
        for some in by.values():
            for k, j in _overlapping([g.extent() for a in some if (g := a.existing_grad)]):
                if self._clash(some[k], some[j]):
                    return some[j], some[k]
        return None

    def _clash(self, a: array, b: array) -> bool:
        x, y = a.existing_grad, b.existing_grad
        return x is not None and y is not None and not may_meet(a, b) and may_meet(x, y)

    def _apart(self) -> dict[int, NumpyArray]:
        """The gradients of the tape's inputs, where each array has one of its own."""
        kept = [(a, g, None if g is None else g._host().copy())
                for a in self._roots for g in (a.existing_grad,)]  # fmt: skip
        out: dict[int, NumpyArray] = {}
        others = [(a, a._host().copy()) for r in launches(self._run.records) for a in exposed(r)]
        written = [w for r in self._run.records for w in r.written]
        inputs = [a for a in self._roots if not any(may_meet(a, w) for w in written)]
        with _put_back(kept, others), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for a, g, was in kept:
                if g is None or not any(self._clash(a, b) for b in self._roots if b is not a):
                    continue
                a._grad = type(g)._allocate(g.shape, g._ir.element, True, g.device)
                if was is not None and any(a is b for b in inputs):
                    a._grad._put(was)  # what other passes left there
            for a, cotangent in self._run.seeds:
                if a.grad is not None:
                    a.grad._put(cotangent)
            try:
                reverse(self._run)
            except EngineError:
                return {}
            for a in inputs:
                if a.existing_grad is not None:
                    out[id(a)] = a.existing_grad._host().copy()
        return out


def _overlapping(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of spans that meet, by their positions, the later one first; in order."""
    out: list[tuple[int, int]] = []
    open_: list[int] = []
    for k in sorted(range(len(spans)), key=lambda k: spans[k]):
        open_ = [j for j in open_ if spans[j][1] > spans[k][0]]
        out += [(max(j, k), min(j, k)) for j in open_]
        open_.append(k)
    return sorted(out)


@contextmanager
def _put_back(
    kept: Iterable[tuple[array, array | None, NumpyArray | None]],
    others: Iterable[tuple[array, NumpyArray]],
) -> Iterator[None]:
    """Afterwards, arrays have the gradients that they had, and these and others what they held.

    None where an array's gradient is made when it is needed, as most are.
    """
    try:
        yield
    finally:
        for a, g, was in kept:
            a._grad = g if a._shared is None else None  # that is found anew
            if g is not None and was is not None:
                g._put(was)
        for a, was in others:
            a._put(was)


def _roots(run: Pass) -> list[array]:
    """The arrays with gradients of their own, or that may get them, each once."""
    found = [root_array(a) for r in run.records for a in r.arrays if isinstance(a, array)]
    return list({id(a): a for a in found if a.requires_grad}.values())


def _near(a: NumpyArray, b: NumpyArray) -> bool:
    with np.errstate(all="ignore"):
        size = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
        same = (np.abs(a - b) <= _RTOL * size) | (a == b) | (np.isnan(a) & np.isnan(b))
    return bool(same.all())
