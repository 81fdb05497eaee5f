"""Checks one capture in parts, on several cores or machines, with one report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from adtool import codec
from adtool.executors import executor
from adtool.executors.base import Watch
from adtool.job import Part
from adtool.keeping import keeping

if TYPE_CHECKING:
    from adtool.report import Report
    from adtool.tasks.check_part import PartChecked
    from adtool.tasks.check_script import CheckScript


def check_in_parts(task: CheckScript, name: str, jobs: int, watch: Watch | None) -> Report:
    """Checks the capture of a task by an executor of a name. Its parts do not depend on that.

    Raises ToolError where the capture cannot be read.
    """
    from adtool.captures.container import CaptureReader
    from adtool.captures.parts import merged, parts_of, wholes_of
    from adtool.captures.run import Run
    from adtool.last import remember
    from adtool.report import Failure
    from adtool.reruns import settled
    from adtool.session import Session

    start = time.monotonic()
    job = task.job
    with CaptureReader(Path(str(job.target.script))) as reader:
        run = Run(reader)
        run.tell_sources()
        faults, recorded, traces = run.faults(), run.head.recorded, run.traces()
    found = _results(task, parts_of(recorded), name, jobs, watch)
    tapes = merged([t for x in found for t in x.tapes])
    failure = next((x.failure for x in found if x.failure is not None), None)
    if failure is None:
        wholes = _results(task, wholes_of(tapes, job.options), name, jobs, watch)
        failure = next((x.failure for x in wholes if x.failure is not None), None)
        tapes = merged([*tapes, *(t for x in wholes for t in x.tapes)])
    first = found[0] if found else None
    if failure is None and (first is None or first.recorded != recorded):
        failure = Failure("target", f"`{job.target.name}` cannot be used: it does not hold the "
                          "launches that its run.json says")  # fmt: skip
    session = Session(
        job.target, job.options, tapes, first.kernels if first else (), failure,
        time.monotonic() - start, recorded=first.recorded if first else (), faults=faults,
        traces="" if traces is None else codec.dumps(traces),
    )  # fmt: skip
    session = settled(session, job, None)
    report = task.report(session)
    with keeping() as keep:
        remember(session, report, keep)
    return report


def _results(
    task: CheckScript, parts: Sequence[Part], name: str, jobs: int, watch: Watch | None
) -> list[PartChecked]:
    from adtool.tasks.check_part import CheckPart

    tasks = [CheckPart(replace(task.job, part=p), task.timeout) for p in parts]
    return [f.result for f in executor(name, jobs).run(tasks, watch=watch)] if tasks else []
