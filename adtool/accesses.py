"""Describes an out-of-bounds access in the terms of the user's source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.sources import tree_of

if TYPE_CHECKING:
    from engine import Fault
    from engine.diagnostics import Span

_LONGEST = 60  # characters of an expression that still tells something
_MAKERS = ("zeros", "empty", "ones", "full")


def told(fault: Fault) -> str:
    """What was outside of what, to be put behind the name of the kernel.

    With more than the fault itself knows where the source says it: local arrays are told from
    vectors, variables have their names, and a part of an array that a function was given is
    named beside the array.
    """
    function, found = _stands(fault.span, fault.name)
    if function is None or found is None:
        return fault.words
    name, written = ast.unparse(found.value), _short(found)
    if fault.access == "component" and not isinstance(found.value, ast.Subscript):
        index, size = ", ".join(map(str, fault.index)), " x ".join(map(str, fault.shape))
        if _is_local(function, found.value):
            return f"names element [{index}] of local array `{name}`, which has {size}{written}"
        what = "vector" if len(fault.shape) == 1 else "matrix"
        return f"names component [{index}] of `{name}`, a {what} of {size}{written}"
    given = len(found.slice.elts) if isinstance(found.slice, ast.Tuple) else 1
    if fault.access in _DOES and name == fault.name and given < len(fault.index):
        part = _part(function, name, fault.span.file)
        if part is None or _places(part) != len(fault.index) - given:
            return f"{fault.words}{written}"
        index = ", ".join(map(str, fault.index))
        inner = ", ".join(map(str, fault.index[-given:]))
        return (
            f"{_DOES[fault.access]} `{_root(part)}[{index}]` outside of its shape {fault.shape}, "
            f"as [{inner}] of its part `{name}` in `{function.name}`{written}"
        )
    return fault.words


_DOES = {"load": "reads", "store": "writes", "atomic": "updates"}


def is_small(fault: Fault) -> bool:
    """Whether it is no element of an array in memory, so that the number of threads is no cause."""
    return fault.access == "component"


def _stands(span: Span, name: str) -> tuple[ast.FunctionDef | None, ast.Subscript | None]:
    """The access itself, and the function that it is in; None where that is not plain."""
    tree = tree_of(span.file)
    here = [
        f for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef) and f.lineno <= span.line <= (f.end_lineno or 0)
    ]  # fmt: skip
    if not here:
        return None, None
    function = max(here, key=lambda f: f.lineno)
    start, end = (span.line, span.col - 1), (span.end_line, span.end_col - 1)
    found = [
        x for x in ast.walk(function)
        if isinstance(x, ast.Subscript) and start <= (x.lineno, x.col_offset)
        and (x.end_lineno or 0, x.end_col_offset or 0) <= end
    ]  # fmt: skip
    of_name = [x for x in found if name and ast.unparse(x.value) == name]
    exact = [
        x for x in found
        if (x.lineno, x.col_offset, x.end_lineno, x.end_col_offset) == (*start, *end)
    ]  # fmt: skip
    # A statement that stores is the place of the store: what it stores to comes first.
    stored = [x for x in found if isinstance(x.ctx, ast.Store) and x in of_name]
    for some in (exact, stored, of_name):
        if len(some) == 1 and (not name or some[0] in of_name):
            return function, some[0]
    return function, None


def _is_local(function: ast.FunctionDef, name: ast.expr) -> bool:
    """Whether a name is that of a local array: `r = wp.zeros(shape=(4,), dtype=float)`."""
    if not isinstance(name, ast.Name):
        return False
    made = [
        s.value for s in ast.walk(function)
        if isinstance(s, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name.id for t in s.targets)
    ]  # fmt: skip
    return bool(made) and all(isinstance(v, ast.Call) and _called(v) in _MAKERS for v in made)


def _part(function: ast.FunctionDef, name: str, file: str) -> ast.expr | None:
    """What all callers in a file give a function for a parameter, where that is one part."""
    names = [a.arg for a in function.args.args]
    if name not in names:
        return None
    given = dict.fromkeys(ast.unparse(v) for v in _given(function.name, names, name, file))
    if len(given) != 1:
        return None
    part = ast.parse(next(iter(given)), mode="eval").body
    return part if isinstance(part, ast.Subscript) else None


def _given(function: str, names: list[str], name: str, file: str) -> Iterator[ast.expr]:
    for call in ast.walk(tree_of(file)):
        if isinstance(call, ast.Call) and _called(call) == function:
            words = dict(zip(names, call.args, strict=False))
            words |= {k.arg: k.value for k in call.keywords if k.arg}
            yield words.get(name, ast.Name("_"))


def _called(call: ast.Call) -> str:
    f = call.func
    return f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")


def _places(part: ast.expr) -> int:
    """The indices of a part such as `y[i, j]` or `y[i][j]`; -1 where one is a slice."""
    count = 0
    while isinstance(part, ast.Subscript):
        index = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        if any(isinstance(x, ast.Slice) for x in index):
            return -1
        count, part = count + len(index), part.value
    return count


def _root(part: ast.expr) -> str:
    while isinstance(part, ast.Subscript):
        part = part.value
    return ast.unparse(part)


def _short(expression: ast.expr) -> str:
    """An expression, to be put behind what is said of it; empty where it is too long."""
    text = ast.unparse(expression)
    return f" (`{text}`)" if len(text) <= _LONGEST else ""
