"""`adtool baseline`: stores the accuracy of gradients, and compares with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adtool.accuracy.entries import Baseline, Expected
from adtool.accuracy.measuring import measured_report
from adtool.commands import options as opt
from adtool.commands.baselines import expected, name_of
from adtool.commands.check import check
from adtool.counts import counted
from adtool.exits import Exit, ToolError
from adtool.places import short
from adtool.report import FAULTS, Report, runs_exit_code
from adtool.saying import say
from adtool.writing import require_place

if TYPE_CHECKING:
    from adtool.accuracy.comparison import Comparison
    from adtool.commands.check_output import Style
    from adtool.configuration import Project
    from adtool.job import Target
    from adtool.tasks.check_script import CheckScript

ACTIONS = ("write", "compare")
# Options of `check` that this has, too: what is said of how targets run and are checked.
_LEFT_OUT = ("ctx", "words", "changed_since", "exit_zero", "plot", "taylor", "durations")
_Adopt = Annotated[
    bool,
    typer.Option(
        "--adopt", rich_help_panel=opt.OUTPUT,
        help="With compare: add new entries to the file, and remove those that no longer exist.",
    ),
]  # fmt: skip


def _like_check(function: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of `check`, in the place of its keywords."""
    # Not `get_type_hints`: Python 3.10 has it hide what stands beside a default of None.
    hints = inspect.get_annotations(check, eval_str=True)
    kept = [
        p.replace(annotation=hints[name])
        for name, p in inspect.signature(check).parameters.items() if name not in _LEFT_OUT
    ]  # fmt: skip
    own = inspect.signature(function)
    found = inspect.get_annotations(function, eval_str=True)
    first = [
        p.replace(annotation=found[name])
        for name, p in own.parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD
    ]  # fmt: skip
    parameters = [*first, *kept]
    function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    return function


@_like_check
def baseline(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGS...]",
            help="The scripts to check, as for `adtool check`; compare also takes a report.json.",
        ),
    ] = None,
    adopt: _Adopt = False,
    **given: Any,
) -> None:
    """Store the accuracy of the gradients of scripts in a file, or compare with it.

    adtool baseline write: check scripts, and write accuracies and findings to the file.
    adtool baseline compare: check scripts, and report lower accuracy, as `adtool check --baseline`.

    Exit codes of write: 0: written. 2: a script could not be checked. Of compare: as of check.
    """  # fmt: skip
    action = ctx.meta.get("adtool.action")
    if action not in ACTIONS:
        what = (
            "no action is named on the command line"
            if action is None
            else f"`{action}` is not an action"
        )
        raise ToolError(
            what, "adtool baseline write SCRIPT..., or adtool baseline compare SCRIPT..."
        )
    if adopt and action != "compare":
        raise ToolError(
            "--adopt works only with `baseline compare`", "`baseline write` stores all entries"
        )
    from adtool.accuracy import store
    from adtool.commands.check_output import Style, outputs_of

    project: Project = ctx.meta["adtool.project"]
    path = Path(short(given["baseline"] or str(project.folder / store.NAME)))
    if action == "write" or adopt:
        require_place(path)
    format = given["format"].value
    files, stdout = outputs_of(
        given["out"] or (), format, opt.in_settings(ctx, "out"), (str(path),)
    )
    style = Style(
        format, files, stdout, given["verbose"], given["quiet"],
        given["no_color"] or bool(ctx.obj), given["annotations"],
    )  # fmt: skip
    if action == "compare" and words and words[0].lower().endswith(".json"):
        raise typer.Exit(_compare_reports(words, path, given["factor"], style, adopt))
    if words and words[0].lower().endswith(".json"):
        raise ToolError(
            f"`{words[0]}` is not a script: `baseline write` runs a script",
            "adtool baseline write SCRIPT...; only `compare` takes reports",
        )
    from adtool.commands.targets import targets_of

    targets = targets_of(
        f"baseline {action}", words, given["module"], given["each"], given["exclude"] or (), project
    )
    # The parts of `check` that are left out here, as if they had not been named.
    ctx.params.update({"plot": None, "exit_zero": False, "taylor": False, "durations": 0})
    old = Baseline() if action == "write" and not path.exists() else store.read(path)
    ctx.params["baseline"] = None if action == "write" else str(path)
    tasks, reports = _run(ctx, targets, project, style, given, action == "write")
    _finish(path, old, targets, tasks, reports, given["factor"], action, adopt, style)
    if action == "compare" and not (style.quiet or style.data_on_stdout):
        scripts = {expected(old, path, name_of(target), given["factor"]).script
                   for target, report in zip(targets, reports, strict=False)
                   if report.error is None}  # fmt: skip
        _say_compared(path, old, scripts)
    code = runs_exit_code(reports)
    raise typer.Exit(0 if action == "write" and code == Exit.FINDINGS else code)


def _run(
    ctx: typer.Context, targets: Sequence[Target], project: Project, style: Style,
    given: dict[str, Any], write: bool,
) -> tuple[list[CheckScript], list[Report]]:  # fmt: skip
    """The tasks, and their reports. write: what is found will be known, and then hides nothing."""
    from adtool.commands.check_runs import CheckRuns
    from adtool.commands.check_tasks import tasks_of

    executor = given["executor"].value if given["executor"] else ""
    runs = CheckRuns(style, "", given["jobs"] or 0, executor, given["fail_fast"])
    tasks = tasks_of(ctx, targets, project, style.data_on_stdout)
    if write:
        tasks = [replace(t, choice=replace(t.choice, known=FAULTS)) for t in tasks]
    return tasks, runs.reports(tasks)


def _finish(
    path: Path, old: Baseline, targets: Sequence[Target], tasks: Sequence[CheckScript],
    reports: Sequence[Report], factor: float, action: str, adopt: bool, style: Style,
) -> None:  # fmt: skip
    """Writes the file, where that is asked for."""
    if action == "compare" and not adopt:
        return
    from adtool.accuracy.comparison import compared, known_of, updated
    from adtool.accuracy.measuring import names_of

    changes = []
    for target, task, report in zip(targets, tasks, reports, strict=False):
        if report.error is not None:
            continue  # it stays as it was
        e = expected(old, path, name_of(target), factor)
        whole = not task.job.options.partial
        found = measured_report(report, e.script, e.folder)
        if adopt:
            kernels = names_of(report.launches, e.folder).values()
            comparison = compared(found, kernels, e, whole)
            known = _still(e, report, whole)
            changes.append((e, updated(found, e, whole, comparison), known))
        else:
            known = known_of(report.findings, e, report.gate, not whole)
            if not whole:
                known = tuple({k.key: k for k in (*e.known, *known)}.values())
            changes.append((e, updated(found, e, whole), known))
    _write(path, old, changes, style)


def _still(e: Expected, report: Report, whole: bool) -> tuple[Any, ...]:
    there = {f.fingerprint for f in report.findings}
    return tuple(k for k in e.known if not whole or k.fingerprint in there)


def _write(path: Path, old: Baseline, changes: Sequence[Any], style: Style) -> None:
    from adtool.accuracy import store

    done = {e.script for e, _, _ in changes}
    entries = [e for e in old.entries if e.script not in done]
    known = [k for k in old.known if k.script not in done]
    for _, some, found in changes:
        entries += some
        known += found
    new = Baseline(tuple(entries), tuple(known))
    if changes:
        store.write(new, path)
    if style.quiet or style.data_on_stdout:
        return
    if not changes:
        say(f"nothing was written to {path}: nothing could be checked")
        return
    lines, before = ({line for line in store.text_of(b).splitlines() if line} for b in (new, old))
    say(
        f"baseline written to {path}: {counted(len(new.entries), 'entry')}, "
        f"{counted(len(new.known), 'known finding')} "
        f"(lines: {len(lines - before)} new or changed, {len(before - lines)} gone)"
    )


def _say_compared(path: Path, old: Baseline, scripts: set[str]) -> None:
    """scripts: those that were compared, by their names in the file."""
    entries = sum(e.script in scripts for e in old.entries)
    say(f"compared with {path}: {counted(entries, 'entry')} of {counted(len(scripts), 'script')}")


def _compare_reports(
    words: Sequence[str], path: Path, factor: float, style: Style, adopt: bool
) -> int:
    """Compares reports that were written before."""
    from adtool.accuracy import store
    from adtool.accuracy.comparison import updated
    from adtool.accuracy.judging import compare_report, is_whole_report
    from adtool.commands.check_output import CheckOutput
    from adtool.page.sources import reports_in

    if len(words) > 1:
        raise ToolError(f"`{words[1]}` after `{words[0]}`", "a report takes no arguments")
    old = store.read(path)
    given = reports_in(Path(words[0]))
    output = CheckOutput(style, len(given))
    found: list[Report] = []
    changes: list[tuple[Expected, Any, Any]] = []
    for report in given:
        e = expected(old, path, report.script or "", factor)
        comparison: Comparison
        report, comparison = compare_report(report, e)
        output.add(report)
        found.append(report)
        if report.error is None:
            whole = is_whole_report(report)
            changes.append((e, updated((), e, whole, comparison), _still(e, report, whole)))
    output.finish()
    if not (style.quiet or style.data_on_stdout):
        _say_compared(path, old, {e.script for e, _, _ in changes})
    if adopt:
        _write(path, old, changes, style)
    return runs_exit_code(found)
