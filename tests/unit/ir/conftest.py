"""A small way to write IR by hand."""

from __future__ import annotations

from typing import Any

import pytest

import engine.builtins  # noqa: F401
from engine.diagnostics import Span
from engine.ir.builder import Builder, Names, const
from engine.ir.nodes import Function, Stmt, Var
from engine.lang.types import FLOAT64, INT32, ArrayType, ValueType

ARRAY = ArrayType(FLOAT64, 1)
SPAN = Span("kernel.py", 7, 5, 7, 20)


class Code:
    """A kernel under construction: parameters a, b (float64 arrays) and n (int32)."""

    def __init__(self) -> None:
        self.a = Var("a", ARRAY)
        self.b = Var("b", ARRAY)
        self.n = Var("n", INT32)
        self.builder = Builder(Names(["a", "b", "n"]), SPAN)

    def kernel(self, *stmts: Stmt) -> Function:
        body = (*self.builder.stmts, *stmts)
        return Function("k", (self.a, self.b, self.n), (), body, is_kernel=True)

    def func(self, result: ValueType, *stmts: Stmt) -> Function:
        body = (*self.builder.stmts, *stmts)
        return Function("f", (self.a, self.b, self.n), (result,), body)

    @staticmethod
    def i(value: int) -> Any:
        return const(value, INT32)

    @staticmethod
    def f(value: float) -> Any:
        return const(value, FLOAT64)


@pytest.fixture
def code() -> Code:
    return Code()
