"""`adtool show`: prints the code of a kernel at a stage of its compilation."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.options import Format
from adtool.commands.running import run
from adtool.commands.targets import one_target
from adtool.exits import Exit, ToolError


class StageName(str, Enum):
    """The stages of a kernel."""

    ast = "ast"
    ir = "ir"
    adjoint = "adjoint"
    tangent = "tangent"
    cpp = "cpp"
    cuda = "cuda"
    cuda_adjoint = "cuda-adjoint"


def show(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT KERNEL [ARGS...]",
            help="The script, the name or a pattern of a kernel, and the arguments of the script.",
        ),
    ] = None,
    module: opt.Module = None,
    stage: Annotated[
        StageName,
        typer.Option(
            metavar="STAGE",
            rich_help_panel=opt.SHOWN,
            help="ast: the Python syntax tree; ir: the typed IR; adjoint: the backward pass; "
            "tangent: forward mode; cpp: the C++ code of the launch and its adjoint; cuda: "
            "the CUDA code of the launch; cuda-adjoint: the CUDA code of the adjoint.",
        ),
    ] = StageName.ir,
    alias: opt.Alias = None,
    device: opt.DeviceName = None,
    timeout: opt.Timeout = opt.TIMEOUT,
    format: opt.FormatOption = Format.text,
    no_color: opt.NoColor = False,
) -> None:
    """Print the code that runs for a kernel, beside its Python lines.

    The script is run, so that generic kernels have their types and gradients are those of
    its tapes; a kernel that it only defines is shown as it would run.

    Exit code 0: done. 2: the command failed.
    """  # fmt: skip
    from adtool.job import CheckOptions, Job, ListingOptions

    words = list(words or ())
    at = 0 if module is not None else 1
    if len(words) <= at or words[at] == "--":
        raise ToolError(
            "no kernel is named on the command line",
            "name one: adtool show SCRIPT KERNEL [ARGS...], or -m MODULE KERNEL",
        )
    kernel = words.pop(at)
    target = one_target("show", words, module)
    if target.capture:
        raise ToolError(
            f"`adtool show` takes no captures: `{target.name}`",
            f"name the script of the capture: adtool show SCRIPT {kernel}",
        )
    job = Job(
        target, CheckOptions(device=device, memory=0.0, alias=alias),
        listing=ListingOptions(kernel, stage.value),
    )  # fmt: skip
    plain = no_color or bool(ctx.obj)
    session = run(job, timeout, stdout_to_stderr=True, no_color=plain)
    from adtool.render import listing_text, text

    code = int(Exit.FAILURE if session.failure or session.listing is None else Exit.CLEAN)
    if format is Format.json:
        listing_text.print_json(session, code, sys.stdout)
    elif session.listing is not None:
        console = text.make_console(sys.stdout, plain)
        listing_text.print_listing(session.listing, console)
    sys.stdout.flush()
    if session.failure is not None:
        text.print_failure(session.failure, text.make_console(sys.stderr, plain))
    raise typer.Exit(code)
