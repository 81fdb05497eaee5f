"""`adtool check`: runs a target, checks its tapes, and reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adtool import places
from adtool.accuracy.entries import FACTOR
from adtool.commands import options as opt
from adtool.commands.options import CheckFormat, Overwrites
from adtool.commands.targets import targets_of
from adtool.configuration import Project
from adtool.exits import ToolError
from adtool.writing import PLOTS, PLOTTING, require_place


# An option of the check itself is a parameter here and a field of the same name of
# `adtool.job.CheckOptions`; nothing else hands it on.
def check(
    ctx: typer.Context,
    words: opt.Words = None,
    module: opt.Module = None,
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            rich_help_panel=opt.RUN,
            help=(
                "Treat all words as scripts, folders or patterns; write arguments for all of "
                "them after `--`."
            ),
        ),
    ] = False,
    jobs: opt.Jobs = None,
    executor: opt.ExecutorName = None,
    fail_fast: opt.FailFast = False,
    exclude: opt.Exclude = None,
    changed_since: opt.ChangedSince = None,
    eps: Annotated[
        float | None,
        typer.Option(
            metavar="STEP",
            help="Step of the differences (default: chosen by value).",
            callback=opt.above(0, True),
            rich_help_panel=opt.TUNING,
        ),
    ] = None,
    atol: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE",
            help="Absolute tolerance (default: chosen by scale).",
            callback=opt.above(0),
            rich_help_panel=opt.TUNING,
        ),
    ] = None,
    rtol: Annotated[
        float | None,
        typer.Option(
            metavar="SIZE",
            help="Relative tolerance.",
            callback=opt.above(0),
            rich_help_panel=opt.TUNING,
        ),
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
    tapes: Annotated[
        list[int] | None,
        typer.Option(
            "--tape",
            metavar="N",
            min=0,
            rich_help_panel=opt.CHOICE,
            help="Check only the tape of this number; may be repeated.",
        ),
    ] = None,
    launches: Annotated[
        list[str] | None,
        typer.Option(
            "--launch",
            metavar="N",
            callback=opt.launches,
            rich_help_panel=opt.CHOICE,
            help="Check only the launch of this number, of every tape, or of one tape: TAPE:N; "
            "may be repeated.",
        ),
    ] = None,
    end_to_end: Annotated[
        bool,
        typer.Option(
            "--end-to-end/--no-end-to-end",
            rich_help_panel=opt.CHOICE,
            help="Also check each tape as a whole.",
        ),
    ] = True,
    order: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=2,
            rich_help_panel=opt.CHOICE,
            help="2: also check the derivatives of the gradients of launches.",
        ),
    ] = 1,
    overwrites: Annotated[
        Overwrites | None,
        typer.Option(
            metavar="MODE",
            help="What the backward pass reads if the tape overwrote an array, unless the script "
            "sets it: restore, present (as Warp), warn or error.",
            rich_help_panel=opt.RUN,
        ),
    ] = None,
    rerun: Annotated[
        bool | None,
        typer.Option(
            "--rerun/--no-rerun",
            rich_help_panel=opt.CHOICE,
            help="Run the script again with moved inputs, if values go through the host or "
            "Tape.record_func is used (default: if the script takes less than 5 s).",
        ),
    ] = None,
    as_run: Annotated[
        bool | None,
        typer.Option(
            "--as-run/--no-as-run",
            rich_help_panel=opt.CHOICE,
            help="Run the script again unwatched, and compare the results of its backward passes "
            "(default: if it takes less than 5 s and compiled code takes over some "
            "launches).",
        ),
    ] = None,
    max_inputs: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of input scalars to compare for each array; -1: all.",
            rich_help_panel=opt.CHOICE,
        ),
    ] = -1,
    max_outputs: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of output scalars to compare for each array; -1: all.",
            rich_help_panel=opt.CHOICE,
        ),
    ] = -1,
    taylor: Annotated[
        bool,
        typer.Option(
            "--taylor",
            help="Add the Taylor remainder test: rates of convergence by step.",
            rich_help_panel=opt.CHOICE,
        ),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --taylor: write a log-log plot of the remainders (png, svg, pdf).",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    alias: opt.Alias = None,
    device: opt.DeviceName = None,
    seed: opt.Seed = 0,
    timeout: opt.Timeout = opt.TIMEOUT,
    memory: opt.Memory = None,
    trust: opt.Trust = False,
    bounds: Annotated[
        bool,
        typer.Option(
            "--bounds/--no-bounds",
            help="Look for accesses outside of arrays and for data races.",
            rich_help_panel=opt.CHOICE,
        ),
    ] = True,
    format: Annotated[
        CheckFormat,
        typer.Option(
            metavar="|".join(f.value for f in CheckFormat),
            rich_help_panel=opt.OUTPUT,
            help="The format on standard output. In all formats except text, the output of the "
            "script goes to standard error.",
        ),
    ] = CheckFormat.text,
    gate: opt.GateOption = None,
    baseline: opt.BaselineFile = None,
    factor: opt.Factor = FACTOR,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="Count only these findings and suppress others; may be repeated.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="Suppress these findings: they are counted but fail nothing; may be repeated.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    exit_zero: Annotated[
        bool,
        typer.Option(
            "--exit-zero",
            help="Exit with 0 even if there are findings.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = False,
    out: Annotated[
        list[str] | None,
        typer.Option(
            "--out",
            "--output",
            metavar="[FORMAT=]FILE",
            help="Also write a report in this format to a file; may be repeated. Without FORMAT: "
            "write the report in the format of --format, and leave standard output to the "
            "script.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    annotations: Annotated[
        bool,
        typer.Option(
            "--annotations/--no-annotations",
            help="In a step of GitHub Actions, add annotations and a summary.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = True,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Show one row for every pair of every launch, and all findings in full.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", help="Show only findings and the verdict.", rich_help_panel=opt.OUTPUT
        ),
    ] = False,
    durations: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Show the N slowest checks.", rich_help_panel=opt.OUTPUT
        ),
    ] = 0,
    fix: opt.WriteFixes = False,
    show_fixes: opt.ShowFixes = False,
    unsafe_fixes: opt.UnsafeFixes = False,
    no_color: opt.NoColor = False,
) -> None:
    """Run scripts and check the gradients of every kernel launch on their tapes.

    One script with arguments, as for `python`; or Python files, a folder, a pattern in quotes,
    or, with --each, any number of these. Write arguments for all of them after `--`.

    Exit code 0: checked, nothing found. 1: findings at or above the gate. 2: the check
    failed (bad usage, the script failed, no tape was recorded).
    """  # fmt: skip
    from adtool.commands.check_output import Style, outputs_of
    from adtool.commands.check_runs import CheckRuns
    from adtool.commands.check_tasks import tasks_of

    project: Project = ctx.meta["adtool.project"]
    fixes = None
    if fix or show_fixes or unsafe_fixes:
        from adtool.commands.check_fixes import fixing

        fixes = fixing(fix, show_fixes, unsafe_fixes)
    targets = targets_of("check", words, module, each, exclude or (), project)
    if plot is not None:
        require_place(Path(plot), PLOTS, PLOTTING)
        if not taylor:
            raise ToolError("--plot needs --taylor", "add --taylor")
        if len(targets) > 1:
            raise ToolError("--plot makes one picture", "name one script")
    beside = () if plot is None else (plot,)
    files, stdout = outputs_of(out or (), format.value, opt.in_settings(ctx, "out"), beside)
    style = Style(
        format.value, files, stdout, verbose, quiet, no_color or bool(ctx.obj), annotations,
        fixes.offers if fixes else "all",
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    if changed_since is not None:
        from adtool.touched import touched

        targets, notes = touched(targets, changed_since, Path(places.folder()))
    runs = CheckRuns(
        style, plot or "", jobs or 0, executor.value if executor else "", fail_fast, notes
    )
    tasks = tasks_of(ctx, targets, project, style.data_on_stdout)
    raise typer.Exit(fixes.run(runs, tasks) if fixes else runs.run(tasks))
