"""Float literals that a function returns, which stay literals for its callers."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.assignment.names import of_literals
from engine.frontend.context.context import Context
from engine.frontend.operands.folding import literal_atoms, literal_kind
from engine.frontend.operands.kinds import Kind, LiteralKind
from engine.frontend.operands.operand import Operand, Value, is_exact
from engine.ir.nodes import Atom
from engine.lang.types import FLOAT32


def returned_literal(cx: Context, column: Sequence[Operand]) -> LiteralKind | None:
    """The kind of a result that is one of these, in a function that leaves its type open.

    None where they are not literals of floats alone.
    """
    values = [v for v in column if isinstance(v, Value)]
    if not cx.exact_results or len(values) != len(column):
        return None
    return literal_kind(values)


def returned_atoms(cx: Context, v: Operand, kind: Kind) -> tuple[Atom, ...] | None:
    """The atoms of a literal as one of a kind of literals; None for any other kind."""
    if isinstance(v, Value) and isinstance(kind, LiteralKind):
        return literal_atoms(cx.b, v, kind)
    return None


def is_rounded(cx: Context, node: ast.Return, v: Operand) -> bool:
    """Whether a result comes from literals of floats, and is float32 for callers."""
    if not isinstance(v, Value) or v.type != FLOAT32 or (v.weak and cx.exact_results):
        return False
    if v.weak:
        return not is_exact(v)
    started = any(isinstance(n, ast.Name) and n.id in cx.open for n in ast.walk(node))
    return started and of_literals(cx, node)
