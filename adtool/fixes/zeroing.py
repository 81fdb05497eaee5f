"""Fix: adds `tape.zero()` where the gradients of two evaluations would be summed.

It has to come after everything that uses the gradients and before the next backward pass. Where
the text does not show such a place, there is no fix: at a wrong one it would clear what several
passes were meant to add up.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from adtool.fixes.gradient_uses import SCOPES, moves_parameters, seeds, used_elsewhere
from adtool.fixes.source import Source, source_of
from adtool.report import Fix

if TYPE_CHECKING:
    from engine.diagnostics import Span

_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def zeroed(kind: str, site: Span | None, earlier: Span | None) -> Fix | None:
    """Clears the gradients between two backward passes, which may be one call in a loop.

    kind: of `engine.autograd.Stale`.
    """
    source = None if site is None else source_of(site.file)
    if source is None or site is None or earlier is None or earlier.file != site.file:
        return None
    found = source.at(site, ast.Call)
    before = found if earlier == site else source.at(earlier, ast.Call)
    if found is None or before is None:
        return None
    if found is before:
        return _in_loop(source, found) if kind == "values" else None
    return _between(source, before, found, kind)


def _pass(source: Source, call: ast.Call) -> tuple[ast.Expr, str] | None:
    """The statement and the tape's name of `tape.backward(...)`."""
    f, statement = call.func, source.parents[call]
    if not isinstance(f, ast.Attribute) or f.attr != "backward":
        return None
    if not isinstance(f.value, ast.Name) or not isinstance(statement, ast.Expr):
        return None
    return (statement, f.value.id) if source.alone(statement) else None


def _in_loop(source: Source, call: ast.Call) -> Fix | None:
    """At the end of the loop in whose body the pass, and what uses its gradients, stand."""
    known = _pass(source, call)
    loop = None if known is None else source.parents[known[0]]
    if known is None or not isinstance(loop, _LOOPS) or known[0] not in loop.body:
        return None
    statement, tape = known
    after = loop.body[loop.body.index(statement) + 1 :]
    if not moves_parameters(source, after):
        return None
    if any(isinstance(n, (ast.Continue, ast.Return, ast.Yield, ast.YieldFrom))
           or _binds(n, tape) for s in after for n in ast.walk(s)):  # fmt: skip
        return None
    if used_elsewhere(source, loop, after):
        return None
    last = loop.body[-1]
    if isinstance(last, (ast.Break, ast.Raise)) or not source.alone(loop.body[0]):
        return None
    line = last.end_lineno or last.lineno
    if not _ends_line(source, last):
        return None
    text = f"{source.indentation(loop.body[0])}{tape}.zero()"
    return Fix(_said(tape, "at the end of the loop"), False, (source.line_after(line, text),))


def _between(source: Source, before: ast.Call, call: ast.Call, kind: str) -> Fix | None:
    """Directly before the second of two passes of one block."""
    one, two = _pass(source, before), _pass(source, call)
    if one is None or two is None or not (call.args or call.keywords):
        return None  # what it starts from may stand in a gradient already
    block = source.block(two[0])
    if one[0] not in block or block.index(one[0]) >= block.index(two[0]):
        return None
    among = block[block.index(one[0]) + 1 : block.index(two[0])]
    if any(isinstance(n, ast.Attribute) and n.attr == "backward" for s in among
           for n in ast.walk(s)):  # fmt: skip
        return None
    if kind == "values" and not moves_parameters(source, among):
        return None
    if seeds(among) or any(k.arg == "retain_graph" for k in call.keywords):
        return None
    if _other_passes(source, one[0], two[0]):
        return None  # their share would be cleared, too
    # Of the second tape: what the first alone has is not added to.
    text = f"{source.indentation(two[0])}{two[1]}.zero()"
    edit = source.line_before(two[0].lineno, text)
    return Fix(_said(two[1], "before it runs again"), False, (edit,))


def _other_passes(source: Source, one: ast.stmt, two: ast.stmt) -> bool:
    """Whether the same function, or the module, has passes besides these two statements."""
    scope = next((n for n in source.above(one) if isinstance(n, SCOPES)), source.tree)
    mine = {id(n) for s in (one, two) for n in ast.walk(s)}
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" and id(n) not in mine
               for n in ast.walk(scope))  # fmt: skip


def _said(tape: str, where: str) -> str:
    return f"clear the gradients by `{tape}.zero()` {where}"


def _ends_line(source: Source, statement: ast.stmt) -> bool:
    line, column = source.end(statement)
    rest = source.lines[line - 1][column - 1 :].strip()
    return (not rest or rest.startswith("#")) and not rest.endswith("\\")


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
