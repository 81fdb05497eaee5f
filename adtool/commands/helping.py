"""The help of commands: what it does, examples, and options in groups; nothing is cut off."""

from __future__ import annotations

import inspect
import re
from typing import Any

from adtool.commands.examples import EXAMPLES

# Groups of options, in the order of the help and of docs/cli.md.
RUN = "How the script runs"
CHOICE = "What to check"
SHOWN = "What to show"
PICTURE = "What to draw"
KEPT = "What to keep"
TUNING = "How closely to compare derivatives"
OUTPUT = "Output"
FIXES = "Fixes"
GROUPS = (SHOWN, PICTURE, KEPT, RUN, CHOICE, TUNING, OUTPUT, FIXES)

_OTHER = "Options"


def write_text(command: Any, formatter: Any) -> None:
    """Writes the first paragraph of the help, three examples, and what else the help says."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    first, *rest = re.split(r"\n\s*\n", text)
    _paragraph(first, formatter)
    formatter.write_paragraph()
    formatter.write("Examples:\n")
    for line, meaning in EXAMPLES[command.name or ""]:
        formatter.write(f"  {line}\n")
        with formatter.indentation(), formatter.indentation():
            formatter.write_text(meaning)
    for paragraph in rest:
        _paragraph(paragraph, formatter)


def _paragraph(text: str, formatter: Any) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(" ".join(text.split()))


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Writes the arguments, and the options in their groups."""
    arguments = [
        (usage_of(p), p.help) for p in command.get_params(ctx)
        if p.param_type_name == "argument" and getattr(p, "help", None)
    ]  # fmt: skip
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    for group, options in grouped(command, ctx).items():
        with formatter.section(group):
            formatter.write_dl([(term(p), _meaning(p, ctx)) for p in options])


def grouped(command: Any, ctx: Any) -> dict[str, list[Any]]:
    """The options of a command by the titles of their groups, in order; none that is hidden."""
    found: dict[str, list[Any]] = {}
    for p in command.get_params(ctx):
        if p.param_type_name == "option" and not p.hidden:
            found.setdefault(getattr(p, "rich_help_panel", None) or _OTHER, []).append(p)
    order = [*GROUPS, _OTHER]
    return {group: found[group] for group in sorted(found, key=order.index)}


def names(option: Any) -> list[str]:
    """How an option is written: short names, and its long one. Further ones are old names."""
    long = [n for n in option.opts if n.startswith("--")]
    return [*(n for n in option.opts if not n.startswith("--")), *long[:1], *option.secondary_opts]


def old_names(option: Any) -> list[str]:
    """Names that an option had once, and which go on working."""
    return [n for n in option.opts if n.startswith("--")][1:]


def term(option: Any) -> str:
    """An option's names with what it takes."""
    text = ", ".join(names(option))
    if getattr(option, "is_flag", False) or getattr(option, "count", False):
        return text
    return f"{text} {option.metavar or 'VALUE'}"


def usage_of(argument: Any) -> str:
    """An argument, as the usage has it."""
    return str(argument.metavar or argument.name.upper())


def _meaning(option: Any, ctx: Any) -> str:
    record = option.get_help_record(ctx)
    return record[1] if record else ""


def write_commands(group: Any, ctx: Any, formatter: Any) -> None:
    """Writes every command with the first sentence of its help."""
    rows = []
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            rows.append((name, command.get_short_help_str(10_000)))
    with formatter.section("Commands"):
        formatter.write_dl(rows)
