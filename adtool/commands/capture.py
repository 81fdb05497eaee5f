"""`adtool capture`: runs a target and keeps its recording in a file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.running import run
from adtool.commands.targets import one_target
from adtool.counts import counted
from adtool.exits import Exit, ToolError
from adtool.memory import in_words
from adtool.places import here
from adtool.saying import say
from adtool.writing import name_as, partial_of, require_place, unwritable

if TYPE_CHECKING:
    from adtool.report import Report
    from adtool.session import Session

_BYTES = 64 << 30  # of contents of arrays
_RECORDS = 1 << 40


def capture(
    ctx: typer.Context,
    words: opt.LookWords = None,
    module: opt.Module = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The file to write, like run.adt (default: the name of the script).",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Also check gradients, and store the report in the capture.",
            rich_help_panel=opt.KEPT,
        ),
    ] = False,
    kernels: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            metavar="PATTERN",
            rich_help_panel=opt.KEPT,
            help="Store only the arrays that kernels of this name read; may be repeated.",
        ),
    ] = None,
    alias: opt.Alias = None,
    device: opt.DeviceName = None,
    timeout: opt.Timeout = opt.TIMEOUT,
    memory: opt.Memory = None,
    no_color: opt.NoColor = False,
) -> None:
    """Run a script and write its tapes to a file, to check them elsewhere with `check run.adt`.

    The file holds the kernels (as typed code and as source), the contents of all arrays that
    they read, and the source files that they come from; reading it executes nothing.
    Exit code 0: written, even with wrong gradients. 2: the capture failed.
    """  # fmt: skip
    from adtool.job import TRACES, CheckOptions, Job, Keep

    target = one_target("capture", words, module)
    if target.capture:
        raise ToolError(f"`{target.script}` is a capture already", "copy it")
    named = "stdin" if target.text is not None else target.name.removeprefix("-m ")
    path = out or Path(f"{Path(named).stem or 'run'}.adt")
    plain = no_color or bool(ctx.obj)
    require_capture(path)
    start, root = time.monotonic(), here()
    with partial_of(path) as partial:
        job = Job(
            target, CheckOptions(
                device=device, memory=memory, kernels=tuple(kernels or ()), alias=alias
            ),
            check=check, traces=TRACES, keep=Keep(partial, _BYTES, _RECORDS, root),
        )  # fmt: skip
        session = run(job, timeout, stdout_to_stderr=False, no_color=plain)
        if session.failure is not None:
            from adtool.render import text

            text.print_failure(session.failure, text.make_console(sys.stderr, plain))
            raise typer.Exit(Exit.FAILURE)
        if check:
            from adtool.reruns import settled

            session = settled(session, job, start + timeout if timeout > 0 else None)
        finished(session, partial, path)
    tapes, launches = len(session.recorded), sum(session.recorded)
    size = path.stat().st_size
    say(f"{counted(tapes, 'tape')}, {counted(launches, 'launch')}: "
          f"captured to {path}, {in_words(size)}")  # fmt: skip


def require_capture(path: Path) -> None:
    """Raises ToolError where it is plain that a capture cannot be written there."""
    if path.suffix in (".py", ".pyi", ".pyw"):
        raise ToolError(
            f"`{path}` cannot be written: a capture must not have the name of a Python file",
            "name it like run.adt",
        )
    require_place(path)
    if path.exists() and not path.is_file():
        raise ToolError(f"`{path}` cannot be written: adtool cannot replace this file",
                        "name another one")  # fmt: skip


def finished(session: Session, partial: str, path: Path) -> None:
    """Completes a capture and gives it its name. Raises ToolError."""
    from adtool import last
    from adtool.endings import no_launch

    written = session.written
    if not session.recorded:
        raise ToolError(*no_launch("capture", session.frameworks))
    if written is None or written.why:
        why = "it was not written" if written is None else written.why
        raise unwritable(path, why)
    try:
        last.capture(session, _report(session), Path(partial))
        name_as(partial, path)
    except OSError as error:
        raise unwritable(path, error) from None


def _report(session: Session) -> Report | None:
    if not session.tapes:
        return None
    from adtool.assemble import build_report

    return build_report(session, "error")
