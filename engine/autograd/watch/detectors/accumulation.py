"""Finds gradients that mix several evaluations, once the program reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.autograd.watch.accumulated import Accumulated
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.program import Program
from engine.autograd.watch.unread import Mixture
from engine.runtime.array import array
from engine.runtime.events import Optimized
from engine.runtime.storage import Storage
from engine.tape.backward import Pass


class Accumulation(Detector):
    """Tells of mixtures (`Stale`) that the program has read."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._accumulated = Accumulated()
        self._unread = self._accumulated.unread

    def _tell(self, mixtures: Iterable[Mixture]) -> None:
        for m in mixtures:
            self.program.of(m.tape).tell(m.fact)

    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array]) -> None:
        self._accumulated.reading(arrays, written)
        if not self._unread.empty:
            self._tell(self._unread.reading(arrays, host, written))

    def optimized(self, steps: Sequence[Optimized]) -> None:
        self._accumulated.optimized(steps)
        if not self._unread.empty:
            self._tell(self._unread.optimized(steps))

    def writing(self, memory: Storage, lo: int, hi: int) -> None:
        if not self._unread.empty:
            self._tell(self._unread.settle())

    def began(self, tape: Followed, run: Pass) -> None:
        self._tell(self._accumulated.began(tape.tape, run))
        tape.inputs = self._accumulated.inputs(tape.tape)

    def ended(self, tape: Followed, run: Pass) -> None:
        self._accumulated.ended(tape.tape, run)

    def pass_over(self, tape: Followed, done: bool) -> None:
        self._accumulated.left(tape.tape)

    def closed(self) -> None:
        self._tell(self._unread.closed())
