"""Finds loops of a kernel that may not end, in its source."""

from __future__ import annotations

import ast

from adtool.sources import tree_of


def loops_of(file: str, line: int) -> list[tuple[str, int]]:
    """`while` loops of the function that begins at a line, else its `for` loops: kind and line.

    With those of functions of the same file that it calls by name, in the order of the file. Empty
    where it has none, or its text cannot be had.
    """
    functions = [x for x in ast.walk(tree_of(file)) if isinstance(x, ast.FunctionDef)]
    todo = [f for f in functions if line in (f.lineno, *(d.lineno for d in f.decorator_list))]
    named = {f.name: f for f in functions}
    seen: list[ast.FunctionDef] = []
    found: list[tuple[str, int]] = []
    while todo:
        f = todo.pop()
        if f in seen:
            continue
        seen.append(f)
        for x in ast.walk(f):
            if isinstance(x, (ast.While, ast.For)):
                found.append(("while" if isinstance(x, ast.While) else "for", x.lineno))
            elif isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id in named:
                todo.append(named[x.func.id])
    whiles = [x for x in found if x[0] == "while"]
    return sorted(set(whiles or found), key=lambda x: x[1])
