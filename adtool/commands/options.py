"""Options that several commands share, and their parsed form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from adtool.commands.helping import CHOICE, FIXES, KEPT, OUTPUT, PICTURE, RUN, SHOWN, TUNING

__all__ = [
    "CHOICE", "FIXES", "FOLLOWS", "KEPT", "OUTPUT", "PICTURE", "RUN", "SHOWN", "TUNING", "Alias",
    "BaselineFile", "ChangedSince", "CheckFormat", "DeviceName", "Exclude", "ExecutorName",
    "Factor", "FailFast", "Format", "FormatOption", "GateOption", "Jobs", "LookWords", "Memory",
    "Module", "NoColor", "Overwrites", "Runner", "Seed", "ShowFixes", "TIMEOUT", "Timeout", "Trust",
    "UnsafeFixes", "Words", "WriteFixes", "above", "chosen", "gates", "in_settings", "launches",
    "module_name", "names", "one_launch",
]  # fmt: skip

TIMEOUT = 600.0  # seconds: a script that loops for ever must end some day in CI, too

O = TypeVar("O")  # noqa: E741


class Format(str, Enum):
    """Output formats."""

    text = "text"
    json = "json"


class CheckFormat(str, Enum):
    """Formats of `adtool check`: those of `adtool.render.formats`."""

    text = "text"
    json = "json"
    junit = "junit"
    sarif = "sarif"
    github = "github"
    markdown = "markdown"


class Overwrites(str, Enum):
    """Values of `engine.config.overwrites`."""

    restore = "restore"
    present = "present"
    warn = "warn"
    error = "error"


class Runner(str, Enum):
    """Names of executors, files of `adtool/executors`."""

    serial = "serial"
    processes = "processes"
    ray = "ray"


def gates(words: list[str] | None) -> list[str] | None:
    """A callback that takes what `adtool.gates` does."""
    from adtool.gates import gate_of

    try:
        gate_of(words)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return words


def _pattern() -> str:
    from adtool.gates import PATTERN

    return PATTERN


gates.pattern = _pattern  # type: ignore[attr-defined]  # for the schema of the settings


def launches(words: list[str] | None) -> list[str] | None:
    """A callback that takes numbers of launches, of every tape or of one: `3`, `0:3`."""
    for word in words or ():
        if re.fullmatch(r"([0-9]{1,18}:)?[0-9]{1,18}", word) is None:
            raise typer.BadParameter(
                f"`{word}` is not the number of a launch: write 3, or TAPE:LAUNCH"
            )
    return words


def one_launch(word: str | None) -> str | None:
    """A callback that takes the number of one launch of one tape."""
    if word is not None and re.fullmatch(r"[0-9]{1,18}:[0-9]{1,18}", word) is None:
        raise typer.BadParameter(f"`{word}` is not TAPE:LAUNCH: write 0:3, as `check` does")
    return word


def above(least: float, strict: bool = False) -> Any:
    """A callback that takes finite numbers from `least` on."""

    def check(value: float | None) -> float | None:
        if value is None:
            return value
        if not math.isfinite(value) or value < least or (strict and value == least):
            relation = "greater than" if strict else "at least"
            raise typer.BadParameter(f"{value} is not a finite number {relation} {least:g}")
        return value

    # For the schema of the settings.
    check.least, check.strict = least, strict  # type: ignore[attr-defined]
    return check


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SCRIPT [ARGS...]",
        help="The script, or `-` for standard input; all arguments after it belong to the script.",
    ),
]
# Of commands that look at one thing: what may follow the script.
FOLLOWS = (
    "Options of adtool may follow it directly; from the first other word on, or after `--`, "
    "arguments belong to the script."
)
LookWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SCRIPT [ARGS...]",
        help=f"The script, or `-` for standard input. {FOLLOWS}",
    ),
]
Module = Annotated[
    str | None,
    typer.Option(
        "-m", metavar="MODULE", rich_help_panel=RUN,
        help="Run a module, as `python -m`; all arguments after it belong to the module.",
    ),
]  # fmt: skip


def module_name(name: str | None) -> str | None:
    """A callback that takes names of modules, other than those of the tool itself."""
    if name is not None and (not name.isidentifier() or name in ("engine", "adtool")):
        raise typer.BadParameter(f"`{name}` cannot be a name of the engine: use a name like warp")
    return name


Alias = Annotated[
    str | None,
    typer.Option(
        "--alias", metavar="NAME", callback=module_name, rich_help_panel=RUN,
        help="Let the script import the engine as the module NAME, with the behaviour of Warp: "
             "--alias warp checks a program written for Warp. Warp need not be installed.",
    ),
]  # fmt: skip
DeviceName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The device to run on, like cpu or cuda:0.", rich_help_panel=RUN
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="N", help="Seed of the random directions.", min=0, rich_help_panel=RUN),
]
Timeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", callback=above(0), rich_help_panel=RUN,
        help="Time limit for script and checks together; 0: none.",
    ),
]  # fmt: skip
Memory = Annotated[
    float | None,
    typer.Option(
        metavar="GIB", callback=above(0), rich_help_panel=RUN,
        help=(
            "Limit on copies of arrays that launches read (default: the smaller of 4 and a "
            "quarter of the memory)."
        ),
    ),
]  # fmt: skip
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", rich_help_panel=RUN,
        help=(
            "Compile the C++ code in a capture, such as native functions. This code may do "
            "anything."
        ),
    ),
]  # fmt: skip
FormatOption = Annotated[
    Format,
    typer.Option(
        metavar="text|json",
        rich_help_panel=OUTPUT,
        help=(
            "The format on standard output. With json, the output of the script goes to standard "
            "error."
        ),
    ),
]
NoColor = Annotated[
    bool,
    typer.Option("--no-color", help="No colour (NO_COLOR does the same).", rich_help_panel=OUTPUT),
]

GateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gate", metavar="SEVERITY|accuracy=X", callback=gates, rich_help_panel=OUTPUT,
        help="The lowest severity that gives exit code 1: error (default), warning or note; or "
             "accuracy=1e-6, which every pair must reach. May be repeated, or combine both with "
             "a comma.",
    ),
]  # fmt: skip
BaselineFile = Annotated[
    str | None,
    typer.Option(
        "--baseline", metavar="FILE", rich_help_panel=OUTPUT,
        help="Compare with the accuracy in this file of `adtool baseline write`: lower accuracy "
             "is an error (G015), and known findings fail nothing. '' for none. `baseline write` "
             "writes this file.",
    ),
]  # fmt: skip
Factor = Annotated[
    float,
    typer.Option(
        "--factor", metavar="X", callback=above(1), rich_help_panel=OUTPUT,
        help="With --baseline: the factor by which an error may grow.",
    ),
]  # fmt: skip
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j", "--jobs", metavar="N", min=1, rich_help_panel=RUN,
        help="The number of scripts to run at once (default: one per processor). With 1, their "
             "output appears at once. For one script or capture: the number of processes that "
             "share its checks.",
    ),
]  # fmt: skip
ExecutorName = Annotated[
    Runner | None,
    typer.Option(
        "--executor", metavar="NAME", rich_help_panel=RUN,
        help="Where scripts run: serial, processes (default for several scripts), or ray: the "
             "cluster of RAY_ADDRESS, or a new one on this machine.",
    ),
]  # fmt: skip
ColumnJobs = Annotated[
    int | None,
    typer.Option(
        "-j", "--jobs", metavar="N", min=1, rich_help_panel=RUN,
        help="Only for a capture: the number of processes that share the columns of its Jacobian "
             "(default: one; with --executor, one per processor).",
    ),
]  # fmt: skip
ColumnExecutor = Annotated[
    Runner | None,
    typer.Option(
        "--executor", metavar="NAME", rich_help_panel=RUN,
        help="Only for a capture: where these processes run: serial, processes, or ray: the "
             "cluster of RAY_ADDRESS, or a new one on this machine.",
    ),
]  # fmt: skip
FailFast = Annotated[
    bool,
    typer.Option(
        "-x", "--fail-fast", rich_help_panel=RUN,
        help="Stop after the first script that fails, and do not check the scripts after it.",
    ),
]  # fmt: skip
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="PATTERN", rich_help_panel=CHOICE,
        help="Leave out scripts of folders and patterns whose path matches; may be repeated.",
    ),
]  # fmt: skip
ChangedSince = Annotated[
    str | None,
    typer.Option(
        "--changed-since", metavar="REV", rich_help_panel=CHOICE,
        help="Check only scripts that changed since a git revision, or that import a changed file.",
    ),
]  # fmt: skip

WriteFixes = Annotated[
    bool,
    typer.Option(
        "--fix", rich_help_panel=FIXES,
        help="Change the program where a change removes findings, then check it.",
    ),
]  # fmt: skip
ShowFixes = Annotated[
    bool,
    typer.Option(
        "--diff", rich_help_panel=FIXES,
        help="Show the changes of --fix as a diff, and write nothing.",
    ),
]  # fmt: skip
UnsafeFixes = Annotated[
    bool,
    typer.Option(
        "--unsafe-fixes", rich_help_panel=FIXES,
        help="With --fix or --diff: also make changes that may change the results of the program.",
    ),
]  # fmt: skip


def chosen(kind: type[O], given: Mapping[str, Any]) -> O:
    """The dataclass `kind` with the values of the options that have its fields' names."""
    names = [f.name for f in fields(kind) if f.name in given]  # type: ignore[arg-type]
    return kind(**{n: _plain(given[n]) for n in names if given[n] is not None})


def names(ctx: typer.Context) -> tuple[str, ...]:
    """The names of the command's options, as `--kernel`."""
    return tuple(o for p in ctx.command.params for o in p.opts if o.startswith("--"))


def in_settings(ctx: typer.Context, parameter: str) -> bool:
    """Whether an option's value is that of `pyproject.toml`."""
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name == "DEFAULT_MAP"


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return tuple(_plain(v) for v in value) if isinstance(value, (list, tuple)) else value
