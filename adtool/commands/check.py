"""`adtool check`: run a target, check its tapes, report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.options import Format, Gate
from adtool.commands.running import run
from adtool.commands.targets import one_target

if TYPE_CHECKING:
    from adtool.report import Report


# An option of the check itself is a parameter here and a field of the same name of
# `adtool.job.CheckOptions`; nothing else hands it on.
def check(
    ctx: typer.Context,
    words: opt.Words = None,
    module: opt.Module = None,
    eps: Annotated[
        float | None,
        typer.Option(
            help="Step of the differences (default: chosen by value).",
            callback=opt.above(0, True),
            rich_help_panel=opt.TUNING,
        ),
    ] = None,
    atol: Annotated[
        float | None,
        typer.Option(
            help="Absolute tolerance (default: chosen by scale).",
            callback=opt.above(0),
            rich_help_panel=opt.TUNING,
        ),
    ] = None,
    rtol: Annotated[
        float | None,
        typer.Option(help="Relative tolerance.", callback=opt.above(0), rich_help_panel=opt.TUNING),
    ] = None,
    kernels: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            metavar="PATTERN",
            help="Check only kernels of this name; may be repeated.",
            rich_help_panel=opt.CHOICE,
        ),
    ] = None,
    skip_kernels: Annotated[
        list[str] | None,
        typer.Option(
            "--skip-kernel",
            metavar="PATTERN",
            help="Leave out kernels of this name; may be repeated.",
            rich_help_panel=opt.CHOICE,
        ),
    ] = None,
    max_inputs: Annotated[
        int,
        typer.Option(
            help="Input scalars compared for each array; -1: all.", rich_help_panel=opt.CHOICE
        ),
    ] = -1,
    max_outputs: Annotated[
        int,
        typer.Option(
            help="Output scalars compared for each array; -1: all.", rich_help_panel=opt.CHOICE
        ),
    ] = -1,
    device: opt.DeviceName = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the random directions.", min=0, rich_help_panel=opt.RUN)
    ] = 0,
    timeout: opt.Timeout = opt.TIMEOUT,
    memory: opt.Memory = None,
    format: opt.FormatOption = Format.text,
    gate: Annotated[
        Gate,
        typer.Option(help="The least severity that gives exit code 1.", rich_help_panel=opt.OUTPUT),
    ] = Gate.error,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="One row for every pair of every launch.", rich_help_panel=opt.OUTPUT
        ),
    ] = False,
    no_color: opt.NoColor = False,
) -> None:
    """Run a script and check the gradients of every kernel launch that it records on a tape.

    Exit code 0: checked, nothing found. 1: findings at or above the gate. 2: the check
    could not be done (bad usage, the script failed, nothing was recorded).
    """  # fmt: skip
    from adtool.assemble import build_report
    from adtool.job import CheckOptions, Job

    target = one_target("check", words, module)
    plain = no_color or bool(ctx.obj)
    job = Job(target, opt.chosen(CheckOptions, ctx))
    session = run(job, timeout, stdout_to_stderr=format is Format.json, no_color=plain)
    report = build_report(session, gate.value)
    _print(report, format, verbose, plain)
    raise typer.Exit(report.exit_code)


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
