"""Options from `[tool.adtool]` in `pyproject.toml`, of the current folder or one above it."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adtool.exits import ToolError, because

NAME = "pyproject.toml"

# What makes sense on a command line only.
_NOT_HERE = ("module", "words", "each", "help")

# Options that mean something else to another command, and whose keys they are.
_OWNERS = {"output": "check"}


def settings(folder: Path, commands: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Defaults of parameters, by command. commands: those of the command line, by name.

    A key of the table is an option's name, and a default for each command that has it; a table
    in it, named for a command, is for that one.

    Raises:
        ToolError: the file cannot be read, or has a key that is no option.
    """
    path = _nearest(folder)
    table = {} if path is None else _read(path)
    if path is None or not table:
        return {}
    options = {name: _options(command) for name, command in commands.items()}
    found: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for key, value in table.items():
        if key in commands and isinstance(value, dict):
            continue
        name = key.replace("_", "-")
        having = [c for c in commands if name in options[c] and _OWNERS.get(name, c) == c]
        if not having:
            known = {o for c in options.values() for o in c} | set(commands)
            raise _unknown(path, f"[tool.adtool] {key}", name, known)
        several = any(getattr(options[c][name], "multiple", False) for c in having)
        for c in having:
            if several and isinstance(value, list) and not options[c][name].multiple:
                continue  # the command takes but one; this is for those that take several
            found[c][options[c][name].name] = _value(path, key, options[c][name], value)
    for command in commands:
        for key, value in dict(table.get(command, {})).items():
            name = key.replace("_", "-")
            if name not in options[command]:
                where = f"[tool.adtool.{command}] {key}"
                raise _unknown(path, where, name, set(options[command]))
            parameter = options[command][name]
            found[command][parameter.name] = _value(path, key, parameter, value)
    return found


def _nearest(folder: Path) -> Path | None:
    for place in (folder, *folder.parents):
        path = place / NAME
        if path.is_file():
            return path
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {because(error)}") from None
    if b"adtool" not in text:
        return {}
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(text.decode("utf-8")).get("tool", {}).get("adtool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"{path} is no TOML: {error}") from None
    if not isinstance(table, dict):
        raise ToolError(f"{path}: [tool.adtool] is no table")
    return table


def _options(command: Any) -> dict[str, Any]:
    """The options of a command by name, without dashes; those that can be switched, both ways."""
    found = {}
    for p in command.params:
        if p.param_type_name != "option" or p.name in _NOT_HERE:
            continue
        for name in (*p.opts, *p.secondary_opts):
            if name.startswith("--"):
                found[name[2:]] = p
    return found


def _value(path: Path, key: str, parameter: Any, value: Any) -> Any:
    """The value as the command line's parser takes it."""
    dashed = "--" + key.replace("_", "-")
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise ToolError(f"{path}: {key} is a switch: true or false, not {value!r}")
        return not value if dashed in parameter.secondary_opts else value
    if getattr(parameter, "multiple", False):
        values = value if isinstance(value, list) else [value]
        if any(isinstance(v, (dict, list, bool)) for v in values):
            raise ToolError(f"{path}: {key} takes a text or a list of texts, not {value!r}")
        return [str(v) for v in values]
    if isinstance(value, (dict, list, bool)):
        raise ToolError(f"{path}: {key} takes one value, not {value!r}")
    return str(value)


def _unknown(path: Path, where: str, name: str, known: set[str]) -> ToolError:
    near = difflib.get_close_matches(name, sorted(known), 3)
    help = "did you mean " + " or ".join(near) + "?" if near else (
        "its keys are the options of the commands, without the dashes"
    )  # fmt: skip
    return ToolError(f"{path}: {where} is no option of adtool", help)
