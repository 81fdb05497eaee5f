"""`adtool graph`: draws a tape, coloured by the state of its gradients."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adtool.commands import options as opt
from adtool.commands.running import run
from adtool.commands.targets import one_target
from adtool.counts import counted
from adtool.exits import Exit, ToolError
from adtool.places import short
from adtool.saying import say
from adtool.writing import PLOTTING, require_place, write_file

if TYPE_CHECKING:
    from adtool.health import Health
    from adtool.job import CheckOptions, Job, Keep
    from adtool.last import Last
    from engine.autograd import GraphOptions, TapeTrace


class Direction(str, Enum):
    """Where the graph grows to."""

    LR = "LR"
    RL = "RL"
    TB = "TB"
    BT = "BT"


_KINDS = ("dot", "svg", "png", "pdf")


def graph(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCRIPT [ARGS...]]",
            help=f"The script, or `-` for standard input. {opt.FOLLOWS} Without it: the last run "
            "in this folder.",
        ),
    ] = None,
    module: opt.Module = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=opt.OUTPUT,
            help="Draw to this .dot, .svg, .png or .pdf file (default: print dot text).",
        ),
    ] = None,
    tape: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Draw this tape (default: the first with a problem).",
            rich_help_panel=opt.PICTURE,
        ),
    ] = None,
    failing: Annotated[
        bool,
        typer.Option(
            "--failing",
            help="Draw only the path to the first problem.",
            rich_help_panel=opt.PICTURE,
        ),
    ] = False,
    no_simplify: Annotated[
        bool,
        typer.Option(
            "--no-simplify", help="Draw every launch, also in loops.", rich_help_panel=opt.PICTURE
        ),
    ] = False,
    hide_readonly: Annotated[
        bool,
        typer.Option(
            "--hide-readonly",
            help="Leave out arrays that no operation writes.",
            rich_help_panel=opt.PICTURE,
        ),
    ] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LABEL",
            help="Use another name for an array; may be repeated.",
            rich_help_panel=opt.PICTURE,
        ),
    ] = None,
    short_names: Annotated[
        bool,
        typer.Option(
            "--short-names",
            help="If an array has several names, use the shortest.",
            rich_help_panel=opt.PICTURE,
        ),
    ] = False,
    no_scopes: Annotated[
        bool, typer.Option("--no-scopes", help="Draw no scopes.", rich_help_panel=opt.PICTURE)
    ] = False,
    track_input: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Always draw this array, as an input; may be repeated.",
            rich_help_panel=opt.PICTURE,
        ),
    ] = None,
    track_output: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Always draw this array, as an output; may be repeated.",
            rich_help_panel=opt.PICTURE,
        ),
    ] = None,
    direction: Annotated[
        Direction,
        typer.Option(
            metavar="LR|RL|TB|BT", help="The direction of the graph.", rich_help_panel=opt.PICTURE
        ),
    ] = Direction.LR,
    no_health: Annotated[
        bool,
        typer.Option(
            "--no-health", help="Colour arrays only by requires_grad.", rich_help_panel=opt.PICTURE
        ),
    ] = False,
    no_check: Annotated[
        bool,
        typer.Option(
            "--no-check", help="Run the script without checking gradients.", rich_help_panel=opt.RUN
        ),
    ] = False,
    alias: opt.Alias = None,
    device: opt.DeviceName = None,
    timeout: opt.Timeout = opt.TIMEOUT,
    memory: opt.Memory = None,
    no_color: opt.NoColor = False,
) -> None:
    """Draw a tape of a script: kernels, arrays, and the state of their gradients.

    Without SCRIPT it draws a tape of the last checked run in this folder. Exit code 0:
    drawn, even with wrong gradients. 2: there is nothing to draw.
    """  # fmt: skip
    text = out is None or out.suffix.lower() == ".dot"
    kind = require_place(out, _KINDS, ("graphviz",) if text else PLOTTING) or "dot"
    for word in label or ():
        if "=" not in word:
            raise ToolError(f"--label {word} is not NAME=LABEL", "write --label x=position")
    if not words and module is None:
        from adtool import last as lasts

        last = lasts.read()
    else:
        plain = no_color or bool(ctx.obj)
        target = one_target("graph", words, module)
        if target.capture:
            from adtool import last as lasts

            last = lasts.read(Path(target.name))
        else:
            from adtool.job import CheckOptions

            checks = CheckOptions(device=device, memory=memory, alias=alias)
            last = captured(target, checks, timeout, not no_check, plain)
    from adtool.figures.graphs import drawn
    from engine.autograd import GraphOptions
    from engine.autograd import graph as picture

    trace, health = _chosen(last, tape)
    options = GraphOptions(
        simplify=not no_simplify, hide_readonly=hide_readonly, longest=not short_names,
        scopes=not no_scopes, direction=direction.value,
    )  # fmt: skip
    options = _named(trace, options, label or (), track_input or (), track_output or ())
    lines = []
    if not no_health:
        options = replace(
            options,
            operations=health.operations,
            arrays=health.arrays,
            focus=health.first,
            first=health.place,
        )
    # What the picture cannot say by colours: that nobody looked.
    unseen = [words for words in (last.unchecked, health.unchecked, *last.remarks) if words]
    if last.unchecked:
        lines.append(f"{last.unchecked}: colours only show the norms of the "
                     "backward pass; run `adtool check SCRIPT` to find problems")  # fmt: skip
    if health.unchecked:
        lines.append(f"{health.unchecked}: run `adtool check SCRIPT` to check all")
    lines += [f"note: {remark}" for remark in last.remarks]
    if failing and health.first is None:
        what = (
            "no problem has a place in the picture" if health.outside
            else "no problem is known" if unseen
            else "no check failed"
        )  # fmt: skip
        lines.append(f"{what}: the whole tape is drawn")
    elif failing:
        from adtool.health import path_of

        assert health.first is not None
        options = replace(options, only=path_of(trace.listing, health.first))
    found = picture(trace.listing, options)
    if not no_health:
        found = replace(found, notes=(*found.notes, *unseen))
    data = drawn(found, kind)
    if health.first is not None:
        of = "" if health.array is None else f"array {_array(trace, health.array)}, first used by "
        lines.append(f"first problem: {of}{_operation(trace, health.first)}: {health.why}")
    for f in health.homeless:
        place = f" ({short(f.file)}:{f.line})" if f.file else ""
        suppressed = " (suppressed)" if f.suppressed else ""
        lines.append(f"not in the picture: {f.code} {f.name}{suppressed}{place}")
    if out is None:
        if failing:  # standard output is the picture
            say(*lines, file=sys.stderr)
        sys.stdout.write(data.decode("utf-8"))
        return
    write_file(data, out)
    many = last.traces.recorded
    operations = trace.listing.records
    say(f"tape {trace.tape} of {many} ({last.script}): {counted(operations, 'operation')}, "
          f"{counted(len(trace.listing.arrays), 'array')}")  # fmt: skip
    for line in (*dict.fromkeys(n for n in found.notes if n not in unseen), *lines):
        say(f"  {line}")
    say(f"drawn to {out}")


def captured(
    target: object, options: CheckOptions, timeout: float, check: bool, plain: bool
) -> Last:
    """Runs a target and gives what it recorded, which is kept if checked. Raises typer.Exit."""
    from adtool.job import TRACES, Job, Target
    from adtool.keeping import keeping

    assert isinstance(target, Target)
    if not check:
        return _captured(Job(target, options, check=False, traces=TRACES), None, timeout, plain)
    with keeping() as keep:
        job = Job(target, options, traces=TRACES, keep=keep)
        return _captured(job, keep, timeout, plain)


def _captured(job: Job, keep: Keep | None, timeout: float, plain: bool) -> Last:
    from adtool import last as lasts
    from adtool.assemble import build_report
    from adtool.endings import no_launch
    from adtool.remarks import not_kept
    from adtool.render import text
    from adtool.reruns import settled

    # What the script prints must not get into what is printed for the next program.
    start = time.monotonic()
    session = run(job, timeout, stdout_to_stderr=True, no_color=plain)
    if session.failure is not None:
        if job.check:
            not_kept(session.target.name, session.failure.message)
        text.print_failure(session.failure, text.make_console(sys.stderr, plain))
        raise typer.Exit(Exit.FAILURE)
    if job.check:
        session = settled(session, job, start + timeout if timeout > 0 else None)
    report = build_report(session, "error") if job.check else None
    found = lasts.last_of(session, report)
    if found is None or not found.traces.tapes:
        raise ToolError(*no_launch("graph", session.frameworks))
    if report is not None:
        lasts.remember(session, report, keep)
    return found


def _chosen(last: Last, number: int | None) -> tuple[TapeTrace, Health]:
    """The tape that was asked for; else the first with a problem, or the first."""
    from adtool.health import health

    tapes = last.traces.tapes
    if not tapes:
        if last.report is not None and last.report.foreign:
            from adtool.endings import no_launch

            used = list(dict.fromkeys(x.framework for x in last.report.launches))
            raise ToolError(*no_launch("graph", used, f"`{last.script}`"))
        raise ToolError(
            "the last run recorded nothing on a tape", "name a script that records a tape"
        )
    if number is not None:
        found = last.traces.tape(number)
        if found is None:
            there = f"tapes 0 to {last.traces.recorded - 1} were recorded"
            kept = f", of which {len(tapes)} were kept" if len(tapes) < last.traces.recorded else ""
            raise ToolError(f"no tape {number} to draw", there + kept)
        return found, health(last, found)
    each = [(t, health(last, t)) for t in tapes]
    for suppressed in (False, True):
        for level in ("error", "nonfinite", "warning"):
            for t, h in each:
                if h.mark is not None and (h.mark.level, h.mark.suppressed) == (level, suppressed):
                    return t, h
            severity = "warning" if level == "warning" else "error"
            kind = (severity, suppressed)
            for t, h in each:
                outside = (f for f in h.outside if f.tape == t.tape)
                if any((f.severity, f.suppressed) == kind for f in outside):
                    return t, h
    return next(((t, h) for t, h in each if h.first is not None), each[0])


def _named(
    trace: TapeTrace, options: GraphOptions, labels: Sequence[str], inputs: Sequence[str],
    outputs: Sequence[str],
) -> GraphOptions:  # fmt: skip
    arrays = trace.listing.arrays

    def find(name: str) -> int:
        for i, a in enumerate(arrays):
            if name in (a.name, a.short):
                return i
        known = [a.name for a in arrays if a.name][:12]
        raise ToolError(f"the tape has no array `{name}`",
                        "its arrays are " + ", ".join(known) if known else "")  # fmt: skip

    named = {}
    for text in labels:
        name, _, label = text.partition("=")
        named[find(name)] = label
    return replace(
        options, labels=named, inputs=tuple(map(find, inputs)), outputs=tuple(map(find, outputs))
    )


def _array(trace: TapeTrace, position: int) -> str:
    return f"`{trace.listing.arrays[position].name}`"


def _operation(trace: TapeTrace, index: int) -> str:
    x = next(o for o in trace.listing.operations if o.index == index)
    kernel = trace.listing.kernels[x.kernel]
    if x.launch < 0:
        return f"record {x.index} (`{kernel.name}`)"
    return f"launch {trace.tape}:{x.launch} of kernel `{kernel.name}`"
