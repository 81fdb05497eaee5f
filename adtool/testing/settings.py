"""The settings of tests: `[tool.adtool]`, and keywords of the marker and the fixture."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adtool.exits import ToolError
from adtool.gates import WANTED, gate_of
from adtool.in_process import Terms
from adtool.job import CheckOptions
from adtool.suppressions import Choice, codes

_OVERWRITES = ("restore", "present", "warn", "error")


class Settings:
    """What `[tool.adtool]` says of `adtool check`, also by path, for a project at `folder`.

    gate: in the words of `--gate`, before all that the table says of it.

    Raises ToolError where the table, or a value in it, is wrong, or the gate is.
    """

    def __init__(self, folder: Path, gate: str | None = None) -> None:
        import typer.main

        from adtool import configuration, usage
        from adtool.cli import app

        commands: Any = typer.main.get_command(app)
        found = configuration.settings(folder, commands.commands).get("check", {})
        self._project = configuration.project(folder, commands.commands)
        try:
            context = commands.commands["check"].make_context("adtool check", [], default_map=found)
        except usage.ClickException as error:
            raise ToolError(*usage.words(error)) from None
        self._params = dict(context.params)
        self._gate = gate
        self._known: dict[str, Terms] = {}
        self.of("")
        for override in self._project.overrides:
            _terms_of(self._params | dict(override.values))

    def of(self, file: str) -> Terms:
        """The terms for tests in a file; empty for what is in none."""
        from adtool.configuration import overridden

        if file not in self._known:
            params = self._params | overridden(self._project, file or None)
            terms = _terms_of(params)
            self._known[file] = gated(terms, self._gate) if self._gate else terms
        return self._known[file]


def _terms_of(given: Mapping[str, Any]) -> Terms:
    from adtool.commands import options as opt

    choice = Choice(codes("ignore", ()), codes("ignore", given["ignore"] or ()))
    choice = replace(choice, select=codes("select", given["select"] or ()))
    gate = gate_of(given["gate"])
    options = opt.chosen(CheckOptions, dict(given))
    return Terms(options, gate.severity, choice, gate.accuracy)


def terms_with(base: Terms, given: Mapping[str, Any]) -> Terms:
    """Terms with the values of keywords, which `checked` has passed."""
    options: dict[str, Any] = {
        k: _words(v) if k in ("kernels", "skip_kernels") else v
        for k, v in given.items()
        if k in _OF_CHECK
    }
    choice = base.choice
    for name in ("select", "ignore"):
        if name in given:
            found = codes(name, _words(given[name]))
            choice = replace(choice, **{name: found})
    terms = Terms(replace(base.options, **options), base.gate, choice, base.accuracy)
    return gated(terms, given["gate"]) if "gate" in given else terms


def gated(terms: Terms, words: str | Sequence[str]) -> Terms:
    """The terms with another gate, in the words of `--gate`. Raises ToolError for others."""
    try:
        gate = gate_of(words)
    except ValueError as error:
        raise ToolError(f"gate: {error}") from None
    return replace(terms, gate=gate.severity, accuracy=gate.accuracy)


def checked(given: Mapping[str, Any], more: Iterable[str] = ()) -> None:
    """Raises ToolError for a keyword that is none, or a value that is not one of its own.

    more: further keywords that are known.
    """
    for name, value in given.items():
        if name in more:
            continue
        if name not in _KINDS:
            known = [*_KINDS, *more]
            near = difflib.get_close_matches(name, known, 2)
            help = "did you mean " + " or ".join(f"`{n}`" for n in near) + "?" if near else (
                "known are " + ", ".join(sorted(known))
            )  # fmt: skip
            raise ToolError(f"`{name}` is not an option", help)
        wanted, fits = _KINDS[name]
        if not fits(value):
            raise ToolError(f"{name} is {wanted}, not {value!r}")
        if name in ("select", "ignore"):
            codes(name, _words(value))


def _words(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_gate(value: Any) -> bool:
    if not _is_list(_several(value)) or not value:
        return False
    try:
        gate_of(value)
    except ValueError:
        return False
    return True


_Kind = tuple[str, Callable[[Any], bool]]
_STEP: _Kind = ("a number above 0", lambda v: v is None or (_is_number(v) and v > 0))
_SIZE: _Kind = ("a number, 0 or more", lambda v: v is None or (_is_number(v) and v >= 0))
_NAMES: _Kind = ("a pattern of names, or a list of them", lambda v: _is_list(_several(v)))
_CODES: _Kind = ("a code of a finding, or a list of them", lambda v: _is_list(_several(v)))
_COUNT: _Kind = ("a whole number", _is_whole)
_SWITCH: _Kind = ("True or False", _is_switch)
_OF_CHECK: dict[str, _Kind] = {
    "eps": _STEP, "atol": _SIZE, "rtol": _SIZE, "kernels": _NAMES, "skip_kernels": _NAMES,
    "max_inputs": _COUNT, "max_outputs": _COUNT,
    "seed": ("a whole number, 0 or more", lambda v: _is_whole(v) and v >= 0),
    "order": ("1 or 2", lambda v: _is_whole(v) and v in (1, 2)),
    "end_to_end": _SWITCH, "bounds": _SWITCH, "memory": _SIZE,
    "overwrites": ("one of " + ", ".join(_OVERWRITES), lambda v: v in _OVERWRITES),
}  # fmt: skip
_KINDS: dict[str, _Kind] = {
    **_OF_CHECK, "select": _CODES, "ignore": _CODES,
    "gate": (WANTED, _is_gate),
}  # fmt: skip
