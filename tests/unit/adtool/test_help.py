"""The help of every command: examples that can be typed, groups as in docs/cli.md, nothing cut."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from adtool.cli import app
from adtool.commands import helping
from adtool.commands.examples import EXAMPLES
from adtool.configuration import annotation_of

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
GROUP: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = GROUP.commands
WIDTHS = (60, 80, 120)


def context(name: str) -> Any:
    tool = GROUP.context_class(GROUP, info_name="adtool", **GROUP.context_settings)
    command = COMMANDS.get(name)
    return tool if command is None else command.context_class(command, tool, name)


def shown(name: str) -> str:
    return str(COMMANDS.get(name, GROUP).get_help(context(name)))


def options(name: str) -> list[Any]:
    command = COMMANDS.get(name, GROUP)
    return [p for p in command.get_params(context(name)) if p.param_type_name == "option"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["adtool", *COMMANDS])
def test_nothing_is_cut(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option, all that it takes, and every word of every help text is there in full."""
    monkeypatch.setenv("COLUMNS", str(width))
    text = shown(name)
    assert "…" not in text and "..." not in re.sub(r"\[ARGS\.\.\.\]|\[ARGS\]\.\.\.", "", text)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for p in options(name):
        assert re.search(rf"^  {re.escape(helping.term(p))}(  |$)", text, re.MULTILINE), p.name
        assert " ".join(p.help.split()) in words, p.name
    for command in COMMANDS.values() if name == "adtool" else ():
        assert command.get_short_help_str(10_000) in words


@pytest.mark.parametrize("name", COMMANDS)
def test_choices_are_there_in_full(name: str) -> None:
    """An option that takes one of some words has all of them in its help."""
    for p in COMMANDS[name].params:
        kind, _ = annotation_of(COMMANDS[name], p)
        described = f"{p.metavar or ''} {getattr(p, 'help', None) or ''}"
        for member in getattr(kind, "__members__", {}).values():
            assert re.search(rf"(^|[^\w-]){re.escape(member.value)}($|[^\w-])", described), p.name


@pytest.mark.parametrize("name", ["adtool", *COMMANDS])
def test_three_examples_come_first(name: str) -> None:
    text = shown(name)
    lines = [line for line, _ in EXAMPLES[name]]
    assert len(lines) == 3
    places = [text.index(f"\n  {line}\n") for line in lines]
    groups = [text.index(f"\n{title}:\n") for title in helping.grouped(
        COMMANDS.get(name, GROUP), context(name))]  # fmt: skip
    assert places == sorted(places) and places[-1] < min(groups) and groups == sorted(groups)


@pytest.mark.parametrize(
    "line", [line for rows in EXAMPLES.values() for line, _ in rows], ids=lambda line: line
)
def test_examples_are_command_lines(line: str) -> None:
    """The parser takes each: the options are there, and those meant for the tool come to it."""
    tool, name, *args = shlex.split(line.partition(" > ")[0])
    assert tool == "adtool"
    command = COMMANDS[name]
    ctx = command.make_context(name, list(args), context("adtool"))
    mine = {n for p in command.params for n in p.opts}
    assert {a for a in args if a.startswith("-")} - mine <= {"--steps"}
    if "--out" in args:
        out = ctx.params["out"]
        given = args[args.index("--out") + 1]
        assert out == [given] or str(out) == given


# ---- groups, as docs/cli.md has them


def of_page(name: str) -> dict[str, set[str]]:
    """The groups of a command's options on the page: in tables, and in lists before them."""
    part = re.search(rf"^## Options of `adtool {name}`\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    found: dict[str, set[str]] = {}
    group = ""
    for paragraph in (part[1].strip() if part else "").split("\n\n"):
        title = paragraph.partition(":")[0]
        if title in helping.GROUPS:
            group = title
            found[group] = set(re.findall(r"`(--?[a-z][\w-]*)", paragraph.partition(":")[2]))
        elif group and paragraph.startswith("| option"):
            for row in paragraph.splitlines()[2:]:
                found[group] |= set(re.findall(r"`(--?[a-z][\w-]*)", row.split("|")[1]))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_groups_are_those_of_the_page(name: str) -> None:
    """All but --help, which every command has."""
    found = helping.grouped(COMMANDS[name], context(name))
    (last,) = found.pop("Options")
    assert set(last.opts) == {"-h", "--help"}  # in the order of a set
    of_help = {g: {n for p in ps for n in helping.names(p)} for g, ps in found.items()}
    assert of_page(name) == of_help


def test_where_it_goes_is_one_word() -> None:
    """A command with one file to write calls it --out; names that it had once are not shown."""
    old = {(n, o): p for n in COMMANDS for p in options(n) for o in helping.old_names(p)}
    assert sorted(old) == [
        ("baseline", "--output"), ("check", "--output"), ("jacobian", "--plot"),
        ("report", "--html"), ("trace", "--plot"),
    ]  # fmt: skip
    for (name, word), p in old.items():
        assert p.name == "out"
        if (name, word) != ("jacobian", "--output"):
            assert not re.search(rf"^  .*{word}\b", shown(name), re.MULTILINE)
        assert f"`{word}`" in PAGE
