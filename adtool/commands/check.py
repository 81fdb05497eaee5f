"""`adtool check`: run a target, check its tapes, report."""

from __future__ import annotations

import math
import sys
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from adtool.exits import ToolError

if TYPE_CHECKING:
    from adtool.job import Job, Target
    from adtool.report import Report
    from adtool.session import Session

TIMEOUT = 600.0  # seconds: a script that loops for ever must end some day in CI, too


class Format(str, Enum):
    """Output formats."""

    text = "text"
    json = "json"


class Gate(str, Enum):
    """The least severity that makes the run fail."""

    error = "error"
    warning = "warning"
    note = "note"


class CheckCommand(TyperCommand):
    """Keeps everything after the first `--` from the parser: it belongs to the target."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses what comes before `--`."""
        if "--" in args:
            cut = args.index("--")
            ctx.meta["adtool.target_args"] = tuple(args[cut + 1 :])
            args = args[:cut]
        return list(super().parse_args(ctx, args))


def above(least: float, strict: bool = False) -> Any:
    """A callback that takes finite numbers from `least` on."""

    def check(value: float | None) -> float | None:
        if value is None:
            return value
        if not math.isfinite(value) or value < least or (strict and value == least):
            relation = "greater than" if strict else "at least"
            raise typer.BadParameter(f"{value} is not a finite number {relation} {least:g}")
        return value

    return check


_TUNING = "How closely derivatives are compared"
_CHOICE = "What is checked"
_RUN = "How the target runs"
_OUTPUT = "What is printed"


def check(
    ctx: typer.Context,
    script: Annotated[
        str | None,
        typer.Argument(metavar="SCRIPT [-- ARGS...]", help="The script, then its arguments."),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module, as `python -m`.")
    ] = None,
    eps: Annotated[
        float | None,
        typer.Option(
            help="Step of the differences (default: chosen by value).",
            callback=above(0, True),
            rich_help_panel=_TUNING,
        ),
    ] = None,
    atol: Annotated[
        float | None,
        typer.Option(
            help="Absolute tolerance (default: chosen by scale).",
            callback=above(0),
            rich_help_panel=_TUNING,
        ),
    ] = None,
    rtol: Annotated[
        float | None,
        typer.Option(help="Relative tolerance.", callback=above(0), rich_help_panel=_TUNING),
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Check only kernels of this name; may be repeated.",
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    skip_kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Leave out kernels of this name; may be repeated.",
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    max_inputs: Annotated[
        int,
        typer.Option(
            help="Input scalars compared for each array; -1: all.", rich_help_panel=_CHOICE
        ),
    ] = -1,
    max_outputs: Annotated[
        int,
        typer.Option(
            help="Output scalars compared for each array; -1: all.", rich_help_panel=_CHOICE
        ),
    ] = -1,
    device: Annotated[
        str | None, typer.Option(help="The device to run on, as cpu.", rich_help_panel=_RUN)
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the random directions.", min=0, rich_help_panel=_RUN)
    ] = 0,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            callback=above(0),
            rich_help_panel=_RUN,
            help="Time limit for script and checks together; 0: none.",
        ),
    ] = TIMEOUT,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GIB",
            callback=above(0),
            rich_help_panel=_RUN,
            help="Limit on copies of what launches read (default: 4, or a quarter of the memory).",
        ),
    ] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="With json, what the script prints goes to standard error.",
            rich_help_panel=_OUTPUT,
        ),
    ] = Format.text,
    gate: Annotated[
        Gate,
        typer.Option(help="The least severity that gives exit code 1.", rich_help_panel=_OUTPUT),
    ] = Gate.error,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="One row for every pair of every launch.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color", help="No colour (NO_COLOR does the same).", rich_help_panel=_OUTPUT
        ),
    ] = False,
) -> None:
    """Run a script and check the gradients of every kernel launch that it records on a tape.

    Exit code 0: checked, nothing found. 1: findings at or above the gate. 2: the check
    could not be done (bad usage, the script failed, nothing was recorded).
    """  # fmt: skip
    from adtool.job import CheckOptions, Job

    target = target_of("check", script, module, ctx.meta.get("adtool.target_args", ()))
    options = CheckOptions(
        eps, atol, rtol, tuple(kernel or ()), tuple(skip_kernel or ()),
        max_inputs, max_outputs, device, seed, memory,
    )  # fmt: skip
    plain = no_color or bool(ctx.obj)
    from adtool.traces import LIMIT

    session = run(Job(target, options, traces=LIMIT), timeout, format, plain)
    from adtool.assemble import build_report
    from adtool.last import remember

    report = build_report(session, gate.value)
    remember(session, report)
    _print(report, format, verbose, plain)
    raise typer.Exit(report.exit_code)


def target_of(
    command: str, script: str | None, module: str | None, args: tuple[str, ...]
) -> Target:
    """The target that a command line names. Raises ToolError where it names none, or two."""
    from adtool.job import Target

    if script is not None and module is not None:
        raise ToolError(
            f"both the script {script!r} and -m {module} are named",
            "one target is checked at a time; its own arguments come after `--`",
        )
    if script is None and module is None:
        raise ToolError(
            "no script is named",
            f"adtool {command} SCRIPT [-- ARGS...], or -m MODULE [-- ARGS...]",
        )
    return Target(script, module, args)


def run(job: Job, timeout: float, format: Format, no_color: bool) -> Session:
    """Runs the job's target, with a progress line on a terminal."""
    from adtool.report import Failure
    from adtool.session import Session, run_session

    silent = format is Format.json
    try:
        if not sys.stderr.isatty():
            return run_session(job, timeout=timeout, stdout_to_stderr=silent)
        from adtool.render.progress import CheckProgress
        from adtool.render.text import make_console

        with CheckProgress(make_console(sys.stderr, no_color)) as progress:
            return run_session(job, timeout=timeout, stdout_to_stderr=silent, watch=progress)
    except ToolError as error:  # a report all the same, for those who asked for JSON
        failure = Failure(error.kind, error.message, error.help)
        return Session(job.target, job.options, (), failure=failure)


def _print(report: Report, format: Format, verbose: bool, no_color: bool) -> None:
    from adtool.render import text

    if format is Format.json:
        from adtool.render import json

        json.print_report(report, sys.stdout)
    else:
        text.print_report(report, text.make_console(sys.stdout, no_color), verbose)
    sys.stdout.flush()
    if report.error is not None:
        text.print_failure(report.error, text.make_console(sys.stderr, no_color))
