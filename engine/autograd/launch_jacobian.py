"""Jacobians of one launch, on copies of its arguments: by its adjoint, or by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.blocks import Dense
from engine.autograd.check import arguments
from engine.autograd.lines import Lines
from engine.autograd.problem import LaunchFailed, Precision, Problem, lifted
from engine.autograd.subject import LaunchSubject, Pair, owners
from engine.autograd.tolerance import Tolerance
from engine.autograd.variables import Index, Part, Variable
from engine.diagnostics import Diagnostic, TapeError
from engine.tape.records import LaunchRecord

Array = NDArray[Any]


class Unknown(Exception):
    """The launch cannot be looked at by itself, and why."""


class Placed:
    """Where the scalars of a launch's variables are: an array and a number within it."""

    def __init__(self, subject: LaunchSubject, owner: Callable[[str], str]) -> None:
        self._subject = subject
        self._owner = owner

    def of(self, v: Variable, output: bool) -> list[tuple[str, Part]]:
        """The parts of a variable with the names of the arrays that hold them."""
        names = owners(self._subject, v, output)
        return [(self._owner(name), p) for name, p in zip(names, v.parts, strict=True)]


def launch_arguments(record: LaunchRecord) -> Any:
    """The launch's arguments as they were. Raises Unknown."""
    args, reason = arguments(record)
    if reason:
        raise Unknown(reason)
    return args


def adjoint_rows(subject: LaunchSubject, pairs: Sequence[Pair], dense: Dense, limit: int) -> None:
    """Fills matrices row by row, from the adjoint in the launch's own precision."""
    record = subject.record
    variants = record.plan.variants
    own = Precision(variants, launch_arguments(record), record.dim)
    record.check_order(own.wrt & variants.written)
    placed = Placed(subject, own.owner.__getitem__)
    try:
        for b in {id(p.output): p.output for p in pairs}.values():
            targets = [
                (
                    dense.entries[p.key],
                    [(a, part.places()) for a, part in placed.of(p.input, False)],
                )
                for p in pairs
                if p.output is b
            ]
            for name, part in placed.of(b, True):
                _rows(own, name, part, targets, limit)
    except LaunchFailed as failed:
        raise stopped(record, failed) from None
    finally:
        own.close()


def _rows(
    own: Precision, name: str, part: Part,
    targets: list[tuple[Array, list[tuple[str, Index | slice]]]], limit: int,
) -> None:  # fmt: skip
    seed = np.zeros(own.memory[name].shape, own.memory[name].dtype)
    flat = seed.reshape(-1)
    for f, row in enumerate(part.index().tolist()):
        if 0 < limit <= row:
            continue
        flat[f] = 1.0
        grads = own.vjp({name: seed})
        for matrix, inputs in targets:
            for a, cols in inputs:
                matrix[row, cols] = grads[a].reshape(-1)
        flat[f] = 0.0


def differences(
    subject: LaunchSubject, pairs: Sequence[Pair], dense: Dense, eps: float | None, limit: int
) -> None:
    """Fills matrices column by column, by differences of the launch lifted to float64."""
    record = subject.record
    variants = record.plan.variants
    problem = Problem(variants, lifted(variants), launch_arguments(record), record.dim)
    placed = Placed(subject, problem.exact.owner.__getitem__)
    tolerance = Tolerance(eps, None if eps is None else 0.0)
    try:
        names = [a for p in pairs for a, _ in placed.of(p.input, False)]
        outs = [b for p in pairs for b, _ in placed.of(p.output, True)]
        lines = Lines(problem, list(dict.fromkeys(names)), list(dict.fromkeys(outs)), tolerance)
        for v in {id(p.input): p.input for p in pairs}.values():
            targets = [
                (dense.entries[p.key], lines.spans[b], part.places())
                for p in pairs
                if p.input is v
                for b, part in placed.of(p.output, True)
            ]
            for name, part in placed.of(v, False):
                _columns(lines, name, part, targets, limit)
    except LaunchFailed as failed:
        raise stopped(record, failed) from None
    finally:
        problem.close()


def _columns(
    lines: Lines, name: str, part: Part, targets: list[tuple[Array, slice, Index | slice]],
    limit: int,
) -> None:  # fmt: skip
    live = lines.live[name].reshape(-1)
    for f, col in enumerate(part.index().tolist()):
        if 0 < limit <= col or not live[f]:
            continue
        slope = lines.column(name, f).value
        for matrix, span, rows in targets:
            matrix[rows, col] = slope[span]


def stopped(record: LaunchRecord, failed: LaunchFailed) -> TapeError:
    """What a kernel's own error means here."""
    return TapeError(
        Diagnostic("E401", f"kernel {record.name!r} cannot be differentiated here: {failed}",
                   record.site)
    )  # fmt: skip
