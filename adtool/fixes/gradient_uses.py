"""Finds where a program's text uses gradients: updates of parameters, and other uses.

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
# What makes numbers, or a copy, of an array.
_COPIES = ("abs", "clone", "copy", "deepcopy", "float", "int", "item", "len", "max", "mean", "min",
           "norm", "print", "repr", "str", "sum", "tolist")  # fmt: skip
# Methods that put something into a list, set or dictionary.
_INTO = ("add", "append", "appendleft", "extend", "insert", "put", "setdefault", "update")


def moves_parameters(source: Source, statements: Sequence[ast.stmt]) -> bool:
    """Whether they change parameters by gradients each time they run, as far as that can be seen.

    Not where a part of it stands under a condition: several passes may be meant to be added up.
    """
    certain = False
    users = _users(source, ())
    for node, always in _run(statements):
        if isinstance(node, ast.Call) and _moves(source, node):
            if not always or _depends(source, node):
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
    users |= _holders_of_gradients(source, users, holders)
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


def _depends(source: Source, call: ast.Call) -> bool:
    """Whether what a call does may depend on a condition, in itself or in what it calls.

    The kernel of a launch must be in the file; the step of an optimizer need not.
    """
    name = "step"
    if source.called(call) == "launch":
        kernel = call.args[0] if call.args else None
        name = kernel.id if isinstance(kernel, ast.Name) else ""
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "assign":
        return _conditional(call)
    bodies = [n for n in ast.walk(source.tree) if isinstance(n, _FUNCTIONS) and n.name == name]
    missing = not bodies and name != "step"
    return missing or _conditional(call) or any(_conditional(b) for b in bodies)


def _conditional(node: ast.AST) -> bool:
    for n in ast.walk(node):
        if isinstance(n, (ast.If, ast.IfExp, ast.While, ast.BoolOp, ast.Match, ast.Mod)):
            return True
        if type(n).__name__ in ("Try", "TryStar") or (isinstance(n, ast.comprehension) and n.ifs):
            return True
        if _names(n) & {"where", "select"}:
            return True
    return False


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
    if isinstance(node, ast.Constant):
        return node.value in _GRADIENTS  # `getattr(x, "grad")`
    return isinstance(node, ast.Attribute) and node.attr in _USES


def _names(node: ast.AST) -> set[str]:
    """The name that a node refers to."""
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        return {node.id if isinstance(node, ast.Name) else node.attr}
    return set()


def _holders_of_gradients(source: Source, users: set[str], holders: Sequence[ast.AST]) -> set[str]:
    """Names of what gradients are kept in; copies of their numbers are none.

    users: functions. holders: those whose own names count, too.
    """
    kept: list[tuple[set[str], ast.AST]] = []
    for n in ast.walk(source.tree):
        for targets, value in _given(n):
            names = {name for t in targets for x in ast.walk(t) for name in _stored(x)}
            names -= _own_names(source, n, holders)
            kept.append((names, value))
    found: set[str] = set()
    while True:
        more = {
            name for names, value in kept for name in names if _shares(value, users | found)
        }  # fmt: skip
        if more <= found:
            return found
        found |= more


def _shares(value: ast.AST, names: set[str]) -> bool:
    """Whether a value may have the memory of a gradient. names: of what may."""
    if _uses(value) or _names(value) & names:
        return True
    if isinstance(value, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.JoinedStr)):
        return False
    if isinstance(value, ast.Call):
        f = value.func
        name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
        if name in _COPIES:
            return False
    return any(_shares(child, names) for child in ast.iter_child_nodes(value))


def _own_names(source: Source, node: ast.AST, holders: Sequence[ast.AST]) -> set[str]:
    """Names that are those of a function alone, in which a node stands."""
    function = next((f for f in source.above(node) if isinstance(f, _FUNCTIONS)), None)
    if function is None or function in holders:
        return set()
    own, others = set(), set()
    for n in ast.walk(function):
        if isinstance(n, ast.arg):
            own.add(n.arg)
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            own.add(n.id)
        elif isinstance(n, (ast.Global, ast.Nonlocal)):
            others |= set(n.names)
    return own - others


def _given(node: ast.AST) -> Iterator[tuple[Sequence[ast.AST], ast.AST]]:
    """What a node gives a value to, and the value."""
    if isinstance(node, ast.Assign):
        yield node.targets, node.value
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value:
        yield [node.target], node.value
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield [node.target], node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield [node.optional_vars], node.context_expr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _INTO:
            for value in (*node.args, *[k.value for k in node.keywords]):
                yield [node.func.value], value


def _stored(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


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
