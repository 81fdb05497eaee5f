"""Arguments of builtins by name and by position, as far as the text of a call tells."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from engine.builtins.argument_names import placed
from engine.builtins.composite import COMPOSITES
from engine.builtins.queries import QUERIES
from engine.frontend.parsing.scope import Scope
from engine.lang.references import positions_of, reference_names


def by_position(name: str, node: ast.Call) -> ast.Call | None:
    """A builtin's call with arguments by name as one by position; None for names it has not."""
    words = {w.arg or "**": w.value for w in node.keywords}
    found = placed(name, len(node.args), list(words))
    if found is None:
        return None
    args = [
        words[x] if isinstance(x, str) else ast.copy_location(ast.Constant(x), node) for x in found
    ]
    return ast.copy_location(ast.Call(node.func, [*node.args, *args], []), node)


def changed_arguments(scope: Scope, node: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that a composite may change. By name: no types are known yet."""
    name = getattr(_known(scope, node.func), "__builtin_name__", "")
    positions = {k for c in COMPOSITES.get(name, ()) for k in c.updates}
    if name in QUERIES:
        yield from changed_by_query(name, node)
    elif positions and node.keywords:
        node = by_position(name, node) or node
    yield from (a for k, a in enumerate(node.args) if k in positions)
    yield from _referred(_known(scope, node.func), node)


def _referred(target: object, node: ast.Call) -> Iterator[ast.expr]:
    """The arguments that a function takes by reference."""
    overloads = getattr(target, "overloads", None)
    for overload in overloads if isinstance(overloads, tuple) else ():
        func = getattr(overload, "func", None)
        names = references_of(func) if callable(func) else ()
        if names and func is not None:
            positions = positions_of(names, func)
            yield from (a for k, a in enumerate(node.args) if k in positions)
            yield from (w.value for w in node.keywords if w.arg in names)


def references_of(func: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a Python function that are references, in order."""
    return reference_names(func, lambda note: Scope(func).evaluate(note))


def changed_by_query(name: str, node: ast.Call) -> Iterator[ast.expr]:
    """The same for a query: the number of arguments tells the overload."""
    words = {w.arg: w.value for w in node.keywords}
    count = len(node.args) + len(words)
    fits = [q for q in QUERIES[name] if len(q.types) - len(q.defaults) <= count <= len(q.types)]
    for k in fits[0].updates if fits else ():
        found = node.args[k] if k < len(node.args) else words.get(fits[0].names[k])
        if found is not None:
            yield found


def _known(scope: Scope, node: ast.expr) -> object:
    """The object that `f` or `module.f` names; None for anything else."""
    if isinstance(node, ast.Name):
        return scope.lookup(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_known(scope, node.value), node.attr, None)
    return None
