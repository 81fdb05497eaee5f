"""Reads options from `[tool.adtool]` of the nearest `pyproject.toml`."""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from adtool import usage
from adtool.exits import ToolError, because
from adtool.globs import fits
from adtool.permissions import Permission, permission, require_inside
from adtool.places import short
from adtool.render.formats import file_of
from engine.classes import dataclass
from engine.reading import read

NAME = "pyproject.toml"
_PARTS = 2000  # of a key, or of a table's name
LIMIT = 1 << 20  # bytes of it
OVERRIDES = "overrides"
SCRIPTS = "scripts"

# Patterns of paths: those of the file are as seen from its folder.
_PATTERNS = ("exclude",)
# What can differ from script to script, besides the fields of `CheckOptions`.
_BY_SCRIPT = ("timeout", "gate", "select", "ignore", "exit_zero")
_OF_THE_REPORT = ("durations",)  # a field of it, and not by script

Kind = Literal["switch", "integer", "number", "text"]


@dataclass(frozen=True, slots=True)
class Override:
    """Options of `check` for some scripts. paths: patterns, as seen from the file's folder.

    values: parsed, by the names of the command's parameters.
    """

    paths: tuple[str, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Project:
    """What the file says besides defaults of options. folder: that it lies in.

    scripts: what `check` is about where nothing is named: scripts, folders and patterns.
    """

    folder: Path
    scripts: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()


def project(folder: Path, commands: Mapping[str, Any]) -> Project:
    """The rest of the file that `settings` reads. Raises ToolError as that does."""
    path = nearest(folder)
    table = {} if path is None else _read(path, folder)
    if path is None or not table:
        return Project(folder)
    scripts = _texts(path, SCRIPTS, table.get(SCRIPTS, []))
    for script in scripts:
        require_inside(os.path.join(path.parent, script), path.parent, f"{path}: {SCRIPTS}")
    return Project(path.parent, scripts, _overrides(path, table, commands["check"]))


def overridden(project: Project, script: str | None) -> dict[str, Any]:
    """What overrides say of a script, by the names of parameters: later ones before earlier ones.

    script: a file; of none, as of a module, they say nothing.
    """
    if script is None:
        return {}
    folder, file = os.path.realpath(project.folder), os.path.realpath(script)
    found = (o for o in project.overrides if any(fits(file, p, folder) for p in o.paths))
    return {name: value for o in found for name, value in o.values.items()}


def spelled(key: str) -> str:
    """The name of an option that a key stands for."""
    return key.replace("_", "-")


def by_script(command: Any) -> dict[str, Any]:
    """Those of the command's options that can differ from script to script, by name."""
    from adtool.job import CheckOptions

    names = {f.name for f in fields(CheckOptions)}.difference(_OF_THE_REPORT).union(_BY_SCRIPT)
    return {name: p for name, p in options_of(command).items() if p.name in names}


def _overrides(path: Path, table: dict[str, Any], check: Any) -> tuple[Override, ...]:
    given = table.get(OVERRIDES, [])
    if not isinstance(given, list) or not all(isinstance(t, dict) for t in given):
        raise ToolError(f"{path}: write overrides as tables: [[tool.adtool.{OVERRIDES}]]")
    known, every, refused = by_script(check), options_of(check), refused_of(check)
    out = []
    for number, one in enumerate(given, 1):
        where = f"[[tool.adtool.{OVERRIDES}]] {number}"
        paths = _texts(path, f"{where}, paths", one.get("paths", []))
        if not paths:
            raise ToolError(f"{path}: {where} has no paths", 'write paths = ["samples/**"]')
        values = {}
        _refuse_twice(path, where, one, known)
        for key, value in one.items():
            name = spelled(key)
            if key == "paths":
                continue
            if name in known:
                parameter = known[name]
                raw = _value(path, f"{where}, {key}", check, name, value)
                values[parameter.name] = _parsed(path, f"{where}, {key}", check, parameter, raw)
            elif name in refused:
                raise _refused(path, f"{where}, {key}", name)
            elif name in every:
                raise ToolError(f"{path}: {where}, {key}: this option is for the whole run",
                                f"write it in [tool.adtool]: {key} = {_toml(value)}")  # fmt: skip
            else:
                raise _unknown(path, f"{where}, {key}", name, {*known, "paths"})
        out.append(Override(paths, values))
    return tuple(out)


# Options that mean something else to another command, and whose keys they are.
OWNERS = {"out": "check", "output": "check"}


def settings(folder: Path, commands: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Defaults of parameters, by command. commands: those of the command line, by name.

    A key of the table is an option's name, and a default for each command that has it and takes
    the value; a table in it, named for a command, is for that one.

    Raises:
        ToolError: the file cannot be read, or has a key that is no option, or a value that the
            option does not take.
    """
    path = nearest(folder)
    table = {} if path is None else _read(path, folder)
    if path is None or not table:
        return {}
    options = {name: options_of(command) for name, command in commands.items()}
    found: dict[str, dict[str, Any]] = {name: {} for name in commands}
    project(folder, commands)
    for command, its in options.items():
        _refuse_twice(path, "[tool.adtool]", table, its)
        if isinstance(own := table.get(command), dict):
            _refuse_twice(path, f"[tool.adtool.{command}]", own, its)
    for key, value in table.items():
        if key in (OVERRIDES, SCRIPTS) or (key in commands and isinstance(value, dict)):
            continue
        name = spelled(key)
        having = [c for c in commands if name in options[c] and OWNERS.get(name, c) == c]
        if not having:
            if any(name in refused_of(c) for c in commands.values()):
                raise _refused(path, f"[tool.adtool] {key}", name)
            known = {o for c in options.values() for o in c} | set(commands)
            raise _unknown(path, f"[tool.adtool] {key}", name, known | {SCRIPTS, OVERRIDES})
        refused = []
        for c in having:
            try:
                found[c][options[c][name].name] = _taken(path, key, commands[c], name, value)
            except ToolError as error:
                refused.append(error)
        if len(refused) == len(having):
            raise refused[0]
    for command in commands:
        own = table.get(command, {})
        # An option may have the name of a command: `baseline`.
        for key, value in own.items() if isinstance(own, dict) else ():
            name = spelled(key)
            if name not in options[command]:
                where = f"[tool.adtool.{command}] {key}"
                if name in refused_of(commands[command]):
                    raise _refused(path, where, name)
                raise _unknown(path, where, name, set(options[command]))
            where = f"[tool.adtool.{command}] {key}"
            parameter = options[command][name]
            found[command][parameter.name] = _taken(path, where, commands[command], name, value)
    return found


def is_set(folder: Path) -> bool:
    """Whether there are settings for a folder, as far as that is seen at a glance."""
    path = nearest(folder)
    if path is None:
        return False
    try:
        return b"adtool" in read(path, LIMIT)
    except OSError:
        return True  # what is wrong is told by who reads them


def nearest(folder: Path) -> Path | None:
    """The file that counts in a folder: its own, or that of one above."""
    for place in (folder, *folder.parents):
        path = place / NAME
        if path.is_file():
            return path
    return None


def _require_ours(path: Path, folder: Path) -> None:
    """Raises ToolError for a file above a folder that another user put there, as in /tmp.

    Whose it may be: the current user's, root's, or that of the current folder's owner. A link
    counts as the user's who made it, too. Raises OSError.
    """
    if path.parent == folder or not hasattr(os, "geteuid"):
        return
    ours = {os.geteuid(), 0, os.stat(folder).st_uid}
    if {os.stat(path).st_uid, os.lstat(path).st_uid} - ours:
        raise ToolError(
            f"{path}: these are settings of another user",
            f"create your own {NAME} in this folder: an empty file is enough",
        )


def _read(path: Path, folder: Path) -> dict[str, Any]:
    """[tool.adtool] of a file that was found from a folder on. Raises ToolError."""
    try:
        text = read(path, LIMIT)
        if b"adtool" in text:
            _require_ours(path, folder)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {because(error)}") from None
    try:
        table = table_in(text)
    except ValueError as error:
        raise ToolError(f"{path} is not TOML: {error}") from None
    if not isinstance(table, dict):
        raise ToolError(f"{path}: [tool.adtool] is not a table")
    return table


def table_in(text: bytes) -> Any:
    """[tool.adtool] of a file's text. Raises ValueError where it is no TOML."""
    if b"adtool" not in text:
        return {}
    if any(line.count(b".") > _PARTS for line in text.splitlines()):
        raise ValueError(f"a line has more than {_PARTS} dots")  # the reader's time is their square
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tool = tomllib.loads(text.decode("utf-8")).get("tool", {})
    except RecursionError:
        raise ValueError("its nesting is too deep") from None
    return tool.get("adtool", {}) if isinstance(tool, dict) else {}


def options_of(command: Any) -> dict[str, Any]:
    """Options of a command that the file may set, by name without dashes; switches both ways."""
    return _named(command, refused=False)


def refused_of(command: Any) -> dict[str, Any]:
    """The options of a command that are for the command line alone, by name."""
    return _named(command, refused=True)


def _named(command: Any, refused: bool) -> dict[str, Any]:
    found = {}
    for p in command.params:
        if p.param_type_name != "option":
            continue
        if (permission(command.name, p.name) is Permission.NONE) is not refused:
            continue
        for name in (*p.opts, *p.secondary_opts):
            if name.startswith("--"):
                found[name[2:]] = p
    return found


@cache
def _annotations(callback: Any) -> dict[str, Any]:
    return get_type_hints(inspect.unwrap(callback), include_extras=True)


def annotation_of(command: Any, parameter: Any) -> tuple[Any, Any]:
    """The type of an option's values, as its function has it, and what typer was told of it."""
    kind, about = _annotations(command.callback)[parameter.name], None
    while get_origin(kind) in (Annotated, Union, UnionType, list):
        if get_origin(kind) is Annotated:
            about = kind.__metadata__[0]
        kind = next(k for k in get_args(kind) if k is not NoneType)
    return kind, about


def kind_of(command: Any, parameter: Any) -> Kind:
    """What an option takes, or one of its values where it takes several."""
    kind, _ = annotation_of(command, parameter)
    kinds: dict[Any, Kind] = {bool: "switch", int: "integer", float: "number"}
    return kinds.get(kind, "text")


def _taken(path: Path, where: str, command: Any, name: str, value: Any) -> Any:
    """The value as the command line's parser takes it, which is asked whether it does."""
    parameter = options_of(command)[name]
    raw = _value(path, where, command, name, value)
    _parsed(path, where, command, parameter, raw)
    return raw


def _parsed(path: Path, where: str, command: Any, parameter: Any, raw: Any) -> Any:
    try:
        return parameter.process_value(command.context_class(command), raw)
    except usage.ClickException as error:
        words = str(error.message)  # type: ignore[attr-defined]
        words = usage.tidied(words)
        words = words if len(words) <= 400 else f"{words[:150]} ... {words[-200:]}"
        raise ToolError(f"{path}: {where}: {words}") from None


_WANTED = {"switch": "true or false", "integer": "a whole number", "number": "a number",
           "text": "a text"}  # fmt: skip


def _value(path: Path, where: str, command: Any, name: str, value: Any) -> Any:
    """The value in the words of a command line, if it is of the right type."""
    parameter = options_of(command)[name]
    kind = kind_of(command, parameter)
    if kind == "switch":
        if not isinstance(value, bool):
            raise ToolError(f"{path}: {where} is a switch: true or false, not {_toml(value)}")
        return not value if f"--{name}" in parameter.secondary_opts else value
    several = bool(getattr(parameter, "multiple", False))
    values = value if several and isinstance(value, list) else [value]
    if not all(_is(kind, v) for v in values):
        wanted = _WANTED[kind] + (", or a list of them" if several else "")
        raise ToolError(f"{path}: {where} takes {wanted}, not {_toml(value)}")
    if parameter.name in _PATTERNS:
        values = [os.path.join(path.parent, v) if "/" in v else v for v in values]
    if permission(command.name, parameter.name) is Permission.INSIDE:
        values = [_placed(path, where, v, several) for v in values]
        value = values[0] if not several else value
    try:
        return [str(v) for v in values] if several else str(value)
    except ValueError:
        raise ToolError(f"{path}: {where} has too many digits") from None


def _placed(path: Path, where: str, word: str, reports: bool) -> str:
    """A word that names a file, as seen from the settings' folder, for the current one.

    reports: whether the name of a format may come before the file. Raises ToolError where the file
    is not in the folder of the settings.
    """
    file = file_of(word) if reports else word
    if not file:
        return word
    found = os.path.join(path.parent, file)
    require_inside(found, path.parent, f"{path}: {where}")
    found, prefix = short(found), word[: len(word) - len(file)]
    if reports and not prefix and file_of(found) != found:  # `./json=x`
        found = os.path.join(os.curdir, found)
    return prefix + found


def _is(kind: Kind, value: Any) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return kind == "number" or isinstance(value, int)


def _refuse_twice(path: Path, where: str, table: Mapping[str, Any], known: dict[str, Any]) -> None:
    """Raises ToolError for two keys of one option: `end-to-end` and `no-end-to-end`."""
    seen: dict[str, str] = {}
    for key in table:
        parameter = known.get(spelled(key))
        if parameter is None:
            continue
        if parameter.name in seen:
            other = seen[parameter.name]
            raise ToolError(f"{path}: {where} {key}: `{other}` sets the same option", "keep one")
        seen[parameter.name] = key


def _texts(path: Path, where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise ToolError(f"{path}: {where} takes a list of strings, not {_toml(value)}")
    return tuple(value)


def _toml(value: Any) -> str:
    """A value as the file has it, shortened."""
    try:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number with too many digits"
    return text if len(text) <= 60 else text[:57] + "..."


def _refused(path: Path, where: str, name: str) -> ToolError:
    return ToolError(
        f"{path}: {where} is only for the command line: the file may come from other people",
        f"remove it, and pass --{name} on the command line",
    )


def _unknown(path: Path, where: str, name: str, known: set[str]) -> ToolError:
    near = difflib.get_close_matches(name, sorted(known), 3)
    help = "did you mean " + " or ".join(near) + "?" if near else (
        "keys are options of the commands, without the dashes"
    )  # fmt: skip
    return ToolError(f"{path}: {where} is not an option of adtool", help)
