"""A name for an array that is valid in a running function: what a user can type there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeAlias

from engine.runtime.array import array
from engine.tape.graph.names import DEPTH, members, variables_of
from engine.tape.outline import key_of, root_array

Variables: TypeAlias = Sequence[Mapping[str, Any]]

_NOTHING = object()
_VISITS = 20_000  # objects looked at in one search
_SEARCHES = 64  # of a program


class ValidNames:
    """Of one program. A name that was found is tried again before all variables are searched."""

    __slots__ = ("_known", "_searches")

    def __init__(self) -> None:
        self._known: dict[tuple[CodeType, bytes], str] = {}
        self._searches = 0

    def of(self, code: CodeType, a: array, text: str) -> str:
        """An expression that means an array in the innermost call of some code that is running.

        text: the expression to be taken if it does. Empty where none is found.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        if frame is None:
            return ""
        variables, key = _variables(frame), (code, a._packed)
        for name in (text, self._known.get(key, "")):
            if name and _means(name, variables, a):
                return name
        if self._searches >= _SEARCHES:
            return ""
        self._searches += 1
        found = self._known[key] = _shortest(variables, a)
        return found


def _variables(frame: FrameType) -> Variables:
    """The variables of a function, and those of its module that it does not hide."""
    if frame.f_locals is frame.f_globals:
        return (dict(frame.f_globals),)
    code = frame.f_code
    hidden = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    shown = {k: v for k, v in frame.f_globals.items() if k not in hidden}
    return variables_of(frame), shown


def _is_meant(value: object, a: array) -> bool:
    """Whether a value is an array, or the tensor whose gradient the array has."""
    if isinstance(value, array):
        return key_of(value) == key_of(a)
    shared = root_array(a)._shared
    return shared is not None and a._origin is None and bool(shared.has(value))


def _means(name: str, variables: Variables, a: array) -> bool:
    try:
        expression = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return False
    return _is_meant(_value(expression, variables), a)


def _value(e: ast.expr, variables: Variables) -> object:
    """What an expression of names, attributes and subscripts is. Runs no code of the program."""
    if isinstance(e, ast.Name):
        return next((v[e.id] for v in variables if e.id in v), _NOTHING)
    if not isinstance(e, (ast.Attribute, ast.Subscript)):
        return _NOTHING
    value = _value(e.value, variables)
    if isinstance(e, ast.Attribute):
        step = f".{e.attr}"
    elif isinstance(value, array):
        return _view(value, e.slice, variables)
    else:
        at = _index(e.slice, variables)
        if isinstance(at, int) and at < 0 and isinstance(value, (list, tuple)):
            at += len(value)
        step = f"[{at!r}]"
    return next((v for s, v in _steps(value) if s == step), _NOTHING)


def _view(a: array, e: ast.expr, variables: Variables) -> object:
    """A part of an array; nothing where that is one element, which would be read."""
    parts = e.elts if isinstance(e, ast.Tuple) else [e]
    index: list[object] = []
    for part in parts:
        if isinstance(part, ast.Slice):
            ends = (part.lower, part.upper, part.step)
            index.append(slice(*(None if x is None else _index(x, variables) for x in ends)))
        else:
            index.append(_index(part, variables))
    whole = len(index) == a.ndim and not any(isinstance(x, slice) for x in index)
    with suppress(Exception):  # an index that does not fit
        return _NOTHING if whole or _NOTHING in index else a[tuple(index)]
    return _NOTHING


def _index(e: ast.expr, variables: Variables) -> object:
    try:
        return ast.literal_eval(e)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        found = _value(e, variables)
    return found if type(found) in (int, str) else _NOTHING


def _steps(value: object) -> list[tuple[str, Any]]:
    """What can be reached from a value, with the parameters of modules of PyTorch."""
    found: list[tuple[str, Any]] = []
    if isinstance(value, (type, ModuleType, array)):
        return found
    # Objects of the user's may answer anything, and another thread may change them.
    with suppress(Exception):
        found += members(value)
    with suppress(Exception):
        fields = object.__getattribute__(value, "__dict__")
        for inside in (fields.get("_parameters"), fields.get("_modules")):
            if isinstance(inside, dict):
                found += [(f".{k}", v) for k, v in inside.items() if k.isidentifier()]
    return found


def _shortest(variables: Variables, a: array) -> str:
    """The shortest name, of a variable of the function if there is one; empty where none is."""
    left = _VISITS
    for some in variables:
        found: list[str] = []
        todo = [(k, v, DEPTH) for k, v in some.items() if k.isidentifier() and k[:2] != "__"]
        while todo and left:
            left -= 1
            path, value, depth = todo.pop()
            if _is_meant(value, a):
                found.append(path)
            elif depth:
                todo += [(path + step, v, depth - 1) for step, v in _steps(value)]
        if found:
            return min(found, key=lambda s: (s.startswith("_"), len(s), s))
    return ""
