"""Splits the check of a capture into parts, which are the same for every executor.

A part is some tapes, or some launches of a long one. What the launches of a part are like is known
to that part alone, so that more of them are looked at closely than where one process checks all.
A long tape is checked as a whole when its launches have been.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adtool.checking import each_tape, kernels_of, launches_of
from adtool.job import CheckOptions, Part
from adtool.outcome import Outcome
from engine.autograd import (
    Experience,
    LaunchResult,
    PairResult,
    TapeResult,
    check_tape,
    check_whole,
)
from engine.diagnostics import Span

if TYPE_CHECKING:
    from adtool.status import StatusWriter
    from engine import CapturedTape

SIZE = 256  # launches of a part
_NOWHERE = Span("<unknown>", 0, 0, 0, 0)


def parts_of(recorded: Sequence[int]) -> list[Part]:
    """The parts of a capture whose tapes have so many launches."""
    out: list[Part] = []
    first, count = 0, 0
    for number, launches in enumerate(recorded):
        if launches > SIZE:
            if first < number:
                out.append(Part(first, number))
            out += [
                Part(number, number + 1, (at, min(at + SIZE, launches)))
                for at in range(0, launches, SIZE)
            ]
            first, count = number + 1, 0
        elif count + launches > SIZE:
            out.append(Part(first, number))
            first, count = number, launches
        else:
            count += launches
    if first < len(recorded):
        out.append(Part(first, len(recorded)))
    return out


def wholes_of(tapes: Sequence[TapeResult], options: CheckOptions) -> list[Part]:
    """The parts that check long tapes as wholes. tapes: with the results of all launches."""
    if not options.checks_whole:
        return []
    return [
        Part(t.tape, t.tape + 1, verdicts=tuple(
            (x.index, tuple(dict.fromkeys(p.verdict for p in x.pairs))) for x in t.launches
        ))
        for t in tapes if t.whole is None
    ]  # fmt: skip


def merged(results: Sequence[TapeResult]) -> tuple[TapeResult, ...]:
    """The results of tapes from those of their parts, in order."""
    by_tape: dict[int, TapeResult] = {}
    for t in results:
        known = by_tape.get(t.tape)
        if known is not None:
            launches = sorted((*known.launches, *t.launches), key=lambda x: x.index)
            unchecked = sorted({*known.unchecked, *t.unchecked}, key=lambda u: (u.index, u.what))
            t = replace(
                known, launches=tuple(launches), unchecked=tuple(unchecked),
                whole=known.whole or t.whole, remainders=(*known.remainders, *t.remainders),
            )  # fmt: skip
        by_tape[t.tape] = t
    return tuple(by_tape[n] for n in sorted(by_tape))


def check_part(
    tapes: Sequence[CapturedTape], part: Part, options: CheckOptions, page: StatusWriter
) -> Outcome:
    """The check of a part, in the process that has read the capture."""
    mine = tapes[part.first : part.end]
    seen = Outcome("done", kernels=kernels_of(tapes), recorded=launches_of(tapes))
    experience = Experience()

    def checked(tape: CapturedTape, number: int) -> Iterator[TapeResult]:
        page.check(number, len(tapes), -1, number - part.first, len(mine), "")
        return _checked(tape, number, part, options, experience)

    return each_tape(mine, part.first, seen, checked)


def _checked(
    tape: CapturedTape, number: int, part: Part, options: CheckOptions, experience: Experience
) -> Iterator[TapeResult]:
    if part.verdicts is not None:
        launches = [
            LaunchResult(index, "", (), tuple(PairResult("", "", v) for v in found), _NOWHERE)  # type: ignore[arg-type]
            for index, found in part.verdicts
        ]
        whole = check_whole(
            tape, launches, eps=options.eps, atol=options.atol, rtol=options.rtol,
            seed=options.seed,
        )  # fmt: skip
        yield TapeResult(number, (), whole=whole)
        return
    wanted = options.launches_of(number)
    given = options.of_tape()
    if wanted is None:
        return
    if part.launches is not None:
        chunk = range(*part.launches)
        wanted = tuple(n for n in wanted or chunk if n in chunk)
        if not wanted:
            return
        given["end_to_end"] = options.end_to_end and not options.checks_whole
    result = check_tape(tape, **given, launches=wanted, experience=experience)
    yield replace(result, tape=number)
