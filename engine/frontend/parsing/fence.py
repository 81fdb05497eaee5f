"""Walks a function's syntax tree first, and reports all unsupported syntax at once.

Whatever is not on the list of allowed nodes is rejected, so that syntax of a later
Python is refused by name and never misread.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.frontend.parsing import fence_table as table
from engine.frontend.parsing.report import Report

Rejected = frozenset[int]


def is_text(node: ast.expr) -> bool:
    """True for a string, also one with values in it."""
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, ast.JoinedStr)


class Fence:
    """One walk. `rejected` holds the ids of the nodes that later stages must pass over."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.rejected: set[int] = set()

    def reject(self, node: ast.AST, what: str, help_text: str, code: str = "E101") -> None:
        verb = "is" if what.startswith(("`", "a ", "an ")) else "are"
        self.report.add(code, node, f"{what} {verb} not supported in kernels", help_text)
        self.rejected.add(id(node))

    def block(self, body: list[ast.stmt]) -> None:
        for s in body:
            self.visit(s)

    def visit(self, node: ast.AST) -> None:
        check = getattr(self, f"check_{type(node).__name__}", None)
        if not isinstance(node, table.ALLOWED):
            name = type(node).__name__
            what, help_text = table.REJECTED.get(
                name, (f"this syntax (`{name}`)", "write it with plain assignments, `if` and `for`")
            )
            self.reject(node, what, help_text)
            if isinstance(node, ast.stmt) and not hasattr(node, "name"):
                # Not lowered, but looked at: nothing waits for a second run.
                self.block([s for s in ast.iter_child_nodes(node) if isinstance(s, ast.stmt)])
        elif check is not None:
            check(node)
        else:
            self.children(node)

    def children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def check_Constant(self, node: ast.Constant) -> None:
        kind = type(node.value).__name__
        if kind in table.CONSTANTS:
            what, help_text = table.CONSTANTS[kind]
            self.reject(node, what, help_text)

    def check_Expr(self, node: ast.Expr) -> None:
        # A string statement is a comment; `...` stands for an empty body.
        value = node.value
        if isinstance(value, ast.Constant) and (
            isinstance(value.value, str) or value.value is Ellipsis
        ):
            return
        self.visit(value)

    def check_Return(self, node: ast.Return) -> None:
        # `return None` is `return`.
        if not isinstance(node.value, ast.Constant) or node.value.value is not None:
            self.children(node)

    def check_AnnAssign(self, node: ast.AnnAssign) -> None:
        # The annotation is a Python expression of its own: it may be a string.
        if not isinstance(node.target, ast.Name):
            self.reject(node, "an annotation here", "annotate plain variables only")
            return
        if node.value is not None:
            self.visit(node.value)

    def check_Compare(self, node: ast.Compare) -> None:
        for op in node.ops:
            name = type(op).__name__
            if name in table.COMPARISONS:
                what, help_text = table.COMPARISONS[name]
                self.reject(node, what, help_text)
                return
        self.children(node)

    def check_For(self, node: ast.For) -> None:
        for name in _places(node.target):
            if not isinstance(name, ast.Name):
                what = "a loop that assigns to anything but names"
                self.reject(name, what, "loop over a name, and assign it inside")
        self.visit(node.iter)
        self.block(node.body)
        self.block(node.orelse)

    def check_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self.block(node.body)
        self.block(node.orelse)

    def check_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        for arg in node.args:
            if name in ("print", "printf") and is_text(arg):
                self.text(arg)
            else:
                self.item(arg)
        for word in node.keywords:
            if word.arg is None:
                self.reject(word.value, "`**` unpacking", "write the arguments one by one")
            elif name != "print" or not is_text(word.value):
                self.visit(word.value)

    def item(self, node: ast.expr) -> None:
        """An argument or an item of a tuple, where `*` may stand."""
        self.visit(node.value if isinstance(node, ast.Starred) else node)

    def check_Tuple(self, node: ast.Tuple) -> None:
        for item in node.elts:
            self.item(item)

    def check_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        index = node.slice
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(part, ast.Slice):
                self.children(part)
            else:
                self.visit(part)

    def text(self, node: ast.expr) -> None:
        """A string to print: values inside are looked at.

        They stand where the string stands: Python before 3.12 does not know their places.
        """
        for part in ast.walk(node):
            if part is not node and hasattr(part, "lineno"):
                ast.copy_location(part, node)
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def check_Assert(self, node: ast.Assert) -> None:
        self.visit(node.test)
        if node.msg is not None and not (
            isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)
        ):
            self.reject(node.msg, "a message of `assert` that is not a string", "write a string")

    def check_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.target(target)
        self.visit(node.value)

    def target(self, node: ast.expr) -> None:
        if isinstance(node, (ast.Tuple, ast.List)):
            # `[a, b] = ...` means the same as a tuple on the left.
            for item in node.elts:
                self.target(item.value if isinstance(item, ast.Starred) else item)
        else:
            self.visit(node)

    def check_arguments(self, args: ast.arguments) -> None:
        for arg, stars in ((args.vararg, "*"), (args.kwarg, "**")):
            if arg is not None:
                self.reject(
                    arg, f"`{stars}{arg.arg}`", "name every parameter and annotate it", "E103"
                )


def _places(target: ast.expr) -> Iterator[ast.expr]:
    """What a target gives values to, one by one."""
    if isinstance(target, ast.Starred):
        target = target.value
    if isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _places(item)
    else:
        yield target


def fence(tree: ast.FunctionDef, report: Report) -> Rejected:
    """Reports every construct of the function that is not of the language.

    Returns the ids of rejected nodes (of the tree, which must be kept alive).
    """
    walk = Fence(report)
    walk.check_arguments(tree.args)
    walk.block(tree.body)
    return frozenset(walk.rejected)
