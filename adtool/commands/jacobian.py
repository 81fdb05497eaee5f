"""`adtool jacobian`: plots and summarises the Jacobians of a recorded launch."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from adtool.commands import options as opt
from adtool.commands.options import Format
from adtool.commands.running import run
from adtool.commands.targets import one_target
from adtool.exits import Exit
from adtool.saying import say
from adtool.strays import suspects
from adtool.writing import PLOTS, PLOTTING, require_place, write_file

if TYPE_CHECKING:
    from adtool.session import Session


class ErrorKind(str, Enum):
    """What to plot in place of the Jacobian."""

    relative = "relative"
    absolute = "absolute"


def jacobian(
    ctx: typer.Context,
    words: opt.LookWords = None,
    module: opt.Module = None,
    kernel: Annotated[
        str,
        typer.Option(
            metavar="PATTERN",
            rich_help_panel=opt.SHOWN,
            help="The kernel, as for `check` (default: the only kernel, or the only one that "
            "fails a check; otherwise list all).",
        ),
    ] = "",
    launch: Annotated[
        str | None,
        typer.Option(
            metavar="TAPE:LAUNCH",
            callback=opt.one_launch,
            rich_help_panel=opt.SHOWN,
            help="The launch, numbered as in `check` (default: the first).",
        ),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", rich_help_panel=opt.SHOWN, help="Show only this input; may be repeated."
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=opt.SHOWN,
            help="Show only this output; may be repeated.",
        ),
    ] = None,
    error: Annotated[
        ErrorKind | None,
        typer.Option(
            metavar="relative|absolute",
            rich_help_panel=opt.SHOWN,
            help="Show the error of the adjoint, and check the launch.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--plot",
            metavar="FILE",
            rich_help_panel=opt.OUTPUT,
            help="Also draw to this .png, .svg or .pdf file.",
        ),
    ] = None,
    alias: opt.Alias = None,
    device: opt.DeviceName = None,
    timeout: opt.Timeout = opt.TIMEOUT,
    memory: opt.Memory = None,
    trust: opt.Trust = False,
    jobs: opt.ColumnJobs = None,
    executor: opt.ColumnExecutor = None,
    format: opt.FormatOption = Format.text,
    no_color: opt.NoColor = False,
) -> None:
    """Plot and summarise the Jacobians of a kernel launch on a tape of a script.

    Exit code 0: done, all entries finite (with --error: the gradient is right). 1: an entry is
    not finite, or wrong. 2: the evaluation failed.
    """  # fmt: skip
    from adtool.job import CheckOptions, JacobianOptions, Job

    kind = cast(Literal["", "png", "svg", "pdf"], require_place(out, PLOTS, PLOTTING))
    target = one_target("jacobian", words, module)
    options = JacobianOptions(
        kernel, tuple(input or ()), tuple(output or ()), _launch(launch), kind,
        "" if error is None else error.value,
    )  # fmt: skip
    check = CheckOptions(
        kernels=(kernel,) if kernel else (), device=device, memory=memory, trust=trust, alias=alias
    )
    plain = no_color or bool(ctx.obj)
    job = Job(target, check, options, suspects=suspects(target, opt.names(ctx)))
    if jobs or executor:
        from adtool.commands.jacobian_columns import with_derivatives

        job = with_derivatives(job, timeout, executor.value if executor else "", jobs or 0, plain)
    session = run(job, timeout, stdout_to_stderr=format is Format.json, no_color=plain)
    if session.failure is None and out is not None:
        write_file(session.plot, out)
    _print(session, format, plain, "" if out is None else str(out))
    raise typer.Exit(_code(session))


def _code(session: Session) -> int:
    if session.failure is not None or session.jacobian is None:
        return int(Exit.FAILURE)
    return int(Exit.FINDINGS if session.jacobian.wrong else Exit.CLEAN)


def _launch(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    tape, _, number = text.partition(":")
    return int(tape), int(number)


def _print(session: Session, format: Format, no_color: bool, plot: str) -> None:
    from adtool.assemble import strayed_notes
    from adtool.render import text

    if format is Format.json:
        from adtool.render import jacobian_text as render

        render.print_json(session, plot, _code(session), sys.stdout)
    elif session.jacobian is not None:
        from adtool.render import jacobian_text as render

        render.print_report(session.jacobian, plot, text.make_console(sys.stdout, no_color))
    sys.stdout.flush()
    for note in strayed_notes(session):
        say(f"note: {note}", file=sys.stderr)
    if session.failure is not None:
        text.print_failure(session.failure, text.make_console(sys.stderr, no_color))
