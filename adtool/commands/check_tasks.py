"""Makes the tasks of `adtool check` for executors, with the options of each project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import typer

from adtool.accuracy.entries import Expected
from adtool.commands import options as opt
from adtool.commands.baselines import expectations
from adtool.configuration import Project, overridden
from adtool.gates import gate_of
from adtool.job import TRACES, CheckOptions, Job, Target
from adtool.strays import suspects
from adtool.suppressions import Choice, codes
from adtool.tasks.check_script import CheckScript


def tasks_of(
    ctx: typer.Context, targets: Sequence[Target], project: Project, stdout_to_stderr: bool
) -> list[CheckScript]:
    """A task for each target.

    Overrides of the project come before its other settings, later ones before earlier ones, and
    what stands on the command line before all. Raises ToolError for codes that are none.
    """
    known = opt.names(ctx)
    expected = expectations(ctx.params["baseline"], ctx.params["factor"])
    return [
        _task(target, _params(ctx, target, project), known, stdout_to_stderr, len(targets) == 1,
              expected(target))
        for target in targets
    ]  # fmt: skip


def _task(
    target: Target,
    params: dict[str, Any],
    known: Sequence[str],
    stdout_to_stderr: bool,
    only: bool,
    expected: Expected | None,
) -> CheckScript:
    gate = gate_of(params["gate"])
    options = opt.chosen(CheckOptions, params)
    if params["plot"] is not None:
        options = replace(options, taylor=True)
    return CheckScript(
        Job(target, options, suspects=suspects(target, known), traces=TRACES),
        params["timeout"],
        gate.severity,
        Choice(*(codes(f"--{name}", params[name] or ()) for name in ("select", "ignore"))),
        params["exit_zero"],
        stdout_to_stderr,
        keep=only,
        accuracy=gate.accuracy,
        expected=expected,
    )


def _params(ctx: typer.Context, target: Target, project: Project) -> dict[str, Any]:
    params = dict(ctx.params)
    for name, value in overridden(project, None if target.text else target.script).items():
        source = ctx.get_parameter_source(name)
        if getattr(source, "name", "") not in ("COMMANDLINE", "ENVIRONMENT"):
            params[name] = value
    return params
