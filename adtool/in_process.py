"""Captures and checks tapes in the process of a test, without a child process.

What a child process gives and this cannot: a program that crashes takes the tool with it, there is
no time limit, and the program is not run again with its inputs moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING

import engine
from adtool import endings, memory
from adtool.assemble import build_report
from adtool.checking import calm, check_tapes, recorded, refused, with_functions
from adtool.faults import FaultLog
from adtool.frameworks import in_place_of_engine
from adtool.job import CheckOptions, Target
from adtool.outcome import Outcome
from adtool.report import Report, Severity
from adtool.reruns import settled_in_process
from adtool.session import Session
from adtool.suppressions import Choice
from engine.autograd import Experience, TapeResult, Witness
from engine.classes import dataclass
from engine.foreign import Watched, watching

if TYPE_CHECKING:
    from adtool.faults import Seen
    from engine import Capture, CapturedTape


__engine_tool__ = True  # places of errors and launches are those of who called


@dataclass(frozen=True, slots=True)
class Terms:
    """How tapes are checked and judged. gate, choice: as for `build_report`.

    accuracy: that each pair must reach, or None.
    """

    options: CheckOptions = field(default_factory=CheckOptions)
    gate: Severity = "error"
    choice: Choice = field(default_factory=Choice)
    accuracy: float | None = None


class Observation:
    """What is captured between `open` and `close`: tapes, and faults of launches."""

    def __init__(self, options: CheckOptions) -> None:
        self._options = options
        self._stack = ExitStack()
        self._faults = FaultLog(None)
        self._open = False
        self.capture: Capture | None = None
        self._functions = Watched()

    def open(self) -> None:
        """Begins to look. What else looks at the same time sees the same."""
        options = self._options
        self._open = True
        self._stack.enter_context(_configured(options))
        self.capture = self._stack.enter_context(
            engine.capturing(None, lambda k: not options.deselects(k), Witness(), late=True)
        )
        self._functions = self._stack.enter_context(
            watching(lambda k: not options.deselects(k), chosen=options.names)
        )
        if options.bounds:
            self._stack.enter_context(engine.watching(self._faults, races=True))
        self._faults.capture = self.capture

    def close(self) -> None:
        """Ends it. May be called again."""
        if self._open:
            self._open = False
            self._stack.close()
            self._faults.close()

    @property
    def tapes(self) -> Sequence[CapturedTape]:
        """Of those captured, the ones that hold something."""
        return () if self.capture is None else recorded(self.capture.tapes)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to check, nor anything to tell of frameworks."""
        functions = self._functions
        return not self.tapes and not functions.found and not functions.unwatched

    def report(self, name: str, terms: Terms, experience: Experience | None = None) -> Report:
        """Checks the tapes, and forgets them. name: of the test.

        Raises KeyboardInterrupt.
        """
        captured = [] if self.capture is None else self.capture.tapes
        self.capture = self._faults.capture = None

        def check() -> Outcome:
            frameworks = () if captured else in_place_of_engine(Target())
            outcome = check_tapes(captured, terms.options, None, experience)
            outcome = with_functions(outcome, self._functions, terms.options)
            return replace(outcome, frameworks=frameworks)

        return report_of(name, terms, check, lambda: self._faults.seen)

    def faults_of(self, kernels: Sequence[str]) -> tuple[Seen, ...]:
        """What launches of these kernels did wrong, by now."""
        return tuple(s for s in self._faults.seen if s.fault.kernel in kernels)


def report_of(
    name: str,
    terms: Terms,
    check: Callable[[], Outcome],
    faults: Callable[[], tuple[Seen, ...]],
    noted: FaultLog | None = None,
) -> Report:
    """The report of what `check` finds, and `faults` after it. Raises KeyboardInterrupt.

    noted: is told what the launches of the check do wrong; nobody is, at first.
    """
    start = time.monotonic()
    with _configured(terms.options), _watched(terms.options, noted):
        outcome = check()
    if outcome.kind == "interrupted":
        raise KeyboardInterrupt
    failure = endings.reported(outcome)
    if failure is None and not outcome.recorded and outcome.unwatched:
        failure = endings.unwatched(outcome.unwatched, told=False)
    elif failure is None and not outcome.recorded and outcome.undifferentiated:
        failure = endings.undifferentiated(outcome.undifferentiated)
    elif failure is None and not outcome.recorded and outcome.left_alone:
        failure = endings.untouched(outcome.left_alone, "test")
    elif failure is None and not outcome.recorded and outcome.unimported:
        failure = endings.unimported(outcome.unimported, "test")
    elif failure is None and not outcome.recorded:
        failure = endings.uncalled(outcome.frameworks, "test")
    session = Session(
        Target(script=name), terms.options, outcome.tapes, outcome.kernels, failure,
        time.monotonic() - start, recorded=outcome.recorded,
        faults=faults(), part=True, accuracy=terms.accuracy, notes=outcome.notes,
        unwatched=outcome.unwatched,
    )  # fmt: skip
    return build_report(settled_in_process(session), terms.gate, terms.choice)


def outcome_of(check: Callable[[], TapeResult], kernels: Sequence[str], what: str) -> Outcome:
    """The outcome of a check of one thing. what: what it is, where the engine refuses it.

    Raises engine.LaunchError for what is the caller's own fault: bad arguments.
    """
    try:
        with calm():
            result = check()
    except engine.LaunchError:
        raise
    except engine.EngineError as error:
        return refused(error, f"{what} could not be checked")
    return Outcome("done", tapes=(result,), kernels=tuple(kernels), recorded=(1,))


def _watched(options: CheckOptions, noted: FaultLog | None) -> AbstractContextManager[None]:
    """Lets no launch of a check damage memory."""
    if not options.bounds:
        return nullcontext()
    return engine.watching(noted, races=noted is not None)


@contextmanager
def _configured(options: CheckOptions) -> Iterator[None]:
    """The engine's settings, as the child has them. What the test sets itself stays."""
    config = engine.config
    before = config.snapshot_limit_bytes, config.overwrites
    limit = config.snapshot_limit_bytes = memory.limit(options.memory, before[0])
    if options.overwrites is not None:
        config.overwrites = options.overwrites
    try:
        yield
    finally:
        if config.snapshot_limit_bytes == limit:
            config.snapshot_limit_bytes = before[0]
        if options.overwrites is not None and config.overwrites == options.overwrites:
            config.overwrites = before[1]
