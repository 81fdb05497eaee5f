"""The schema of `[tool.adtool]`, made from the options of the commands."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from adtool import configuration
from adtool.schemas import DIALECT

_PATTERNS = {"type": "array", "items": {"type": "string", "minLength": 1}}


def schema(commands: Mapping[str, Any]) -> dict[str, Any]:
    """Of the file as a whole: other tools' tables may be anything. commands: by name."""
    tables = {name: _table(command) for name, command in commands.items()}
    every: dict[str, list[Any]] = {}
    for name, table in tables.items():
        for key, value in table.items():
            if configuration.OWNERS.get(key.replace("_", "-"), name) == name:
                shapes = every.setdefault(key, [])
                if value not in shapes:
                    shapes.append(value)
    shared = {k: v[0] if len(v) == 1 else {"anyOf": v} for k, v in sorted(every.items())}
    by_script = {configuration.spelled(n) for n in configuration.by_script(commands["check"])}
    override = {k: v for k, v in tables["check"].items() if configuration.spelled(k) in by_script}
    adtool = {
        "description": "Options of the commands of adtool, without dashes.",
        **_closed(
            {
                **shared,
                configuration.SCRIPTS: {
                    "description": "What `adtool check` checks if you name no script.",
                    **_PATTERNS,
                },
                configuration.OVERRIDES: {
                    "description": (
                        "Options of `adtool check` for some scripts; later tables take precedence."
                    ),
                    "type": "array",
                    "items": {
                        **_closed({"paths": {**_PATTERNS, "minItems": 1}, **override}),
                        "required": ["paths"],
                    },
                },
                **{name: _of_command(name, t, shared.get(name)) for name, t in tables.items()},
            }
        ),
    }
    return {
        "$schema": DIALECT,
        "title": "adtool's part of pyproject.toml",
        "type": "object",
        "properties": {"tool": {"type": "object", "properties": {"adtool": adtool}}},
    }


def _of_command(name: str, table: dict[str, Any], option: Any) -> dict[str, Any]:
    """The table of a command; or an option of the same name, where there is one."""
    shape = {"description": f"Options of `adtool {name}`.", **_closed(table)}
    return shape if option is None else {"anyOf": [option, shape]}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _table(command: Any) -> dict[str, Any]:
    """The options of a command. Names may be written with underscores, too."""
    out = {}
    for name, parameter in sorted(configuration.options_of(command).items()):
        shape = _shape(command, parameter)
        if f"--{name}" in parameter.opts and parameter.help:
            shape = {"description": parameter.help, **shape}
        for key in dict.fromkeys((name, name.replace("-", "_"))):
            out[key] = shape
    return out


def _shape(command: Any, parameter: Any) -> dict[str, Any]:
    kind, about = configuration.annotation_of(command, parameter)
    names = {"switch": "boolean", "integer": "integer", "number": "number", "text": "string"}
    one: dict[str, Any] = {"type": names[configuration.kind_of(command, parameter)]}
    if isinstance(kind, type) and issubclass(kind, Enum):
        one = {"enum": [member.value for member in kind]}
    least = getattr(about, "min", None)
    if least is not None:
        one["minimum"] = least
    if getattr(about, "max", None) is not None:
        one["maximum"] = about.max
    bound: Any = getattr(about, "callback", None)
    if hasattr(bound, "pattern"):
        one["pattern"] = bound.pattern()
    if hasattr(bound, "least"):
        one["exclusiveMinimum" if bound.strict else "minimum"] = bound.least
    return {"anyOf": [one, {"type": "array", "items": one}]} if parameter.multiple else one
