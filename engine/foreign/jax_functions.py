"""The Python functions of a JAX rule, their modules, and their captured variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from engine.diagnostics import Span
from engine.foreign.places import cells, package_of
from engine.reading import getline

_CUSTOM = os.path.join("jax", "_src", "custom_derivatives.py")


def functions_of(rule: Any) -> list[Any]:
    """The Python functions of a rule: the function itself, then what gives its gradient."""
    given = (rule.fun, *(getattr(rule, name, None) for name in ("jvp", "fwd", "bwd")))
    return [g for f in given if f is not None for g in (unwrapped(f), *_single(f))]


def captured(rule: Any, others: Sequence[Any] = ()) -> Iterator[tuple[Any, Any]]:
    """The cells of all functions of a rule and of functions in these, with what they hold.

    others: static arguments of the call, of which some may be functions.
    """
    seen, open_ = set[int](), [*functions_of(rule), *others]
    while open_:
        for cell, held in cells(open_.pop()):
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            yield cell, held
            if is_rule(held):
                open_ += functions_of(held)
            elif isinstance(held, FunctionType):
                open_.append(held)


def is_rule(x: Any) -> bool:
    """Whether something is a function with a rule."""
    import jax

    return isinstance(x, jax.custom_vjp | jax.custom_jvp)


def _single(f: Any) -> Iterator[Any]:
    """The functions given to `defjvps`, one for each argument."""
    names = getattr(getattr(f, "__code__", None), "co_freevars", ())
    if "jvps" in names and not is_own_file(f.__code__.co_filename):
        given = f.__closure__[names.index("jvps")].cell_contents
        yield from (unwrapped(g) for g in given if g is not None)


def rule_place(rule: Any) -> str:
    """The place of what gives a rule's gradient, as JAX knows it."""
    from jax._src.api_util import fun_sourceinfo

    return str(fun_sourceinfo(getattr(rule, "bwd", None) or rule.jvp))


def rule_name(rule: Any) -> str:
    """What a rule's function is called, as its user knows it."""
    f = unwrapped(rule.fun)
    name = str(getattr(f, "__qualname__", None) or type(f).__name__)
    return name.rpartition("<locals>.")[2]


def unwrapped(f: Any) -> Any:
    """The function inside of partial applications and wrappers."""
    while True:
        inner = getattr(f, "__wrapped__", None) or getattr(f, "func", None)
        if inner is None:
            inner = getattr(f, "__func__", None) or _of_custom_gradient(f)
        if inner is None:
            return f
        f = inner


def _of_custom_gradient(f: Any) -> Any:
    """What `jax.custom_gradient` was given, of a function that it made."""
    code = getattr(f, "__code__", None)
    if code is None or not code.co_filename.endswith(_CUSTOM) or "fun" not in code.co_freevars:
        return None
    return f.__closure__[code.co_freevars.index("fun")].cell_contents


def code_of(f: Any) -> CodeType | None:
    """The code of a Python function, or of the call of an object."""
    f = unwrapped(f)
    code = getattr(f, "__code__", None)
    if code is None:
        code = getattr(vars(type(f)).get("__call__"), "__code__", None)
    return code if isinstance(code, CodeType) else None


def rule_codes(rule: Any) -> tuple[CodeType | None, ...]:
    """The code of all functions of a rule."""
    return tuple(code_of(f) for f in functions_of(rule))


def package_of_rule(rule: Any) -> str:
    """The installed package that a rule was written in, empty for the user's own."""
    packages = [package_of(c.co_filename) for c in rule_codes(rule) if c is not None]
    return next(iter(packages), "jax") if all(packages) else ""


def is_own_file(file: str) -> bool:
    """Whether a file belongs to the user's program."""
    return not package_of(file)


def definition(code: Any) -> Span:
    """Where the code of a function begins: its `def`, after decorators."""
    file, line = str(code.co_filename), int(code.co_firstlineno)
    for n in range(line, line + 50):
        text = getline(file, n)
        if text.lstrip().startswith(("def ", "async def ")):
            begin = len(text) - len(text.lstrip()) + 1
            return Span(file, n, begin, n, len(text.rstrip()) + 1)
        if "lambda" in text:
            places = [(p[2], p[3]) for p in code.co_positions() if p[0] == n and p[2] and p[3]]
            first, last = min(p[0] for p in places), max(p[1] for p in places)
            return Span(file, n, max(0, text.rfind("lambda", 0, first)) + 1, n, last + 1)
        if not text:
            break
    return Span(file, line, 1, line, 1)
