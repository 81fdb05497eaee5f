"""The help of commands, and values of their options, parsed without importing a library.

Newer versions of typer have every value, also each default, made by Pydantic, which takes longer to
load than all else of a command line. Texts, switches, plain numbers and words of a list need
nothing of it; what is left, and whatever is wrong, is still typer's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from adtool.commands import helping
from adtool.exits import ToolError
from engine.characters import clean

_FLOAT = re.compile(r"\d{1,15}(\.\d{1,15})?([eE][-+]?\d{1,3})?")
_NONE = object()


class PlainGroup(TyperGroup):
    """Commands of which the options of all make plain values themselves."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, and those that typer adds."""
        return list(map(_spared, super().get_params(ctx)))

    def get_help(self, ctx: Any) -> str:
        """The help, in which defaults are those of the project."""
        return clean(super().get_help(ctx))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What it is, and examples."""
        helping.write_text(self, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, and the commands."""
        helping.write_options(self, ctx, formatter)
        helping.write_commands(self, ctx, formatter)


class PlainCommand(TyperCommand):
    """A command whose options make plain values themselves."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, and those that typer adds."""
        return list(map(_spared, super().get_params(ctx)))

    def make_parser(self, ctx: Any) -> Any:
        """The parser. It refuses an option with two names, like `--out`, that comes twice."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parsed(args: list[str]) -> Any:
            found = parse(args)
            _require_once(found[2])
            return found

        parser.parse_args = parsed  # type: ignore[method-assign]
        return parser

    def get_help(self, ctx: Any) -> str:
        """The help, in which defaults are those of the project."""
        return clean(super().get_help(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What the usage has behind the command's name."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        return ["[OPTIONS]", *map(helping.usage_of, arguments)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What the command does, and examples."""
        helping.write_text(self, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, in groups."""
        helping.write_options(self, ctx, formatter)


def _require_once(order: list[Any]) -> None:
    """Raises ToolError for one of several names and one value that comes twice: one would be lost.

    order: the parameters as they came on the command line.
    """
    for parameter in order:
        names = [name for name in parameter.opts if name.startswith("--")]
        if len(names) < 2 or parameter.multiple or order.count(parameter) < 2:
            continue
        raise ToolError(f"{' and '.join(names)} are names of one option, which takes one value",
                        "keep one of them")  # fmt: skip


def _spared(parameter: Any) -> Any:
    """The parameter, which makes plain values itself where this version of typer is known."""
    real = getattr(parameter, "get_runtime_param", None)
    if real is not None and "get_runtime_param" not in vars(parameter):
        plain = _Plain(real)
        parameter.get_runtime_param = lambda: plain
    return parameter


class _Plain:
    """Stands for what typer makes values of a parameter with. real: gives that."""

    def __init__(self, real: Callable[[], Any]) -> None:
        self._real = real

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a parameter. Raises as typer does."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        made = _made(value, param.type_descriptor, several)
        if made is not _NONE:
            return made
        try:
            return self._real().coerce(value, param=param, ctx=ctx)
        except typer.BadParameter as error:
            error.message = _of_value(error.message, value)
            raise


_EXPECTED = "Input should be "  # how Pydantic begins, which leaves out the value
_KINDS = {"a valid number": "a number", "a valid integer": "a whole number"}


def _of_value(message: str, value: Any) -> str:
    """What is wrong with a value, with the value itself: `'x' is not a number`."""
    if not message.startswith(_EXPECTED):
        return message
    wanted = message.removeprefix(_EXPECTED)
    kind = _KINDS.get(wanted.partition(",")[0])
    return f"{value!r} is not {kind}" if kind else f"{value} must be {wanted}"


def _made(value: Any, about: Any, several: bool) -> Any:
    kind, info = about.annotation, about.parameter_info
    if getattr(info, "parser", None) is not None:
        return _NONE
    if several:
        texts = isinstance(value, (list, tuple)) and all(type(v) is str for v in value)
        return list(value) if texts and kind == list[str] else _NONE
    if not isinstance(kind, type):
        return _NONE
    if type(value) is kind and kind in (str, bool):
        return value
    if issubclass(kind, Enum):
        return next((m for m in kind if value is m or value == m.value), _NONE)
    if kind not in (int, float):
        return _NONE
    number: Any = _NONE
    if type(value) is kind:
        number = value
    elif kind is int and isinstance(value, str) and value.isascii() and value.isdecimal():
        number = int(value) if len(value) < 16 else _NONE
    elif kind is float and isinstance(value, str) and _FLOAT.fullmatch(value):
        number = float(value)
    else:
        return _NONE
    least, most = getattr(info, "min", None), getattr(info, "max", None)
    if (
        number is _NONE
        or (least is not None and number < least)
        or (most is not None and number > most)
    ):
        return _NONE
    return number
