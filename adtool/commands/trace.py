"""`adtool trace`: prints a tape as a table, with times and gradient norms."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.options import Format
from adtool.commands.running import run
from adtool.commands.targets import one_target
from adtool.exits import Exit, ToolError
from adtool.saying import say
from adtool.writing import PLOTS, PLOTTING, require_place, write_file

if TYPE_CHECKING:
    from adtool.course import Row
    from adtool.last import Last
    from engine.autograd import TapeTrace

_TOP = 40


class Sort(str, Enum):
    """What rows are sorted by: the order of the tape, names, or the largest first."""

    order = "order"
    kernel = "kernel"
    bytes = "bytes"
    forward = "forward"
    backward = "backward"
    gradient = "gradient"


def trace(
    ctx: typer.Context,
    words: opt.LookWords = None,
    module: opt.Module = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            rich_help_panel=opt.SHOWN,
            help="Show only kernels of this name; may be repeated.",
        ),
    ] = None,
    sort: Annotated[
        Sort,
        typer.Option(
            metavar="KEY",
            rich_help_panel=opt.SHOWN,
            help="The order of the rows: order (of the tape), kernel, bytes, forward, backward "
            "or gradient; numbers in descending order.",
        ),
    ] = Sort.order,
    reverse: Annotated[
        bool,
        typer.Option("--reverse", rich_help_panel=opt.SHOWN, help="Reverse the order."),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            rich_help_panel=opt.SHOWN,
            help="The number of rows; 0: all (default: 40 in text).",
        ),
    ] = None,
    tape: Annotated[
        int, typer.Option(metavar="N", min=0, rich_help_panel=opt.SHOWN, help="Which tape.")
    ] = 0,
    explodes: Annotated[
        float,
        typer.Option(
            metavar="FACTOR",
            callback=opt.above(1, True),
            rich_help_panel=opt.SHOWN,
            help="The growth, relative to the first norm, that counts as exploding.",
        ),
    ] = 1e6,
    vanishes: Annotated[
        float,
        typer.Option(
            metavar="FACTOR",
            callback=opt.above(0),
            rich_help_panel=opt.SHOWN,
            help="The part of the first norm below which the gradient counts as dead.",
        ),
    ] = 1e-6,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--plot",
            metavar="FILE",
            rich_help_panel=opt.OUTPUT,
            help=(
                "Also draw the norm of the gradient along the tape to this .png, .svg or .pdf file."
            ),
        ),
    ] = None,
    alias: opt.Alias = None,
    device: opt.DeviceName = None,
    timeout: opt.Timeout = opt.TIMEOUT,
    format: opt.FormatOption = Format.text,
    no_color: opt.NoColor = False,
) -> None:
    """Show a tape of a script as a table: launches, arrays, times, gradients.

    Nothing is checked. Times and norms are those of the first backward pass of each tape.
    Exit code 0: shown. 2: the command failed.
    """  # fmt: skip
    from adtool.job import TRACES, CheckOptions, Job
    from adtool.last import last_of, read
    from adtool.report import Failure
    from adtool.session import Session

    kind = require_place(out, PLOTS, PLOTTING)
    target = one_target("trace", words, module)
    plain = no_color or bool(ctx.obj)
    job = Job(target, CheckOptions(device=device, alias=alias), check=False, traces=TRACES)
    session = Session(target, job.options, ())
    if not target.capture:
        session = run(job, timeout, stdout_to_stderr=format is Format.json, no_color=plain)
    failure, last, found = session.failure, None, None
    if failure is None:
        try:
            last = read(Path(target.name)) if target.capture else last_of(session, None)
            found = _tape(last, tape, session.frameworks)
        except ToolError as error:
            failure = Failure(error.kind, error.message, error.help)
    if failure is not None or last is None or found is None:
        _failed(target.name, failure, format, plain)
        raise typer.Exit(Exit.FAILURE)

    from adtool.course import course
    from adtool.render import text, trace_text

    seen = course(found, explodes, vanishes)
    rows = sorted_rows(seen.rows, kernel or (), sort, reverse)
    if kernel and not rows:
        names = ", ".join(f"`{k}`" for k in dict.fromkeys(r.kernel for r in seen.rows))
        raise ToolError(f"no operation of tape {tape} matches --kernel", f"it holds {names}")
    if out is not None:
        from adtool.figures.norms import plot as draw

        write_file(draw(seen, kind, f"{last.script}, tape {tape}"), out)
    shown = "" if out is None else str(out)
    if format is Format.json:
        kept = rows[: top or None]
        trace_text.print_json(target.name, last, found, seen, kept, shown, None, sys.stdout)
    else:
        console = text.make_console(sys.stdout, plain)
        most = _TOP if top is None else top
        trace_text.print_trace(last, found, seen, rows, most, shown, console)
    sys.stdout.flush()
    for remark in last.remarks:
        say(f"note: {remark}", file=sys.stderr)


def _failed(script: str, failure: object, format: Format, plain: bool) -> None:
    from adtool.render import text, trace_text
    from adtool.report import Failure

    assert isinstance(failure, Failure)
    if format is Format.json:
        trace_text.print_json(script, None, None, None, (), "", failure, sys.stdout)
        sys.stdout.flush()
    text.print_failure(failure, text.make_console(sys.stderr, plain))


def _tape(last: Last | None, number: int, frameworks: Sequence[str]) -> TapeTrace:
    if last is None or not last.traces.tapes:
        from adtool.endings import no_launch

        raise ToolError(*no_launch("trace", frameworks))
    found = last.traces.tape(number)
    if found is None:
        raise ToolError(
            f"no tape {number} to show", f"tapes 0 to {last.traces.tapes[-1].tape} were kept"
        )
    return found


def sorted_rows(
    rows: Sequence[Row], patterns: Sequence[str], sort: Sort, reverse: bool
) -> list[Row]:
    """The rows of some kernels (all without a pattern), in that order."""
    kept = [r for r in rows if not patterns or any(fnmatchcase(r.kernel, p) for p in patterns)]
    if sort is Sort.kernel:
        kept.sort(key=lambda r: r.kernel)
    elif sort is not Sort.order:
        # What is not finite comes first, what is not known last.
        def size(r: Row) -> float:
            value = getattr(r, sort.value)
            return -1.0 if value is None else math.inf if math.isnan(value) else float(value)

        kept.sort(key=size, reverse=True)
    return kept[::-1] if reverse else kept
