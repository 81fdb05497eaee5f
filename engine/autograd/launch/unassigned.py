"""Finds variables that a launch reads before their assignment, while it runs."""

from __future__ import annotations

from dataclasses import replace

from engine.autograd.launch.derived import watching
from engine.autograd.launch.evaluation import Evaluation
from engine.autograd.launch.recorded_arguments import RecordedLaunch
from engine.diagnostics import Span


def unassigned_reads(launch: RecordedLaunch) -> tuple[tuple[str, Span], ...]:
    """Names and places, in the order in which they stand. Raises EvaluationFailed."""
    found = watching(launch.variants)
    if found is None:
        return ()
    variants, reads = found
    words = Evaluation(replace(launch, variants=variants)).journaled_forward()
    # Places where threads' words begin are not negative.
    seen = sorted({-1 - int(w) for w in words[words < 0]})
    return tuple(dict.fromkeys((reads[k].name, reads[k].span) for k in seen))
