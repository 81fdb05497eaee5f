"""The handler of each kind of syntax tree node, in two flat tables."""

from __future__ import annotations

import ast

from engine.frontend.assignment.targets import lower_walrus
from engine.frontend.calls.dispatch import lower_call
from engine.frontend.calls.references import PlacedExpression
from engine.frontend.context.lowered import LoweredExpression, lower_lowered
from engine.frontend.context.lowering import ExpressionHandler, StatementHandler
from engine.frontend.expressions.arithmetic import lower_binary, lower_tuple, lower_unary
from engine.frontend.expressions.comparisons import lower_compare
from engine.frontend.expressions.logic import lower_bool, lower_choice
from engine.frontend.expressions.names import lower_constant, lower_name
from engine.frontend.expressions.subscripts import lower_lvalue, lower_slice
from engine.frontend.parsing.desugar import Otherwise
from engine.frontend.statements.assertions import lower_assert
from engine.frontend.statements.assignments import lower_annotated, lower_assign, lower_augmented
from engine.frontend.statements.control_flow import (
    lower_break,
    lower_continue,
    lower_expression,
    lower_for,
    lower_if,
    lower_while,
)
from engine.frontend.statements.returns import lower_return

EXPRESSIONS: dict[type[ast.AST], ExpressionHandler] = {
    ast.Constant: lower_constant,
    ast.Name: lower_name,
    ast.Attribute: lower_lvalue,
    ast.Subscript: lower_lvalue,
    ast.Slice: lower_slice,
    ast.Tuple: lower_tuple,
    ast.UnaryOp: lower_unary,
    ast.BinOp: lower_binary,
    ast.Compare: lower_compare,
    ast.BoolOp: lower_bool,
    ast.IfExp: lower_choice,
    ast.NamedExpr: lower_walrus,
    ast.Call: lower_call,
    LoweredExpression: lower_lowered,
    PlacedExpression: lower_lowered,
}
STATEMENTS: dict[type[ast.AST], StatementHandler] = {
    ast.Assign: lower_assign,
    ast.AnnAssign: lower_annotated,
    ast.AugAssign: lower_augmented,
    ast.Expr: lower_expression,
    ast.If: lower_if,
    Otherwise: lower_if,
    ast.For: lower_for,
    ast.While: lower_while,
    ast.Break: lower_break,
    ast.Continue: lower_continue,
    ast.Return: lower_return,
    ast.Assert: lower_assert,
}
