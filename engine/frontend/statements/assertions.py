"""`assert cond, "text"`: a message that ends the launch, where assertions are compiled."""

from __future__ import annotations

import ast

from engine.frontend.calls.messages import message_unless, text_of
from engine.frontend.context.context import Context
from engine.frontend.expressions.conditions import condition
from engine.frontend.operands.operand import Bad


def lower_assert(cx: Context, node: ast.stmt) -> None:
    """`assert cond, "text"`: checked but not compiled, unless asked for."""
    assert isinstance(node, ast.Assert)
    with cx.nested() as inner:
        holds = condition(cx, node.test)
    if isinstance(holds, Bad) or not cx.lowering.assertions:
        return
    cx.b.stmts += inner.stmts
    words = text_of(node.msg) if node.msg is not None else None
    shown = words if words is not None else cx.source.text(node.test)
    message_unless(cx, holds.atom, "assert", [f"Assertion failed: {shown}\n"])
    cx.b.assume(holds.atom, True)
