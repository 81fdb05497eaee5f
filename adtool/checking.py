"""Checks captured tapes, in the child process or in the process of a test."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import engine
from adtool import endings, forks
from adtool.job import CheckOptions
from adtool.outcome import Outcome
from adtool.report import Problem
from adtool.sharing import KERNELS, LARGEST, LEAST, Shared, can_fork
from engine.autograd import (
    Broken,
    CheckInterrupted,
    DividedCheck,
    Experience,
    TapeResult,
    check_tape,
)

if TYPE_CHECKING:
    from adtool.check_progress import CheckProgress
    from engine import CapturedTape
    from engine.foreign import Watched


__engine_tool__ = True  # places of errors and launches are those of who called


def check_tapes(
    captured: Sequence[CapturedTape],
    options: CheckOptions,
    progress: CheckProgress | None = None,
    experience: Experience | None = None,
    also: Callable[[CapturedTape, TapeResult, int], None] | None = None,
    processes: int = 1,
    meanwhile: Callable[[], None] | None = None,
) -> Outcome:
    """Checks all tapes that hold something, numbered from 0. Empties them when it is done.

    progress: told of each step. experience: of the checks of other tapes of the same program.
    also: called with each tape, its result and its number, before it is emptied. processes: how
    many may share the checks, if this one can be forked. meanwhile: called before anything is
    checked here, when others may be at it already.
    """
    tapes = recorded(captured)
    seen = Outcome(
        "done", kernels=kernels_of(tapes), recorded=launches_of(tapes),
        processes=_processes(),
    )  # fmt: skip
    many = sum(seen.recorded) >= LEAST or len(seen.kernels) >= KERNELS
    if options.plain and experience is None and many:
        check = DividedCheck(tapes, **options.of_divided())
        if check.largest <= LARGEST:
            processes = processes if can_fork() else 1
            return _shared(tapes, check, processes, seen, progress, also, meanwhile)
    if meanwhile is not None:
        meanwhile()
    experience = experience or Experience()

    def checked(tape: CapturedTape, number: int) -> Iterator[TapeResult]:
        launches = options.launches_of(number)
        if launches is None:
            return
        if progress is not None:
            progress.begin(number)
        result = check_tape(
            tape, **options.of_tape(), launches=launches, progress=progress,
            experience=experience,
        )  # fmt: skip
        yield replace(result, tape=number)
        if also is not None:
            also(tape, result, number)

    outcome = each_tape(tapes, 0, seen, checked)
    if captured and not tapes:
        outcome = replace(outcome, tapes=(TapeResult(0, ()),))
    slowest = progress.slowest(options.durations) if progress is not None else ()
    return replace(outcome, durations=slowest)


def _shared(
    tapes: Sequence[CapturedTape], check: DividedCheck, processes: int, seen: Outcome,
    progress: CheckProgress | None, also: Callable[[CapturedTape, TapeResult, int], None] | None,
    meanwhile: Callable[[], None] | None,
) -> Outcome:  # fmt: skip
    """The same for long programs, by several processes if they may be."""
    done: list[TapeResult] = []
    number = 0

    def tell(tape: int, launch: int, begun: int, kernel: str) -> None:
        if progress is not None:
            progress.among_all(tape, launch, begun, kernel)

    with calm(), contextlib.closing(Shared(check, processes, tell)) as shared:
        try:
            if meanwhile is not None:
                meanwhile()
            if not shared.forked:
                shared.wait()
            for number in range(len(tapes)):
                tell(number, -1, shared.begun, "")
                check.whole(number)
            shared.wait()
            found = shared.found()
            for number, tape in enumerate(tapes):
                tell(number, -1, shared.begun + number, "")
                done.append(replace(check.result(number, found[number]), tape=number))
                if also is not None:
                    also(tape, done[-1], number)
                tape.records.clear()
        except KeyboardInterrupt as stop:
            found = shared.found()
            first = len(done)
            if isinstance(stop, CheckInterrupted):
                done.append(replace(stop.result, tape=first))
            rest = (n for n in range(len(done), len(tapes)) if found[n])
            done += [replace(check.part(n, found[n]), tape=n) for n in rest]
            return replace(seen, kind="interrupted", tapes=tuple(done))
        except engine.EngineError as error:
            return refused(error, f"tape {number} could not be checked", tuple(done))
    return replace(seen, tapes=tuple(done))


def each_tape(
    tapes: Sequence[CapturedTape], first: int, seen: Outcome,
    checked: Callable[[CapturedTape, int], Iterable[TapeResult]],
) -> Outcome:  # fmt: skip
    """What is seen of tapes, numbered from `first`, with the results that `checked` gives of each.

    Empties them. What was found is kept where the check is interrupted or refused.
    """
    done: list[TapeResult] = []
    number = first
    try:
        for number, tape in enumerate(tapes, first):
            with calm():
                for result in checked(tape, number):
                    done.append(result)  # at once: what comes next may be interrupted
            tape.records.clear()
    except KeyboardInterrupt as stop:
        if isinstance(stop, CheckInterrupted):
            done.append(replace(stop.result, tape=number))
        return replace(seen, kind="interrupted", tapes=tuple(done))
    except engine.EngineError as error:
        return refused(error, f"tape {number} could not be checked", tuple(done))
    return replace(seen, tapes=tuple(done))


def recorded(captured: Sequence[CapturedTape]) -> list[CapturedTape]:
    """The tapes that hold something; last those that missed all that a graph ran in their block."""
    missed = [t for t in captured if not t.records and any(map(_is_broken, t.facts))]
    return [*(t for t in captured if t.records), *missed]


def with_functions(
    outcome: Outcome, watched: Watched, options: CheckOptions,
    progress: CheckProgress | None = None,
) -> Outcome:  # fmt: skip
    """The outcome of the check of tapes, with that of functions of frameworks after it.

    Each framework is numbered as a tape, after those of the program. It forgets the functions.
    """
    if outcome.kind != "done":
        return outcome
    first = len(outcome.recorded)
    seen = replace(
        outcome, kernels=tuple(dict.fromkeys((*outcome.kernels, *watched.names))),
        recorded=(*outcome.recorded, *watched.recorded), left_alone=watched.left_alone,
        undifferentiated=watched.undifferentiated,
        unwatched=tuple(watched.unwatched), unimported=watched.unimported,
    )  # fmt: skip
    told: tuple[str, ...] = ()
    if watched.left_alone and seen.recorded:
        told = (endings.beside(watched.left_alone),)
    if seen.recorded:
        told += endings.not_wanted(watched.undifferentiated)
    # That there were tapes, and nothing on them, is of no interest where there are functions.
    done = [t for t in outcome.tapes if outcome.recorded or t.launches]
    try:
        with calm():
            for result in watched.results(
                first, **options.of_functions(), launches_of=options.launches_of,
                progress=None if progress is None else progress.of_functions(first),
            ):  # fmt: skip
                done.append(result)
    except KeyboardInterrupt as stop:
        if isinstance(stop, CheckInterrupted):
            done.append(stop.result)
        seen = replace(seen, kind="interrupted")
    # Some notes are known when the results are.
    notes = (*outcome.notes, *watched.notes, *told)
    return replace(seen, tapes=tuple(done) or outcome.tapes, notes=notes)


def _is_broken(fact: object) -> bool:
    return isinstance(fact, Broken)


def kernels_of(tapes: Sequence[CapturedTape]) -> tuple[str, ...]:
    """The names of all kernels on the tapes."""
    kernels = (r.kernel for t in tapes for r in t.records)
    return tuple(dict.fromkeys(k.key for k in kernels if k is not None))


def refused(error: engine.EngineError, message: str, tapes: tuple[TapeResult, ...] = ()) -> Outcome:
    """The outcome where the engine refused something. tapes: what was checked by then."""
    problems = []
    for d in error.diagnostics:
        p = Problem(d.code, d.message, d.help, d.severity, notes=d.notes)
        if (at := d.span) is not None:
            p = replace(
                p, file=at.file, line=at.line, column=at.col,
                end_line=at.end_line, end_column=at.end_col,
            )  # fmt: skip
        problems.append(p)
    return Outcome("engine", message, problems=tuple(problems), tapes=tapes)


@contextlib.contextmanager
def calm() -> Iterator[None]:
    """Undoes, for the checks, a target's wish that numeric warnings be errors."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def launches_of(tapes: Sequence[CapturedTape]) -> tuple[int, ...]:
    """How many launches each tape has."""
    return tuple(sum(r.kernel is not None for r in t.records) for t in tapes)


def _processes() -> int:
    """How many processes the target started, by `multiprocessing` (pools included) or by a fork."""
    count = forks.counted()
    started = sys.modules.get("multiprocessing")
    if started is not None:
        with contextlib.suppress(Exception):  # each is named for its number
            count += int(started.Process().name.rpartition("-")[2]) - 1
    return count
