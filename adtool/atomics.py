"""Finds the atomic update that a kernel's statement stands for."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable

from adtool.sources import ENGINES, tree_of

_LONGEST = 60  # characters of an update that still tells something

_SIGNS = {"add": "+=", "sub": "-="}
_UPDATES: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub"}


def atomic_updates(file: str, lines: Collection[int]) -> tuple[str, ...]:
    """`wp.atomic_add(g, k, v)` for a line with `g[k] = g[k] + v`, and the like.

    Of a component, `g[k][0] = g[k][0] + v`, the update of the vector where its type can be seen:
    `wp.atomic_add(g, k, wp.vec2(v, 0.0))`; else, and of a field, `g[k][0] += v`.

    lines: where threads meet. Sums, differences, minima and maxima are known, also where the
    element was read to a variable, or compared with, before. Empty unless every line is part of
    an update, and where the text is not to be had.
    """
    tree = tree_of(file)
    found: dict[str, None] = {}
    left = set(lines)
    for store, above in sorted(_assignments(tree), key=lambda x: x[0].lineno):
        text, parts = _meant(store, above, tree)
        if text and left & parts and len(text) <= _LONGEST:
            found[text] = None
            left -= parts
    return () if left else tuple(found)


def _assignments(tree: ast.AST) -> Iterable[tuple[ast.Assign, list[ast.AST]]]:
    """Assignments to one element, or a part of one, each with what it stands in, innermost last."""
    todo: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while todo:
        node, above = todo.pop()
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Subscript) or _of_element(target):
                yield node, above
        todo += [(child, [*above, node]) for child in ast.iter_child_nodes(node)]


def _of_element(target: ast.expr) -> bool:
    """Whether a target is a component or field of an element: `g[k][0]`, `g[k].x`."""
    if not isinstance(target, (ast.Subscript, ast.Attribute)):
        return False
    element = target.value
    return isinstance(element, ast.Subscript) and isinstance(
        element.value, (ast.Name, ast.Attribute)
    )


def _meant(store: ast.Assign, above: list[ast.AST], tree: ast.Module) -> tuple[str, set[int]]:
    """The update that an assignment means, and the lines of it; empty where it means none."""
    target = store.targets[0]
    assert isinstance(target, (ast.Subscript, ast.Attribute))
    part = _of_element(target)
    if not part and not isinstance(target.value, (ast.Name, ast.Attribute)):
        return "", set()
    names = _names_of(ast.unparse(target), store, above)
    lines = set(range(store.lineno, (store.end_lineno or store.lineno) + 1)) | set(names.values())
    kind, value = _update(store.value, names, tree)
    if not kind:
        kind, value = _chosen(store.value, above, names)
        lines |= {above[-1].test.lineno} if above and isinstance(above[-1], ast.If) else set()
    if not kind or any(name in _parts(value) for name in names):
        return "", set()
    element = target.value if part else target
    if isinstance(element, ast.Subscript):
        array = f"{ast.unparse(element.value)}["
        if any(words.startswith(array) for words in _parts(value)):
            return "", set()  # what other threads add to would still be read
    if part:
        return _part_update(target, kind, value, above, tree), lines
    assert isinstance(target, ast.Subscript)
    return _atomic(tree, kind, target, value), lines


def _atomic(tree: ast.Module, kind: str, target: ast.Subscript, value: ast.expr) -> str:
    index = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    words = [target.value, *index, value]
    return f"{engine_in(tree) or 'wp'}.atomic_{kind}({', '.join(map(ast.unparse, words))})"


def _part_update(
    target: ast.Subscript | ast.Attribute, kind: str, value: ast.expr, above: list[ast.AST],
    tree: ast.Module,
) -> str:  # fmt: skip
    """The update of a component or field; empty where there is none that is atomic."""
    if kind not in _SIGNS:
        return ""
    element = target.value
    assert isinstance(element, ast.Subscript)
    given = len(element.slice.elts) if isinstance(element.slice, ast.Tuple) else 1
    vector = _element_type(element.value, given, above, tree)
    length = re.fullmatch(r"(?:\w+\.)?vec([234])[fdh]?", vector)
    at = _component(target)
    if length is not None and 0 <= at < int(length[1]):
        zero: ast.expr = ast.Constant(0.0)
        parts = [value if k == at else zero for k in range(int(length[1]))]
        whole = ast.Call(ast.parse(vector, mode="eval").body, parts, [])
        text = _atomic(tree, kind, element, whole)
        if len(text) <= _LONGEST:
            return text
    return f"{ast.unparse(target)} {_SIGNS[kind]} {ast.unparse(value)}"


def _component(target: ast.Subscript | ast.Attribute) -> int:
    """The number of a component; -1 where it is none, or known only when the kernel runs."""
    if isinstance(target, ast.Attribute):
        return "xyzw".find(target.attr) if len(target.attr) == 1 else -1
    at = target.slice.value if isinstance(target.slice, ast.Constant) else None
    return at if type(at) is int else -1


def _element_type(of: ast.expr, indices: int, above: list[ast.AST], tree: ast.Module) -> str:
    """What an array with so many indices holds, as its annotation says: a parameter, or a field
    of one that is a struct; empty where that is not to be seen.
    """
    function = next((a for a in reversed(above) if isinstance(a, ast.FunctionDef)), None)
    args = function.args.args if function is not None else []
    declared: ast.expr | None = None
    if isinstance(of, ast.Name):
        declared = next((a.annotation for a in args if a.arg == of.id), None)
    elif isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name):
        owner = next((a.annotation for a in args if a.arg == of.value.id), None)
        fields = [
            s.annotation
            for c in ast.walk(tree)
            if isinstance(c, ast.ClassDef) and isinstance(owner, ast.Name) and c.name == owner.id
            for s in c.body
            if isinstance(s, ast.AnnAssign) and ast.unparse(s.target) == of.attr
        ]
        declared = fields[0] if len(fields) == 1 else None
    if not isinstance(declared, ast.Call):
        return ""
    words = {k.arg: ast.unparse(k.value) for k in declared.keywords}
    made = re.fullmatch(r"(?:\w+\.)?array([234])d", ast.unparse(declared.func))
    ndim = made[1] if made is not None else words.get("ndim", "1")
    return words.get("dtype", "") if ndim == str(indices) else ""


def _names_of(element: str, store: ast.Assign, above: list[ast.AST]) -> dict[str, int]:
    """What stands for an element where it is stored: itself, and a variable that just got it.

    With the lines of both.
    """
    out = {element: store.lineno}
    function = next((a for a in reversed(above) if isinstance(a, ast.FunctionDef)), None)
    for s in ast.walk(function) if function is not None else ():
        if isinstance(s, ast.Assign) and s.lineno < store.lineno and len(s.targets) == 1:
            if isinstance(s.targets[0], ast.Name):
                out.pop(s.targets[0].id, None)
                if ast.unparse(s.value) == element:
                    out[s.targets[0].id] = s.lineno
    return out


def _update(value: ast.expr, names: Collection[str], tree: ast.Module) -> tuple[str, ast.expr]:
    """How a value updates an element, and by what; an empty kind where it does not."""
    if isinstance(value, ast.BinOp) and type(value.op) in _UPDATES:
        kind = _UPDATES[type(value.op)]
        if ast.unparse(value.left) in names:
            return kind, value.right
        if kind == "add" and ast.unparse(value.right) in names:
            return kind, value.left
    if isinstance(value, ast.Call) and len(value.args) == 2 and not value.keywords:
        kind = _of_two(value.func, tree)
        if kind:
            one, other = value.args
            if ast.unparse(one) in names:
                return kind, other
            if ast.unparse(other) in names:
                return kind, one
    return "", value


def _of_two(f: ast.expr, tree: ast.Module) -> str:
    """`min` or `max` where a call is of Python's or the engine's; the file may have its own."""
    if isinstance(f, ast.Attribute):
        of_engine = isinstance(f.value, ast.Name) and f.value.id in (_engines(tree) or ["wp"])
        return f.attr if of_engine and f.attr in ("min", "max") else ""
    if not isinstance(f, ast.Name) or f.id not in ("min", "max"):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == f.id:
            return ""
        if isinstance(node, ast.Name) and node.id == f.id and not isinstance(node.ctx, ast.Load):
            return ""
        if isinstance(node, ast.arg) and node.arg == f.id:
            return ""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            engines = isinstance(node, ast.ImportFrom) and node.module in ENGINES
            if any((a.asname or a.name) in (f.id, "*") for a in node.names):
                if not engines or any(a.asname == f.id != a.name for a in node.names):
                    return ""
    return f.id


def _chosen(value: ast.expr, above: list[ast.AST], names: Collection[str]) -> tuple[str, ast.expr]:
    """The same for `if v > x[i]: x[i] = v`."""
    test = above[-1].test if above and isinstance(above[-1], ast.If) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = ast.unparse(test.left), ast.unparse(test.comparators[0])
        more = isinstance(test.ops[0], (ast.Gt, ast.GtE))
        if more or isinstance(test.ops[0], (ast.Lt, ast.LtE)):
            if left == ast.unparse(value) and right in names:
                return ("max" if more else "min"), value
            if right == ast.unparse(value) and left in names:
                return ("min" if more else "max"), value
    return "", value


def _parts(value: ast.expr) -> set[str]:
    return {ast.unparse(x) for x in ast.walk(value) if isinstance(x, ast.expr)}


def engine_in(tree: ast.Module) -> str:
    """What a file calls the engine; empty where it has names of it alone."""
    return next(iter(_engines(tree)), "")


def _engines(tree: ast.Module) -> list[str]:
    """All that a file calls the engine."""
    imports = (a for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names)
    return [a.asname or a.name for a in imports if a.name in ENGINES]
