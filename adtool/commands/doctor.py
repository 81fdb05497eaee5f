"""`adtool doctor`: tells what is installed on this machine and what is missing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.options import Format


def doctor(
    ctx: typer.Context,
    format: Annotated[
        Format,
        typer.Option(
            metavar="text|json", rich_help_panel=opt.OUTPUT, help="The format of the output."
        ),
    ] = Format.text,
    no_color: opt.NoColor = False,
) -> None:
    """Check the compiler, the kernel cache, CUDA and every framework, and list what to install.

    A kernel is compiled and run, with its gradient, in a process of its own.

    Exit code 0: kernels run on the CPU. 2: they do not.
    """  # fmt: skip
    from adtool.doctor import examine

    report = examine()
    if format is Format.json:
        from adtool.codec import dumps

        sys.stdout.write(dumps(report, indent=2) + "\n")
    else:
        from adtool.render import doctor_text, text

        doctor_text.print_report(report, text.make_console(sys.stdout, no_color or bool(ctx.obj)))
    sys.stdout.flush()
    raise typer.Exit(report.exit_code)
