"""Fix: replaces a read, a change and a store by one atomic update."""

from __future__ import annotations

import ast
from collections.abc import Collection

from adtool.atomics import atomic_updates, engine_in
from adtool.fixes.source import Source, source_of
from adtool.report import Edit, Fix


def atomic(file: str, lines: Collection[int]) -> Fix | None:
    """Writes the atomic updates that lines mean: each a statement in one line of its own.

    None where one of them is more than that: a variable that holds the element, a condition; and
    where the file does not import the engine as a whole.
    """
    source = source_of(file)
    if source is None or not engine_in(source.tree):
        return None
    edits = []
    for line in sorted(set(lines)):
        statement = _statement(source, line)
        texts = atomic_updates(file, [line])
        if statement is None or len(texts) != 1:
            return None
        if ast.unparse(statement.targets[0]) not in _read(statement):
            return None
        edits.append(Edit(file, *source.start(statement), *source.end(statement), texts[0]))
    if not edits:
        return None
    what = "an atomic update" if len(edits) == 1 else "atomic updates"
    return Fix(f"update the element by {what}", True, tuple(edits))


def _statement(source: Source, line: int) -> ast.Assign | None:
    found = [
        n
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Assign) and n.lineno == line == n.end_lineno and len(n.targets) == 1
    ]
    alone = len(found) == 1 and source.alone(found[0])
    return found[0] if alone else None


def _read(statement: ast.Assign) -> list[str]:
    """What the value is made of, at its top."""
    value = statement.value
    parts: list[ast.expr] = []
    if isinstance(value, ast.BinOp):
        parts = [value.left, value.right]
    elif isinstance(value, ast.Call):
        parts = value.args
    return [ast.unparse(p) for p in parts]
