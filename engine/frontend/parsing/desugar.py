"""Rewrites a fenced syntax tree into fewer node kinds. Places in the file are kept.

* `x += e` on a variable becomes `x = x + e`;
* `a < b < c` becomes `a < b and b < c`, with b computed once;
* `-1` becomes one constant;
* `return None` becomes `return`;
* the `else` of a loop becomes an `if` after it, of a flag that the loop's `break` clears;
* docstrings, `pass` and statements that can never run are dropped.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from engine.frontend.parsing.fence import Rejected

_LEAVES = (ast.Return, ast.Break, ast.Continue)
_Node = TypeVar("_Node", bound=ast.AST)


def _at(new: _Node, like: ast.AST) -> _Node:
    return ast.copy_location(new, like)


class Otherwise(ast.If):
    """The `else` of a loop, which stands after it: it runs where the loop was not left."""

    loop: ast.For | ast.While


def is_idle(s: ast.stmt) -> bool:
    """True for `pass`, docstrings and `...`."""
    return isinstance(s, ast.Pass) or (
        isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Constant)
        and (isinstance(s.value.value, str) or s.value.value is Ellipsis)
    )


class Desugar(ast.NodeTransformer):
    """The rewriting; nodes that the fence rejected are left as they are."""

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        self.temps = 0

    def visit(self, node: ast.AST) -> ast.AST:
        if id(node) in self.rejected:
            return node
        out: ast.AST = super().visit(node)
        return out

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            if is_idle(s):
                continue
            if isinstance(s, (ast.For, ast.While)) and id(s) not in self.rejected:
                out += self.loop(s)
                continue
            done = self.visit(s)
            assert isinstance(done, ast.stmt)
            out.append(done)
            if isinstance(done, _LEAVES):
                break
        return out

    def visit_If(self, node: ast.If) -> ast.If:
        node.test = self.expr(node.test)
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)
        return node

    def loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        if isinstance(node, ast.For):
            node.iter = self.expr(node.iter)
        else:
            node.test = self.expr(node.test)
        node.body = self.block(node.body)
        otherwise, node.orelse = self.block(node.orelse), []
        if not otherwise:
            return [node]
        flag = f"${self.temps}"
        self.temps += 1

        def says(value: bool) -> ast.Assign:
            target = _at(ast.Name(flag, ast.Store()), node)
            return _at(ast.Assign([target], _at(ast.Constant(value), node)), node)

        _before_breaks(node.body, lambda: says(False))
        last = _at(Otherwise(_at(ast.Name(flag, ast.Load()), otherwise[0]), otherwise, []), node)
        last.loop = node
        return [says(True), node, last]

    def expr(self, node: ast.expr) -> ast.expr:
        out = self.visit(node)
        assert isinstance(out, ast.expr)
        return out

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            node.value = None  # Python's `return` gives None
        elif node.value is not None:
            node.value = self.expr(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        if node.value is not None:
            node.value = self.expr(node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        value = self.expr(node.value)
        if not isinstance(node.target, ast.Name):
            target = self.expr(node.target)
            assert isinstance(target, (ast.Attribute, ast.Subscript))
            node.target = target
            node.value = value
            return node
        read = _at(ast.Name(node.target.id, ast.Load()), node.target)
        sum_ = _at(ast.BinOp(read, node.op, value), node)
        return _at(ast.Assign([node.target], sum_), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.expr(node.operand)
        if isinstance(node.operand, ast.Constant) and type(node.operand.value) in (int, float):
            value = node.operand.value
            assert isinstance(value, (int, float))
            if isinstance(node.op, ast.USub):
                return _at(ast.Constant(-value), node)
            if isinstance(node.op, ast.UAdd):
                return _at(ast.Constant(value), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [self.expr(e) for e in (node.left, *node.comparators)]
        if len(node.ops) == 1:
            node.left, node.comparators = operands[0], [operands[1]]
            return node
        parts: list[ast.expr] = []
        left = operands[0]
        for op, right, last in zip(
            node.ops, operands[1:], range(len(node.ops) - 1, -1, -1), strict=True
        ):
            again = right
            if last and not isinstance(right, (ast.Name, ast.Constant)):
                name = f"${self.temps}"
                self.temps += 1
                again = _at(ast.Name(name, ast.Load()), right)
                right = _at(ast.NamedExpr(_at(ast.Name(name, ast.Store()), right), right), right)
            part = ast.Compare(left, [op], [right])
            part.lineno, part.col_offset = left.lineno, left.col_offset
            part.end_lineno, part.end_col_offset = right.end_lineno, right.end_col_offset
            parts.append(part)
            left = again
        return _at(ast.BoolOp(ast.And(), parts), node)


def _before_breaks(body: list[ast.stmt], make: Callable[[], ast.stmt]) -> None:
    """Puts a statement before each `break` that leaves the loop of this body."""
    if body and isinstance(body[-1], ast.Break):
        body.insert(len(body) - 1, make())
    for s in body:
        if isinstance(s, ast.If):
            _before_breaks(s.body, make)
            _before_breaks(s.orelse, make)


def desugar(tree: ast.FunctionDef, rejected: Rejected) -> None:
    """Rewrites the body of the function in place."""
    tree.body = Desugar(rejected).block(tree.body)
