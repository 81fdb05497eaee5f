"""The messages between parent and child process: the job and its outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from adtool.captures.head import Written
from adtool.matrices import LaunchPictures
from adtool.report import Duration, Finding, Problem
from engine.autograd import (
    Broken,
    FunctionCheck,
    LaunchResult,
    Moved,
    PassNotes,
    TapeResult,
    Undifferentiated,
    Unwatched,
)
from engine.classes import dataclass
from engine.diagnostics import Span

Kind = Literal[
    "done", "raised", "exited", "target", "engine", "environment", "internal", "interrupted"
]


@dataclass(frozen=True, slots=True)
class Settled:
    """What runs with inputs moved say of a tape: nothing where all is empty.

    other: the target does not do the same twice. broken, function: what was found.
    """

    other: bool = False
    broken: Broken | None = None
    function: FunctionCheck | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the target ended, and the checks of its tapes.

    kind: `done` (a normal end, all tapes checked), `raised` (an exception), `exited`
    (sys.exit with a status), `target` (it could not be started), `engine` (the engine
    refused something), `environment` (the system did), `internal` (a bug of the tool),
    `interrupted`. kernels: the names
    of all kernels on the tapes, also of those that the options leave out. recorded: how many
    launches each tape has. processes: how many the target started. strayed: words among the
    target's arguments that are options of the tool, and that the target does not seem to use.
    script_seconds: wall time of the target itself. moved: what its inputs' being moved did.
    settled: the verdict of several such runs. written: of a capture, where that was asked for.
    found: the finding that it was reduced to. pictures: Jacobians of launches, where they were
    asked for. likenesses: see `folded`. notes: what is to be told of the run beside its results.
    left_alone: functions with a gradient of their own that were called, and are not checked as they
    are of installed packages. undifferentiated: such functions of which no call wanted a gradient.
    passes: what its backward passes gave, where that was asked for.
    unwatched: what of frameworks that it imported could not be watched. frameworks: names of those
    that it uses in place of the engine, where it made no tape. unimported: names of those whose
    import failed, and why.
    """

    kind: Kind
    message: str = ""
    help: str = ""
    detail: str = ""
    problems: tuple[Problem, ...] = ()
    tapes: tuple[TapeResult, ...] = ()
    kernels: tuple[str, ...] = ()
    recorded: tuple[int, ...] = ()
    processes: int = 0
    durations: tuple[Duration, ...] = ()
    strayed: tuple[str, ...] = ()
    script_seconds: float = 0.0
    moved: Moved | None = None
    settled: Settled | None = None
    written: Written | None = None
    found: Finding | None = None
    pictures: tuple[LaunchPictures, ...] = ()
    likenesses: tuple[Likenesses, ...] = ()
    notes: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()
    undifferentiated: tuple[Undifferentiated, ...] = ()
    passes: PassNotes = PassNotes()
    unwatched: tuple[Unwatched, ...] = ()
    frameworks: tuple[str, ...] = ()
    unimported: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Likenesses:
    """Launches of a tape, by its place among the tapes, that are left out of it.

    Of each found what was found of another one of the tape: its number, the place of the other one
    among those that are there, and of its call among `sites`, -1 where that is not known.
    """

    tape: int
    launches: tuple[tuple[int, int, int], ...]
    sites: tuple[Span, ...]


def folded(outcome: Outcome) -> Outcome:
    """The same in less space: of long programs most launches are like others. See `unfolded`."""
    tapes: list[TapeResult] = []
    found: list[Likenesses] = []
    for place, tape in enumerate(outcome.tapes):
        first: dict[tuple[int, ...], int] = {}
        kept: list[LaunchResult] = []
        left: list[tuple[int, int, int]] = []
        sites: dict[Span, int] = {}
        for x in tape.launches:
            known = first.setdefault(_what(x), len(kept))
            if known == len(kept):
                kept.append(x)
            else:
                at = -1 if x.site is None else sites.setdefault(x.site, len(sites))
                left.append((x.index, known, at))
        tapes.append(replace(tape, launches=tuple(kept)) if left else tape)
        if left:
            found.append(Likenesses(place, tuple(left), tuple(sites)))
    return replace(outcome, tapes=tuple(tapes), likenesses=tuple(found))


def unfolded(outcome: Outcome) -> Outcome:
    """The outcome that was folded. Raises ValueError where it cannot have been."""
    tapes = list(outcome.tapes)
    for given in outcome.likenesses:
        if not 0 <= given.tape < len(tapes):
            raise ValueError("there is no such tape")
        tape = tapes[given.tape]
        every = sorted((*tape.launches, *_restored(given, tape.launches)), key=lambda x: x.index)
        tapes[given.tape] = replace(tape, launches=tuple(every))
    return replace(outcome, tapes=tuple(tapes), likenesses=())


def _restored(given: Likenesses, kept: Sequence[LaunchResult]) -> Iterator[LaunchResult]:
    for index, like, at in given.launches:
        if not (0 <= like < len(kept) and -1 <= at < len(given.sites)):
            raise ValueError("there is no similar launch")
        yield replace(kept[like], index=index, site=None if at < 0 else given.sites[at])


_SAME = tuple(f.name for f in fields(LaunchResult) if f.name not in ("index", "site"))


def _what(x: LaunchResult) -> tuple[int, ...]:
    """Equal for launches of which the very same objects tell."""
    parts: tuple[Any, ...] = tuple(getattr(x, name) for name in _SAME)
    return tuple(map(id, parts))
