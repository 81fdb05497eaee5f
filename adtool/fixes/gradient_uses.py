"""Where a program's text uses gradients: what moves parameters by them, and what else needs them.

Only the text of one file is known. What it does not show counts as a use, so that nothing is
cleared that might be wanted.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from adtool.fixes.source import Source

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_GRADIENTS = ("grad", "gradients")
_USES = (*_GRADIENTS, "step")


def moves_parameters(source: Source, statements: Sequence[ast.stmt]) -> bool:
    """Whether they change parameters by gradients each time they run, as far as that can be seen.

    Not where a part of it stands under a condition: several passes may be meant to be added up.
    """
    certain = False
    users = _users(source, ())
    for node, always in _run(statements):
        if isinstance(node, ast.Call) and _moves(source, node):
            if not always:
                return False
            certain = True
        elif not always and _names(node) & users:
            return False  # it may do so there
    return certain


def seeds(statements: Iterable[ast.stmt]) -> bool:
    """Whether something is put into a gradient."""
    for n in (n for s in statements for n in ast.walk(s)):
        if isinstance(n, (ast.Assign, ast.AugAssign)):
            if _have_gradients(n.targets if isinstance(n, ast.Assign) else [n.target]):
                return True
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            if n.func.attr in ("fill_", "assign") and _have_gradients([n.func.value]):
                return True
    return False


def used_elsewhere(source: Source, loop: ast.AST, after: Sequence[ast.stmt]) -> bool:
    """Whether gradients may be used where a loop's body has ended: they would be zero there.

    after: the statements of the body after the backward pass, which end before. What a loop
    around this one adds up would be cleared, too. Functions count where they are called, and
    where nothing shows who calls them.
    """
    mine = {id(n) for s in after for n in ast.walk(s)}
    holders = [n for n in source.above(loop) if isinstance(n, _FUNCTIONS)]
    users = _users(source, holders)
    if _callers_unknown(source, users):
        return True
    todo: list[ast.AST] = [source.tree]
    while todo:
        node = todo.pop()
        if id(node) in mine or (isinstance(node, _FUNCTIONS) and node not in holders):
            continue
        if _uses(node) or _names(node) & users:
            return True
        todo += ast.iter_child_nodes(node)
    return False


def _run(nodes: Iterable[ast.AST], always: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """What runs where statements do, and whether it is certain to."""
    for node in nodes:
        yield node, always
        certain: list[ast.AST]
        if isinstance(node, (ast.For, ast.AsyncFor)):
            certain = [node.target, node.iter, *node.body]
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            certain = [node.test]
        elif isinstance(node, ast.BoolOp):
            certain = [node.values[0]]
        elif isinstance(node, ast.comprehension):
            certain = [] if node.ifs else list(ast.iter_child_nodes(node))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            some = any(g.ifs for g in node.generators)
            certain = [] if some else list(ast.iter_child_nodes(node))
        elif isinstance(node, (*SCOPES, ast.Match)) or type(node).__name__ in ("Try", "TryStar"):
            certain = []
        else:
            certain = list(ast.iter_child_nodes(node))
        known = {id(n) for n in certain}
        yield from _run(certain, always)
        yield from _run([n for n in ast.iter_child_nodes(node) if id(n) not in known], False)


def _moves(source: Source, call: ast.Call) -> bool:
    """Whether a call changes an array by its own gradient."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method == "step":
        return True
    given: list[ast.AST] = [*call.args, *[k.value for k in call.keywords]]
    if method == "assign":
        given.append(call.func)
    elif source.called(call) != "launch":
        return False
    owners = [o for x in given for n in ast.walk(x) for o in _owners(n)]
    everything = Counter(ast.dump(n) for x in given for n in ast.walk(x))
    inside = Counter(ast.dump(n) for o in owners for n in ast.walk(o))
    return any(everything[name] > inside[name] for o in owners for name in _chain(o))


def _owners(node: ast.AST) -> Iterator[ast.AST]:
    """Of `x.grad`, and of `tape.gradients[x]`, x."""
    if isinstance(node, ast.Attribute) and node.attr == "grad":
        yield node.value
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        if node.value.attr == "gradients":
            yield node.slice


def _chain(owner: ast.AST) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`: an argument may be a struct that has the array."""
    node = owner
    yield ast.dump(node)
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        yield ast.dump(node)


def _have_gradients(nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in _GRADIENTS
               for x in nodes for n in ast.walk(x))  # fmt: skip


def _uses(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _USES


def _names(node: ast.AST) -> set[str]:
    """The name that a node refers to."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return {node.id}
    return {node.attr} if isinstance(node, ast.Attribute) else set()


def _users(source: Source, but: Sequence[ast.AST]) -> set[str]:
    """Names of functions that use gradients, or call one that does; of classes that do when made.

    but: functions that are left out.
    """
    functions = [n for n in ast.walk(source.tree) if isinstance(n, _FUNCTIONS) and n not in but]
    users: set[str] = set()
    todo = [(f, list(ast.walk(f))) for f in functions]
    while True:
        found = {
            name for f, nodes in todo for name in _called_by(source, f)
            if any(_uses(n) or _names(n) & users for n in nodes)
        }  # fmt: skip
        if found <= users:
            return users
        users |= found


def _called_by(source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that a function is called by: a method of Python's own by that of its class."""
    above = source.parents.get(function)
    if isinstance(above, ast.ClassDef) and function.name.startswith("__"):
        return {above.name}
    return {function.name}


def _callers_unknown(source: Source, users: set[str]) -> bool:
    """Whether a function that uses gradients is mentioned nowhere: other files may call it."""
    mentioned = {name for n in ast.walk(source.tree) for name in _names(n)}
    return bool(users - mentioned)
