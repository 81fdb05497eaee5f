"""Lowered expressions in places that expect syntax trees."""

from __future__ import annotations

import ast

from engine.frontend.context.context import Context
from engine.frontend.operands.operand import Operand


class LoweredExpression(ast.expr):
    """An expression that is lowered already."""

    operand: Operand


def lowered(operand: Operand, like: ast.expr) -> LoweredExpression:
    """A node for an operand, at the place of another node."""
    node = ast.copy_location(LoweredExpression(), like)
    node.operand = operand
    return node


def lower_lowered(cx: Context, node: ast.expr) -> Operand:
    """An expression that is lowered already."""
    assert isinstance(node, LoweredExpression)
    return node.operand
