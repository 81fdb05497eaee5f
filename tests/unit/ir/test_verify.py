"""The verifier: one program for each rule, which must be refused, and what the refusal says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.diagnostics import Span
from engine.ir import nodes as n
from engine.ir.builder import const
from engine.ir.verify import VerifyError, verify
from engine.lang.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    UINT8,
    ArrayType,
    MatrixType,
    VectorType,
)

V3 = VectorType(FLOAT64, 3)
TRUE = const(True, BOOL)
Make = Callable[[Any], n.Function]


def i(value: int) -> n.Const:
    return const(value, INT32)


def f(value: float) -> n.Const:
    return const(value, FLOAT64)


def let(name: str, value: n.Atom) -> n.Let:
    return n.Let(n.Var(name, value.type), "copy", (value,))


def loop(code: Any, *body: n.Stmt, name: str = "k") -> n.For:
    return n.For(n.Var(name, INT32), i(0), code.n, i(1), body)


X, M = n.Var("x", FLOAT64), n.Var("m", FLOAT64, mutable=True)
VA = n.Var("va", ArrayType(V3, 2))


def helper(*results: Any) -> n.Function:
    p = n.Var("p", FLOAT64)
    return n.Function("h", (p,), (FLOAT64,), (n.Return(results or (p,)),))


GOOD: dict[str, Make] = {
    "empty": lambda c: c.kernel(),
    "loop": lambda c: c.kernel(loop(c, n.Set(M, f(1.0)), n.If(TRUE, (n.Break(),)))),
    "after test": lambda c: c.kernel(
        n.While((n.Let(n.Var("t", BOOL), "lt", (c.n, i(3))), let("x", f(1.0))),
                n.Var("t", BOOL), (n.Set(M, X),)), n.Set(M, X)),
    "branches": lambda c: c.kernel(n.If(TRUE, (let("x", f(1.0)), n.Set(M, X)))),
    "call": lambda c: c.kernel(n.Call((X,), helper(), (f(1.0),))),
    "call without results": lambda c: c.kernel(n.Call((), helper(), (f(1.0),))),
    "component": lambda c: n.Function("k", (VA,), (), (
        n.Load(X, VA, (i(0), i(1)), (i(2),)), n.Store(VA, (i(0), i(1)), X, (i(2),)),
        n.Load(n.Var("v", V3), VA, (i(0), i(1))),
        n.Atomic(None, "add", VA, (i(0), i(0)), X, (i(0),)),
    ), True),
    "both return": lambda c: c.func(
        FLOAT64, n.If(TRUE, (n.Return((f(1.0),)),), (n.Return((f(2.0),)),))),
    "endless loop": lambda c: c.func(FLOAT64, n.While((), TRUE, (n.Return((f(1.0),)),))),
    "inner break": lambda c: c.func(FLOAT64, n.While((), TRUE, (loop(c, n.Break()),))),
    "set in test": lambda c: c.kernel(n.While((n.Set(M, f(0.0)),), TRUE, (n.Break(),))),
    "stack": lambda c: c.kernel(n.Push(0, f(1.0)), n.Pop(M, 0), n.Push(0, M), n.Pop(X, 0)),
    "constants": lambda c: c.kernel(
        let("x", const(1.0, V3)), let("y", const(-128, INT8)),
        let("z", n.Const(float("nan"), FLOAT32)), let("w", const(0.0, MatrixType(FLOAT32, 2, 3)))),
    "cast": lambda c: c.kernel(n.Let(n.Var("y", INT32), "cast", (f(1.0),))),
}  # fmt: skip


def problem(fn: n.Function) -> str | None:
    """What is wrong with a function; None if nothing is."""
    try:
        verify(fn)
    except VerifyError as e:
        return e.problem
    return None


@pytest.mark.parametrize("name", GOOD)
def test_accepts(name: str, code: Any) -> None:
    assert problem(GOOD[name](code)) is None


BAD: dict[str, tuple[str, Make]] = {
    "undefined": ("%x is not defined", lambda c: c.kernel(n.Set(M, X))),
    "twice": ("%x is defined twice", lambda c: c.kernel(let("x", f(1.0)), let("x", f(2.0)))),
    "twice in branches": ("%x is defined twice", lambda c: c.kernel(
        n.If(TRUE, (let("x", f(1.0)),), (let("x", f(2.0)),)))),
    "after branch": ("may not have run", lambda c: c.kernel(
        n.If(TRUE, (let("x", f(1.0)),)), n.Set(M, X))),
    "other branch": ("may not have run", lambda c: c.kernel(
        n.If(TRUE, (let("x", f(1.0)),), (n.Set(M, X),)))),
    "after loop": ("may not have run", lambda c: c.kernel(
        loop(c, let("x", f(1.0))), n.Set(M, X))),
    "loop variable after loop": ("may not have run", lambda c: c.kernel(
        loop(c), let("y", n.Var("k", INT32)))),
    "after while body": ("may not have run", lambda c: c.kernel(
        n.While((), TRUE, (let("x", f(1.0)), n.Break())), n.Set(M, X))),
    "before": ("%x is not defined", lambda c: c.kernel(n.Set(M, X), let("x", f(1.0)))),
    "two types": ("two variables", lambda c: c.kernel(
        let("x", f(1.0)), n.Set(n.Var("x", INT32, True), i(1)))),
    "mutable and not": ("two variables", lambda c: c.kernel(
        let("x", f(1.0)), n.Set(n.Var("x", FLOAT64, True), f(1.0)))),
    "parameter redefined": ("%n is defined twice", lambda c: c.kernel(let("n", i(1)))),
    "set temporary": ("is a temporary", lambda c: c.kernel(let("x", f(1.0)), n.Set(X, f(2.0)))),
    "let mutable": ("%m is mutable", lambda c: c.kernel(n.Let(M, "copy", (f(1.0),)))),
    "set type": ("the assigned value is int32", lambda c: c.kernel(n.Set(M, i(1)))),
    "no operation": ("no operation 'nope'", lambda c: c.kernel(n.Let(X, "nope", ()))),
    "no overload": ("add(float64, int32) does not exist", lambda c: c.kernel(
        n.Let(X, "add", (f(1.0), i(1))))),
    "result type": ("gives float64, %y is int32", lambda c: c.kernel(
        n.Let(n.Var("y", INT32), "add", (f(1.0), f(1.0))))),
    "cast shape": ("does not give", lambda c: c.kernel(n.Let(n.Var("y", V3), "cast", (f(1.0),)))),
    "construct count": ("does not give", lambda c: c.kernel(
        n.Let(n.Var("y", V3), "construct", (f(1.0), f(1.0))))),
    "fill scalar": ("does not give", lambda c: c.kernel(n.Let(X, "fill", (f(1.0),)))),
    "identity": ("does not give", lambda c: c.kernel(
        n.Let(n.Var("y", MatrixType(FLOAT64, 2, 3)), "identity", ()))),
    "tid": ("tid takes constants", lambda c: c.kernel(
        n.Let(n.Var("y", INT32), "tid", (c.n, i(1))))),
    "tid of none": ("tid gives 1 to 4 coordinates, not 0", lambda c: c.kernel(
        n.Let(n.Var("y", INT32), "tid", (i(0), i(0))))),
    "tid of many": ("tid gives 1 to 4 coordinates, not 5", lambda c: c.kernel(
        n.Let(n.Var("y", INT32), "tid", (i(0), i(5))))),
    "tid beyond": ("tid has no axis 2: there are 2", lambda c: c.kernel(
        n.Let(n.Var("y", INT32), "tid", (i(2), i(2))))),
    "tid before": ("tid has no axis -1", lambda c: c.kernel(
        n.Let(n.Var("y", INT32), "tid", (i(-1), i(2))))),
    "shape beyond": ("shape has no axis 1: there are 1", lambda c: c.kernel(
        n.Let(n.Var("y", INT32), "shape", (c.a, i(1))))),
    "index count": ("2 indices for 1 dimensions", lambda c: c.kernel(
        n.Load(X, c.a, (i(0), i(0))))),
    "float index": ("is not an integer", lambda c: c.kernel(n.Load(X, c.a, (f(0.0),)))),
    "not an array": ("is not an array", lambda c: c.kernel(n.Load(X, c.n, (i(0),)))),
    "path of scalar": ("1 component indices", lambda c: c.kernel(
        n.Load(X, c.a, (i(0),), (i(0),)))),
    "loaded type": ("the loaded value is int32", lambda c: c.kernel(
        n.Load(n.Var("y", INT32), c.a, (i(0),)))),
    "stored type": ("the stored value is int32", lambda c: c.kernel(
        n.Store(c.a, (i(0),), i(1)))),
    "component type": ("the loaded value is vec<3,float64>", lambda c: n.Function(
        "k", (VA,), (), (n.Load(n.Var("v", V3), VA, (i(0), i(0)), (i(0),)),), True)),
    "atomic bool": ("booleans", lambda c: n.Function(
        "k", (n.Var("p", ArrayType(BOOL, 1)),), (),
        (n.Atomic(None, "add", n.Var("p", ArrayType(BOOL, 1)), (i(0),), TRUE),), True)),
    "break": ("outside a loop", lambda c: c.kernel(n.Break())),
    "continue in if": ("outside a loop", lambda c: c.kernel(n.If(TRUE, (n.Continue(),)))),
    "condition": ("the condition is int32", lambda c: c.kernel(n.If(c.n, ()))),
    "while condition": ("the condition is int32", lambda c: c.kernel(n.While((), c.n, ()))),
    "store in test": ("the test of a loop writes memory", lambda c: c.kernel(
        n.While((n.Store(c.a, (i(0),), f(1.0)),), TRUE, ()))),
    "break in test": ("the test of a loop leaves", lambda c: c.kernel(
        loop(c, n.While((n.If(TRUE, (n.Break(),)),), TRUE, ())))),
    "return in test": ("the test of a loop leaves", lambda c: c.kernel(
        n.While((loop(c, n.Return()),), TRUE, ()))),
    "bound type": ("a bound of the loop is int64", lambda c: c.kernel(
        n.For(n.Var("k", INT32), i(0), const(3, INT64), i(1), ()))),
    "float loop": ("is not an integer", lambda c: c.kernel(
        n.For(X, f(0.0), f(1.0), f(1.0), ()))),
    "loop variable set": ("is a temporary", lambda c: c.kernel(
        loop(c, n.Set(n.Var("k", INT32), i(1))))),
    "kernel returns a value": ("0 results expected", lambda c: c.kernel(n.Return((f(1.0),)))),
    "return type": ("a returned value is int32", lambda c: c.func(FLOAT64, n.Return((i(1),)))),
    "return count": ("1 results expected", lambda c: c.func(FLOAT64, n.Return())),
    "no return": ("without a return", lambda c: c.func(
        FLOAT64, n.If(TRUE, (n.Return((f(1.0),)),)))),
    "loop that ends": ("without a return", lambda c: c.func(
        FLOAT64, n.While((), TRUE, (n.If(TRUE, (n.Break(),)),)))),
    "call count": ("h takes 1 arguments", lambda c: c.kernel(n.Call((X,), helper(), ()))),
    "call type": ("argument p of h is int32", lambda c: c.kernel(
        n.Call((X,), helper(), (i(1),)))),
    "call results": ("h has 1 results", lambda c: c.kernel(
        n.Call((X, n.Var("y", FLOAT64)), helper(), (f(1.0),)))),
    "call result type": ("a result of h is int32", lambda c: c.kernel(
        n.Call((n.Var("y", INT32),), helper(), (f(1.0),)))),
    "callee": ("a returned value is int32", lambda c: c.kernel(
        n.Call((), helper(i(1)), (f(1.0),)))),
    "call of a kernel": ("is a kernel", lambda c: c.kernel(
        n.Call((), n.Function("k2", (), (), (), True), ()))),
    "kernel with results": ("a kernel has results", lambda c: n.Function(
        "k", (), (FLOAT64,), (n.Return((f(1.0),)),), True)),
    "mutable parameter": ("%m is mutable", lambda c: n.Function("k", (M,), (), (), True)),
    "stack types": ("stack 0 is int32", lambda c: c.kernel(n.Push(0, f(1.0)), n.Push(0, i(1)))),
    "pop type": ("stack 0 is int32", lambda c: c.kernel(
        n.Push(0, f(1.0)), n.Pop(n.Var("y", INT32), 0))),
    "journal position": ("the journal position is int32", lambda c: c.kernel(
        n.JournalRead(X, i(0), 0))),
    "constant range": ("does not fit", lambda c: c.kernel(let("x", n.Const(256, UINT8)))),
    "constant kind": ("does not fit", lambda c: c.kernel(let("x", n.Const(1, FLOAT64)))),
    "constant bool": ("does not fit", lambda c: c.kernel(let("x", n.Const(True, INT32)))),
    "constant shape": ("does not fit", lambda c: c.kernel(let("x", n.Const((1.0, 2.0), V3)))),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_refuses(name: str, code: Any) -> None:
    words, make = BAD[name]
    assert words in (problem(make(code)) or "")


def test_adjoint_code_may_use_what_a_branch_defined(code: Any) -> None:
    fn = code.kernel(n.If(TRUE, (let("x", f(1.0)),)), n.If(TRUE, (n.Set(M, X),)))
    verify(replace(fn, mirrored=True))
    with pytest.raises(VerifyError):
        verify(fn)
    with pytest.raises(VerifyError, match="not defined"):
        verify(replace(code.kernel(n.Set(M, X), let("x", f(1.0))), mirrored=True))


def test_message_shows_the_place_and_the_neighbours(code: Any) -> None:
    span = Span("kernel.py", 12, 5, 12, 20)
    fn = code.kernel(let("t", f(1.0)), let("u", f(2.0)), n.Set(M, X, span), n.If(TRUE, ()))
    with pytest.raises(VerifyError) as e:
        verify(fn)
    assert e.value.span == span
    assert str(e.value).splitlines() == [
        "temporary %x is not defined",
        "  --> kernel.py:12:5",
        "  in kernel k",
        "    %t: float64 = copy(1.0:float64)",
        "    %u: float64 = copy(2.0:float64)",
        "  > %m: float64 := %x",
        "    if True:bool {",
    ]
