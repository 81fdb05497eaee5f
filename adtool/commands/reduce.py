"""`adtool reduce`: shrinks a capture to a smaller one with the same finding."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.capture import finished, require_capture
from adtool.commands.running import run
from adtool.commands.targets import one_target
from adtool.counts import counted
from adtool.exits import Exit, ToolError
from adtool.memory import in_words
from adtool.saying import say
from adtool.writing import partial_of


def reduce(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="CAPTURE", help="A file of `adtool capture`.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            rich_help_panel=opt.OUTPUT,
            help="The smaller capture (default: NAME.min.adt).",
        ),
    ] = None,
    code: Annotated[
        str,
        typer.Option(
            metavar="CODE",
            rich_help_panel=opt.KEPT,
            help="The finding to keep (default: the worst).",
        ),
    ] = "",
    kernel: Annotated[
        str,
        typer.Option(
            metavar="PATTERN", rich_help_panel=opt.KEPT, help="Keep a finding of this kernel."
        ),
    ] = "*",
    most: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            rich_help_panel=opt.KEPT,
            help="The largest number of checks to run.",
        ),
    ] = 300,
    seed: opt.Seed = 0,
    timeout: opt.Timeout = opt.TIMEOUT,
    trust: opt.Trust = False,
    no_color: opt.NoColor = False,
) -> None:
    """Shrink a capture to the fewest launches, threads and elements that still show a finding.

    Exit code 0: written. 2: the reduction failed, or the capture has no such finding.
    """  # fmt: skip
    from adtool.job import CheckOptions, Job, Keep, ReduceOptions
    from adtool.suppressions import codes

    target = one_target("reduce", words, None)
    if not target.capture:
        raise ToolError(
            f"`{target.name}` is not a capture", "make one: adtool capture SCRIPT --out run.adt"
        )
    wanted = codes("--code", [code])[0] if code else ""
    source = Path(target.name)
    path = out or source.with_suffix(".min.adt")
    plain = no_color or bool(ctx.obj)
    require_capture(path)
    with partial_of(path) as partial:
        job = Job(
            target, CheckOptions(seed=seed, trust=trust, end_to_end=True),
            keep=Keep(partial, 1 << 62, 1 << 62), reduce=ReduceOptions(wanted, kernel, most),
        )  # fmt: skip
        session = run(job, timeout, stdout_to_stderr=False, no_color=plain)
        if session.failure is not None or session.found is None:
            from adtool.render import text

            if session.failure is not None:
                text.print_failure(session.failure, text.make_console(sys.stderr, plain))
            raise typer.Exit(Exit.FAILURE)
        before = _held(source)
        finished(session, partial, path)
    found = session.found
    of = f" of kernel `{found.kernel}`" if found.kernel else ""
    launches = [x for t in session.tapes for x in t.launches]
    say(f"{found.code} {found.name}{of} stays in {counted(len(launches), 'launch')}:")
    for x in launches[:12]:
        say(f"  {x.kernel}, dim {' x '.join(map(str, x.dim))}")
    if len(launches) > 12:
        say(f"  and {len(launches) - 12} more")
    after = _held(path)
    if after >= before:
        say("no part of the capture could be left out")
    # The file may be larger all the same: it has the check's report, too.
    done = "reduced" if after < before else "written"
    say(f"{done} to {path}, {in_words(path.stat().st_size)}: {in_words(after)} of "
          f"{in_words(before)} of arrays and operations")  # fmt: skip


def _held(path: Path) -> int:
    """Bytes of a capture's arrays and operations, unpacked."""
    from adtool.captures import container

    with zipfile.ZipFile(path) as file:
        return sum(
            x.file_size for x in file.infolist()
            if x.filename == container.TAPES or x.filename.startswith(container.ARRAYS)
        )  # fmt: skip
