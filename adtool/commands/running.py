"""Runs a job for a command, with a progress line on a terminal.

Not for `check`, which makes tasks for executors (`check_tasks`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from adtool.exits import ToolError

if TYPE_CHECKING:
    from adtool.job import Job
    from adtool.session import Session


def run(
    job: Job, timeout: float, *, stdout_to_stderr: bool, no_color: bool, quiet: bool = False
) -> Session:
    """Runs the job's target. What the system refuses is a failure of the session.

    timeout: seconds for all, 0 for none. stdout_to_stderr: keeps standard output free of
    what the target prints. quiet: no progress line.
    """
    from adtool.report import Failure
    from adtool.session import Session, run_session

    try:
        if quiet or not sys.stderr.isatty():
            return run_session(job, timeout=timeout, stdout_to_stderr=stdout_to_stderr)
        from adtool.render.progress import CheckProgress
        from adtool.render.text import make_console

        with CheckProgress(make_console(sys.stderr, no_color)) as progress:
            return run_session(
                job, timeout=timeout, stdout_to_stderr=stdout_to_stderr, watch=progress
            )
    except ToolError as error:  # a report all the same, for those who asked for JSON
        failure = Failure(error.kind, error.message, error.help)
        return Session(job.target, job.options, (), failure=failure)
