"""Evaluates the columns of a capture's Jacobians on several cores or machines."""

from __future__ import annotations

import os
from dataclasses import replace

from adtool import codec
from adtool.commands.check_runs import watching
from adtool.executors import executor
from adtool.exits import ToolError
from adtool.job import Columns, Job

_SHARES = 8  # where the executor is to say how many workers there are


def with_derivatives(job: Job, timeout: float, name: str, jobs: int, no_color: bool) -> Job:
    """The job with its derivatives, which an executor of this name evaluates in shares.

    A share that fails is left to the job itself, which then says why.
    Raises ToolError where the target is a program: it would be run once for each share.
    """
    from adtool.tasks.jacobian_columns import JacobianColumns

    if not job.target.capture:
        raise ToolError(
            "--jobs and --executor share the columns of a capture's Jacobian",
            f"capture the program first: adtool capture {job.target.name} --out run.adt",
        )
    cores = os.cpu_count() or 1
    # More than there are cores help only where there are other machines.
    count = jobs or _SHARES if name == "ray" else min(jobs or cores, cores)
    name = name or ("serial" if jobs == 1 else "processes")
    tasks = [
        JacobianColumns(replace(job, columns=Columns(n, count)), timeout) for n in range(count)
    ]
    found: list[object] = []
    with watching(False, False, no_color) as watch:
        for finished in executor(name, jobs).run(tasks, watch=watch):
            if finished.task.interrupted(finished.result):
                raise ToolError(finished.result.failure.message)
            text = finished.result.derivatives
            found += codec.parse(text) if text else []
    return replace(job, derivatives=codec.dumps(found))
