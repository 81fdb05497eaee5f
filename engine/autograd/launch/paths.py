"""Tests whether a launch takes the same branches in float64 as in its own precision.

A check in float64 is one of the launch only where both do the same. Where a comparison, or a
conversion to an integer, turns out otherwise, another branch runs, or a loop that does not end.
Such a launch is steered: in float64, with what its floats decided in its own precision. Only where
that does not give its results either is it checked in its own precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from engine import ad
from engine.ad.decisions import MOST, WORDS
from engine.autograd.comparison.judgement import Comparison
from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.derived import can_lift, deciding, leave_unlifted, plain, steering
from engine.autograd.launch.directions import ROUNDING
from engine.autograd.launch.evaluation import Evaluation, EvaluationFailed, Evaluations, evaluations
from engine.autograd.launch.recorded_arguments import Argument, RecordedLaunch
from engine.compile.pipeline import Variants

# Results that differ by more, as a part of the largest, are looked into.
RESULTS = 1e-4
LARGEST = 1 << 22  # threads that are compared
# A loop that goes round so many times as often in float64, and so many times more, may not end.
MARGIN, LEAST = 4, 1000
ROUTES = 512 << 20  # bytes that the decisions of a launch may take


class Decisions:
    """What the floats of launches of one kind decide, in both precisions."""

    def __init__(self, launch: RecordedLaunch) -> None:
        self._made: tuple[Evaluation, Evaluation] | None = None
        self._fresh = True
        made = deciding(launch.variants) if can_lift(launch.variants) else None
        if made is not None:
            own, exact = (Evaluation(_asked(launch, v, np.iinfo(np.int64).max)) for v in made)
            self._made = own, exact

    def may_run_on(self, launch: RecordedLaunch, inside: bool = False) -> bool:
        """Whether a loop goes round much longer in float64. The kernel is not lifted again then.

        launch: one of the kind. inside: its runs need no watching.
        """
        if self._made is None:
            return False
        own, exact = self._made
        own.trust(inside)
        exact.trust(inside)
        mine = self._of(own, launch, np.iinfo(np.int64).max)
        most = MARGIN * int(mine[:, 1].max(initial=0)) + LEAST
        theirs = self._of(exact, launch, most)
        self._fresh = False
        return len(theirs) != len(mine) and _leave(launch)

    def differ(self, launch: RecordedLaunch) -> bool:
        """Whether floats decide otherwise in float64. The kernel is not lifted again then."""
        if self._made is None:
            return False
        own, exact = self._made
        mine = self._of(own, launch, np.iinfo(np.int64).max)
        theirs = self._of(exact, launch, int(mine[:, 1].max(initial=0)))
        return not np.array_equal(mine, theirs) and _leave(launch)

    def _of(self, evaluation: Evaluation, launch: RecordedLaunch, most: int) -> NDArray[np.int64]:
        """What each thread decided, and how often, for those that have come to their end."""
        asked = _asked(launch, evaluation.variants, most)
        if self._fresh:
            evaluation.ask(asked)
        else:
            evaluation.reload(asked)
        total = evaluation.threads
        words = evaluation.journaled_forward((0, LARGEST) if total > LARGEST else None)
        # A thread's words and the place where they begin; that alone where it was stopped.
        if len(words) != (WORDS + 1) * min(total, LARGEST):
            return np.zeros((0, WORDS), np.int64)
        return words.reshape(-1, WORDS + 1)[:, :WORDS]


def _asked(launch: RecordedLaunch, variants: Variants, most: int) -> RecordedLaunch:
    more = (*launch.arguments, Argument(MOST, most))
    return replace(launch, variants=variants, arguments=more)


def _leave(launch: RecordedLaunch) -> bool:
    leave_unlifted(launch.variants)
    return True


def takes_another_path(launch: RecordedLaunch) -> bool:
    """Whether floats decide otherwise in float64. The kernel is not lifted again then."""
    return Decisions(launch).differ(launch)


def may_run_on(launch: RecordedLaunch) -> bool:
    """Whether a loop goes round much longer in float64. The kernel is not lifted again then."""
    return Decisions(launch).may_run_on(launch)


def may_not_end(launch: RecordedLaunch) -> bool:
    """Whether floats decide how often a loop goes round, so that in float64 it may not end."""
    return can_lift(launch.variants) and _loops_by_floats(launch.variants)


@lru_cache(256)
def _loops_by_floats(variants: Variants) -> bool:
    return ad.loops_by_floats(plain(variants).prepared)


@contextmanager
def faithful(launch: RecordedLaunch) -> Iterator[Evaluations]:
    """A launch, ready to be evaluated, in float64 only where that gives its results."""
    if may_not_end(launch):
        may_run_on(launch)
    if launch.variants.can_lift and not can_lift(launch.variants):
        right = False  # another launch of the kernel was seen to take another path
    else:
        with evaluations(launch) as found:
            right = not (_results_differ(found) and takes_another_path(launch))
            if right:
                with _beside(launch) as path:
                    yield replace(found, path=path)
    if right:
        return
    with on_its_path(launch) as steered:
        if steered is not None:
            yield steered
            return
    with evaluations(launch) as found:
        yield found


@contextmanager
def _beside(launch: RecordedLaunch) -> Iterator[Callable[[], Evaluations | None]]:
    """What gives the launch on its path, made when it is first asked for."""
    with ExitStack() as stack:
        yield cache(lambda: stack.enter_context(on_its_path(launch)))


@contextmanager
def on_its_path(launch: RecordedLaunch) -> Iterator[Evaluations | None]:
    """A launch, ready to be evaluated, in float64 with what its floats decided.

    None where its floats decide nothing, or that does not give its results.
    """
    steered = _steered(launch)
    if steered is None:
        yield None
        return
    with evaluations(launch, steered) as found:
        yield None if _results_differ(found) else found


def _steered(launch: RecordedLaunch) -> RecordedLaunch | None:
    """The launch in float64 on the path that it took; None where that cannot be told."""
    made = steering(launch.variants)
    if made is None:
        return None
    scout, steered, names = made
    try:
        words = Evaluation(replace(launch, variants=scout)).journaled_forward(limit=ROUTES)
    except EvaluationFailed:
        return None
    route, starts = ad.routes(words)
    if len(starts) != int(np.prod(launch.dim, dtype=np.int64)):
        return None
    more = (Argument(names.route, route), Argument(names.starts, starts))
    return replace(launch, variants=steered, arguments=(*launch.arguments, *more))


def adjoints_differ(pairs: Mapping[tuple[str, str], Comparison]) -> bool:
    """Whether the launch's own adjoint is off by more than rounding makes likely."""
    return any(c.off > ROUNDING * c.scale for c in pairs.values())


def _results_differ(evaluated: Evaluations) -> bool:
    if not evaluated.inputs or not evaluated.outputs:
        return False  # nothing to be compared
    before = evaluated.own.initial
    with np.errstate(all="ignore"):
        if _some_differ(evaluated):
            return True
        # Outputs that had these results before, as of an earlier launch, have them without a
        # branch that writes them, too.
        moved = {
            b: before[b] + np.abs(before[b]) + 1
            for b in evaluated.outputs
            if b not in evaluated.readable and np.array_equal(evaluated.own.memory[b], before[b])
        }
        if not moved:
            return False
        with evaluated.own.at(moved), evaluated.exact.at(moved):
            return _some_differ(evaluated)


def _some_differ(evaluated: Evaluations) -> bool:
    own, exact = evaluated.own.forward(), evaluated.exact.forward()
    return any(
        not largest(own[b] - exact[b]) <= RESULTS * largest(exact[b]) for b in evaluated.outputs
    )
