"""Fix: moves a launch beside a tape's `with` block into it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from adtool.fixes.source import Source, source_of
from adtool.report import Edit, Fix

if TYPE_CHECKING:
    from engine.diagnostics import Span

_MESSAGE = "put the launch into the block of the tape"


def into_block(site: Span | None) -> Fix | None:
    """Indents a launch into the block that it stands directly before, or after.

    None where something else stands between the two, or where it is not one statement.
    """
    source = None if site is None else source_of(site.file)
    call = None if source is None or site is None else source.at(site, ast.Call)
    if source is None or call is None or source.called(call) != "launch":
        return None
    statement = source.parents[call]
    if not isinstance(statement, ast.Expr) or not source.alone(statement):
        return None
    block = source.block(statement)
    if not block:
        return None
    number = block.index(statement)
    after = block[number + 1] if number + 1 < len(block) else None
    if isinstance(after, ast.With) and _is_tape(source, after):
        return _to_begin(source, statement, after)
    before = block[number - 1] if number else None
    if isinstance(before, ast.With) and _is_tape(source, before):
        return _to_end(source, statement, before)
    return None


def _is_tape(source: Source, block: ast.With) -> bool:
    """Whether a `with` statement is about a tape alone, with its statements in lines below."""
    if len(block.items) != 1 or not source.alone(block.body[0]):
        return False
    it = block.items[0].context_expr
    if source.called(it) == "Tape":
        return True
    if not isinstance(it, ast.Name):
        return False
    made = [
        n.value
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Assign) and any(ast.unparse(t) == it.id for t in n.targets)
    ]
    return bool(made) and all(source.called(m) == "Tape" for m in made)


def _to_end(source: Source, launch: ast.stmt, block: ast.With) -> Fix | None:
    first, last = launch.lineno, launch.end_lineno or launch.lineno
    moved = _indented(source, launch, block)
    if moved is None or not _blank(source, (block.end_lineno or 0) + 1, first - 1):
        return None
    return Fix(_MESSAGE, False, (_replaced(source, first, last, moved),))


def _to_begin(source: Source, launch: ast.stmt, block: ast.With) -> Fix | None:
    first, last = launch.lineno, launch.end_lineno or launch.lineno
    moved = _indented(source, launch, block)
    if moved is None or not _blank(source, last + 1, block.lineno - 1):
        return None
    begin, end = source.start(block), source.start(block.body[0])
    colons = [t for t in source.tokens(begin, end) if t.string == ":"]
    if not colons:
        return None
    head = list(source.lines[block.lineno - 1 : colons[-1].start[0]])
    return Fix(_MESSAGE, False, (_replaced(source, first, colons[-1].start[0], [*head, *moved]),))


def _blank(source: Source, first: int, last: int) -> bool:
    return not any(line.strip() for line in source.lines[first - 1 : last])


def _indented(source: Source, launch: ast.stmt, block: ast.With) -> list[str] | None:
    """The lines of the launch, as of the block; None where blanks of it are part of a text."""
    outer, inner = source.indentation(block), source.indentation(block.body[0])
    if source.indentation(launch) != outer or not inner.startswith(outer):
        return None
    more = inner[len(outer) :]
    tokens = source.tokens(source.start(launch), source.end(launch))
    if any(t.start[0] != t.end[0] for t in tokens):
        return None
    lines = source.lines[launch.lineno - 1 : launch.end_lineno]
    return [outer + more + x[len(outer) :] if x.startswith(outer) and x.strip() else x
            for x in lines]  # fmt: skip


def _replaced(source: Source, first: int, last: int, lines: list[str]) -> Edit:
    end = len(source.lines[last - 1]) + 1
    return Edit(source.file, first, 1, last, end, "\n".join(lines))
