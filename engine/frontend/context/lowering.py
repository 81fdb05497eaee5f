"""The interface by which lowering code calls other lowering code.

Expressions hold expressions, statements hold both, and calls need whole functions. None of
these rooms imports the next: each reaches it through the `Lowering` of its `Context`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from engine.diagnostics import Span
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.operands.kinds import Kind
from engine.frontend.operands.operand import Operand, Value, View
from engine.frontend.parsing.signature import Signature
from engine.ir.nodes import Function

if TYPE_CHECKING:
    from engine.frontend.context.context import Context

ExpressionHandler: TypeAlias = "Callable[[Context, ast.expr], Operand]"
StatementHandler: TypeAlias = "Callable[[Context, ast.stmt], None]"


class Lowering(Protocol):
    """Lowers one kernel and what it calls.

    expressions, statements: what handles each kind of node. assertions: whether `assert`
    means anything.
    """

    @property
    def expressions(self) -> Mapping[type[ast.AST], ExpressionHandler]: ...

    @property
    def statements(self) -> Mapping[type[ast.AST], StatementHandler]: ...

    @property
    def assertions(self) -> bool: ...

    def signature(self, function: UserFunc) -> Signature:
        """The parameters of a function that the kernel calls."""

    def instance(
        self, function: UserFunc, kinds: Sequence[Kind], at: Span | None = None
    ) -> Function:
        """The IR of a function for kinds of arguments. `at` is the place of the call.

        Raises KernelError with every problem of the function, or E108 for recursion.
        """

    def user_operator(
        self, cx: Context, node: ast.expr, op: ast.AST, given: Sequence[tuple[ast.expr, Operand]]
    ) -> Operand | None:
        """What an operator means where the user has a function for it; None for all else."""

    def call_library(
        self, cx: Context, name: str, args: Sequence[Value | View], nodes: Sequence[ast.expr] = ()
    ) -> Operand | None:
        """The call of a builtin that is written in the kernel language; None for other types.

        nodes: the expressions of the arguments, which a call may change.
        """
