"""`adtool report`: writes the findings of a run as one HTML file."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.running import run
from adtool.commands.targets import one_target
from adtool.exits import Exit, ToolError
from adtool.gates import Gate, gate_of
from adtool.saying import say

if TYPE_CHECKING:
    from adtool.page.data import PageData

_PICTURES = 12  # launches whose Jacobians are shown


def report(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCRIPT [ARGS...] | REPORT.json | RUN.adt]",
            help="A script to check, or a report of `adtool check --format json`. "
            f"{opt.FOLLOWS} Without it: the last checked run in this folder.",
        ),
    ] = None,
    module: opt.Module = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--html",
            metavar="FILE",
            rich_help_panel=opt.OUTPUT,
            help="The file to write: a .html or .htm file.",
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
    alias: opt.Alias = None,
    device: opt.DeviceName = None,
    seed: opt.Seed = 0,
    timeout: opt.Timeout = opt.TIMEOUT,
    memory: opt.Memory = None,
    trust: opt.Trust = False,
    gate: opt.GateOption = None,
    no_color: opt.NoColor = False,
) -> None:
    """Write a page of a run and its findings: one HTML file, which needs no network.

    adtool runs and checks SCRIPT (or a capture), and the exit code is that of `adtool check`.
    Otherwise exit code 0: the page is written. 2: the command failed.
    """  # fmt: skip
    from adtool.job import CheckOptions
    from adtool.page.document import render_html
    from adtool.writing import write_file

    page = _page(out)
    code = int(Exit.CLEAN)
    name = words[0] if words else ""
    if not words and module is None:
        data = _last()
    elif module is None and name.lower().endswith(".json"):
        data = _file(name, words or [])
    else:
        plain = no_color or bool(ctx.obj)
        options = opt.chosen(CheckOptions, ctx.params)
        given = gate_of(gate)
        data, code = _checked(one_target("report", words, module), options, timeout, given, plain)
    write_file(render_html(data).encode("utf-8"), page)
    for remark in data.remarks:
        say(f"note: {remark}")
    say(f"page written to {page}")
    raise typer.Exit(code)


def _page(out: Path | None) -> Path:
    from adtool.writing import require_place

    if out is None:
        raise ToolError(
            "no file to write the page to is named", "name one with --out, like --out report.html"
        )
    require_place(out, ("html", "htm"), ("jinja2", "pygments", "matplotlib"))
    return out


def _last() -> PageData:
    from adtool import last as lasts
    from adtool.page.sources import page_data_of_last

    return page_data_of_last(lasts.read())


def _file(name: str, words: list[str]) -> PageData:
    from adtool.page.sources import page_data_of_json

    if len(words) > 1:
        raise ToolError(f"`{words[1]}` after `{name}`", "a report takes no arguments")
    return page_data_of_json(Path(name))


def _checked(
    target: object, options: object, timeout: float, gate: Gate, plain: bool
) -> tuple[PageData, int]:
    """Runs and checks a target as `adtool check` does; what it printed is on standard error."""
    from adtool.assemble import build_report
    from adtool.job import TRACES, CheckOptions, Job, Target
    from adtool.keeping import keeping
    from adtool.page.sources import page_data_of_session
    from adtool.render import text
    from adtool.reruns import settled

    assert isinstance(target, Target)
    assert isinstance(options, CheckOptions)
    start = time.monotonic()
    with keeping() as keep:
        job = Job(target, options, traces=TRACES, pictures=_PICTURES, keep=keep)
        session = run(job, timeout, stdout_to_stderr=True, no_color=plain)
        if session.failure is not None and session.failure.kind == "target":
            raise ToolError(session.failure.message, session.failure.help)  # nothing was begun
        from adtool.last import remember  # and with it the engine, which has come meanwhile

        session = settled(session, job, start + timeout if timeout > 0 else None)
        session = replace(session, accuracy=gate.accuracy)
        report = build_report(session, gate.severity)
        remember(session, report, keep)
    console = text.make_console(sys.stdout, plain)
    if report.error is None or report.launches:
        text.print_summary(report, console)
    if report.error is not None:
        text.print_failure(report.error, text.make_console(sys.stderr, plain))
    return page_data_of_session(session, report), report.exit_code
