"""A fault of this package is told at the user's line, and never as a traceback."""

from __future__ import annotations

import ast

import pytest

import engine as wp
from engine.frontend import lower_kernel
from engine.frontend.context import STMT, Context


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    a[0] = 1.0
    if a[0] > 0.0:
        a[1] = unknown_name  # noqa: F821


def test_a_fault_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(cx: Context, node: ast.stmt) -> None:
        raise ZeroDivisionError("inside")

    lower = STMT[ast.Assign]
    monkeypatch.setitem(STMT, ast.If, fails)
    with pytest.raises(wp.KernelError) as caught:
        lower_kernel(kernel.func)
    (d,) = caught.value.diagnostics
    assert d.code == "E101" and "ZeroDivisionError: inside" in d.message
    assert d.span is not None and d.span.line == kernel.func.__code__.co_firstlineno + 3
    assert caught.value.__cause__ is None and STMT[ast.Assign] is lower


def test_all_problems_come_in_the_order_of_the_text() -> None:
    @wp.kernel
    def k(a: wp.array(dtype=float), b):
        x = [1.0]
        a[0] = nope  # noqa: F821
        for i in a:
            a[i] = wp.tile_load(a)
        y = x + unknown()  # noqa: F821
        a[1] = y

    with pytest.raises(wp.KernelError) as caught:
        lower_kernel(k.func)
    found = [(d.code, d.span.line) for d in caught.value.diagnostics if d.span is not None]
    first = k.func.__code__.co_firstlineno
    lines = [(c, line - first) for c, line in found]
    assert lines == [("E103", 1), ("E101", 2), ("E102", 3), ("E101", 4), ("E112", 5), ("E102", 6)]
