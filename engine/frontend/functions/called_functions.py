"""Finds the functions that a Python function calls, by the names in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

from engine.frontend.functions.gradient import Gradient
from engine.frontend.functions.user_function import OPERATORS, UserFunc
from engine.frontend.parsing.scope import Scope, is_engine
from engine.frontend.parsing.text import FunctionText, Place
from engine.itself import calling_frame

# Longer tables of functions are not looked at.
_MAX_TABLE = 64
# What functions lead to others: caller, names, function, its gradient and its replay.
Bindings = frozenset[tuple[Any, str, UserFunc, Any, Any]]


def bindings(func: Callable[..., Any], text: FunctionText | None = None) -> Bindings:
    """The functions made by `@func` that a Python function reaches, with the names it uses.

    text: as its decorator found it, with what its static expressions gave.

    Equal as long as its calls, and the calls in what it calls, mean the same functions
    with the same gradients. Compared with an earlier one, it tells stale kernels.
    """
    out: set[tuple[Any, str, UserFunc, Any, Any]] = set()
    done: set[Any] = set()
    todo: list[Any] = [func]
    while todo:
        caller = todo.pop()
        if caller is None or caller in done:
            continue
        done.add(caller)
        known = text if caller is func else getattr(caller, "text", None)
        for path, found in _reached(caller, known.statics if known is not None else {}):
            for f in found.overloads:
                out.add((caller, path, f, f.grad_func, f.replay_func))
                todo += [f, f.grad_func, f.replay_func]
    return frozenset(out)


def _reached(
    func: Callable[..., Any], statics: Mapping[Place, object]
) -> Iterator[tuple[str, UserFunc]]:
    code = getattr(inspect.unwrap(func), "__code__", None)
    names = sorted({*_names(code), *OPERATORS.values()}) if code is not None else []
    scope = Scope(func)
    for name in names:
        yield from _followed(name, scope.find(name), names, 3)
    for place, value in statics.items():
        yield from _followed(str(place), value, names, 3)


def _names(code: CodeType) -> set[str]:
    """Names of globals, closure cells and attributes in a function and those nested in it."""
    out = {*code.co_names, *code.co_freevars}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            out |= _names(inner)
    return out


def _followed(
    path: str, obj: object, names: Sequence[str], depth: int
) -> Iterator[tuple[str, UserFunc]]:
    """Functions that `obj` is or leads to: `f`, `module.f`, `package.module.f`, `table[i]`."""
    if isinstance(obj, Gradient):
        obj = obj.target
    if isinstance(obj, UserFunc):
        yield path, obj
    elif isinstance(obj, (list, tuple, dict)):
        if depth and len(obj) <= _MAX_TABLE:
            for k, item in enumerate(obj.values() if isinstance(obj, dict) else obj):
                yield from _followed(f"{path}[{k}]", item, names, depth - 1)
    elif depth and not is_engine(obj):
        inside = getattr(obj, "__dict__", {})
        for name in names:
            if name in inside:
                yield from _followed(f"{path}.{name}", inside[name], names, depth - 1)


def defined_before(function: Callable[..., Any]) -> UserFunc | None:
    """What the name of a function that is being defined stands for, if it is one of its kind."""
    frame = calling_frame()
    found = frame.f_locals.get(function.__name__) if frame is not None else None
    if not isinstance(found, UserFunc) or found.func.__module__ != function.__module__:
        return None
    return found if found.func.__qualname__ == function.__qualname__ else None
