"""Runs the checker on the corpus: right kernels must pass, and their mutants must be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

import engine
from adtool.selftest.case import Arr, Case
from engine.autograd import MUTATIONS, Experience, Trial, check_tape, compile_trials
from engine.classes import dataclass

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the check said of a right kernel (`mutation` is empty) or of a mutant of it.

    verdicts: of its pairs of input and output. reasons: why some are undecided.
    """

    kernel: str
    kind: str
    mutation: str
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        """Whether the check calls it wrong."""
        return any(v in ("fail", "nan") for v in self.verdicts)

    @property
    def right(self) -> bool:
        """Whether the check calls it right."""
        return bool(self.verdicts) and all(v in ("pass", "kink", "rounding") for v in self.verdicts)


def corpus() -> list[Case]:
    """All cases."""
    from adtool.selftest.corpus import arrays, scalars, vectors

    return [*scalars.CASES, *arrays.CASES, *vectors.CASES]


def record(case: Case) -> Any:
    """A tape with the launch of a case."""
    inputs = [_array(a) for a in case.inputs]
    outputs = [_array(a) for a in case.outputs]
    with engine.Tape() as tape:
        engine.launch(case.kernel, dim=case.dim, inputs=inputs, outputs=outputs)
    return tape


def _array(a: Arr) -> Any:
    dtype = {"float": float, "int": int}.get(a.dtype) or getattr(engine, a.dtype)
    values = np.asarray(a.values)
    return engine.array(values, dtype=dtype, requires_grad=a.dtype != "int")


def run(cases: Sequence[Case], seed: int = 0, progress: Progress | None = None) -> list[Outcome]:
    """The outcomes of all cases and mutants. Mutations that change nothing are left out."""
    return list(outcomes(cases, seed, progress))


def outcomes(cases: Sequence[Case], seed: int, progress: Progress | None) -> Iterator[Outcome]:
    """The same, one by one."""
    tapes = [record(case) for case in cases]
    with ExitStack() as stack:
        trials = [stack.enter_context(Trial(t, seed)) for t in tapes]
        compile_trials(trials)
        for k, (case, trial) in enumerate(zip(cases, trials, strict=True)):
            if progress is not None:
                progress(k, len(cases), case.kernel.key)
            yield _outcome(case, "", trial.check())
            for m in MUTATIONS:
                if trial.changes(m):
                    yield _outcome(case, m.kind, trial.check(m))
    if progress is not None:
        progress(len(cases), len(cases), "")


def hidden_outcomes(seed: int) -> Iterator[Outcome]:
    """Of programs whose fault hides: see `adtool.selftest.corpus.hidden`."""
    from adtool.selftest.corpus.hidden import PROGRAMS

    for name, program in PROGRAMS.items():
        for wrong in (False, True):
            experience = Experience()
            pairs = [
                p
                for tape in program(wrong, seed)
                for x in check_tape(
                    tape, seed=seed, experience=experience, end_to_end=False
                ).launches
                for p in x.pairs
            ]
            reasons = tuple(dict.fromkeys(p.reason for p in pairs if p.reason))
            verdicts = tuple(p.verdict for p in pairs)
            yield Outcome(name, "hidden", "hidden" if wrong else "", verdicts, reasons)


def _outcome(case: Case, mutation: str, found: Any) -> Outcome:
    reasons = [p.reason for p in found.pairs if p.reason]
    if found.skipped:
        reasons.append(found.skipped)
    verdicts = tuple(p.verdict for p in found.pairs)
    return Outcome(case.kernel.key, case.kind, mutation, verdicts, tuple(dict.fromkeys(reasons)))
