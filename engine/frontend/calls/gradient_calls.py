"""Calls of `grad(f)` in kernels. The derivative itself is written by `engine.ad.derivative`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from weakref import ReferenceType, WeakKeyDictionary
from weakref import ref as weak_ref

from engine.frontend.calls.user_calls import Arguments, instance_for, tables_of
from engine.frontend.context.context import Context
from engine.frontend.context.lowered import lowered
from engine.frontend.functions.gradient import Gradient
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.operands.kinds import (
    ChoiceKind,
    Kind,
    StructKind,
    TupleKind,
    ViewKind,
    compose,
    decompose,
    slots,
    user_type,
)
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Known,
    Operand,
    Several,
    Struct,
    Value,
    adapt,
    zero,
)
from engine.ir.nodes import (
    Atom,
    Atomic,
    Call,
    Function,
    Return,
    Store,
    Var,
    callees,
    walk,
)
from engine.lang.types import ArrayType, ScalarType, is_float, scalar_of

# The derivative of each function, which all calls share as long as one of them is there.
_derivatives: WeakKeyDictionary[Function, ReferenceType[Function]] = WeakKeyDictionary()


def lower_grad(cx: Context, node: ast.Call) -> Operand:
    """`grad(f)`: a function, known while compiling."""
    if len(node.args) != 1 or node.keywords:
        return cx.error(
            "E109", node, "`grad` takes one function", f"write `{cx.api}.grad(f)(arguments)`"
        )
    got = cx.expr(node.args[0])
    if got is BAD:
        return BAD
    if not isinstance(got, Known) or not callable(got.obj) or isinstance(got.obj, type):
        return cx.error(
            "E106",
            node.args[0],
            f"`{cx.source.text(node.args[0])}` is not a function",
            f"pass a function made by `@{cx.api}.func`, or a builtin",
        )
    return Known(Gradient(got.obj))


def call_gradient(cx: Context, node: ast.Call, gradient: Gradient) -> Operand:
    """The derivatives by each argument that is no array."""
    target = gradient.target
    if isinstance(target, UserFunc):
        found = instance_for(cx, node, target)
    else:
        found = _wrapped(cx, node, target)
    if found is None:
        return BAD
    fn, given = found
    what = getattr(target, "__name__", getattr(target, "__builtin_name__", "the function"))
    problem = _wrong_call(fn, given)
    if problem is not None:
        return cx.error("E110", node, f"`{what}` {problem[0]}", problem[1])
    made = _derivative(fn, what)
    dsts = tuple(cx.b.temp(t) for t in made.results)
    atoms = (*given.atoms, *tables_of(cx, fn))
    cx.b.add(Call(dsts, made, atoms, cx.b.span))
    left = iter(dsts)
    out = [_result(k, left) for k in given.kinds if not _apart(k)]
    return out[0] if len(out) == 1 else Several(tuple(out))


def _derivative(fn: Function, name: str) -> Function:
    known = _derivatives.get(fn)
    found = None if known is None else known()
    if found is None:
        results = tuple(
            p.type for p in fn.params if not isinstance(p.type, ArrayType) and is_float(p.type)
        )
        found = Function(
            f"grad_{name}" if name.isidentifier() else "grad",
            fn.params,
            results,
            (),
            span=fn.span,
            derivative_of=fn,
        )
        _derivatives[fn] = weak_ref(found)
    return found


def _apart(kind: Kind) -> bool:
    """True for what has no derivative by itself: arrays, views, functions."""
    if isinstance(kind, (StructKind, TupleKind)):
        return False
    return isinstance(kind, (ViewKind, ChoiceKind, Known)) or all(s.static for s in slots(kind))


def _result(kind: Kind, left: Iterator[Var]) -> Operand:
    """The derivative by an argument of a kind. Arrays in structs are not there."""
    if isinstance(kind, StructKind):
        return Struct(kind.type, tuple(_result(k, left) for k in kind.items))
    if isinstance(kind, TupleKind):
        return Several(tuple(_result(k, left) for k in kind.items))
    if _apart(kind):
        return Absent(user_type(kind))
    (slot,) = slots(kind)
    assert not isinstance(slot.type, ArrayType)
    return Value(next(left) if is_float(slot.type) else zero(slot.type))


def _wrong_call(fn: Function, given: Arguments) -> tuple[str, str] | None:
    """Why a function has no derivative as a function, and what to do about it."""
    if given.references:
        return "changes its arguments, so `grad` cannot call it", "return the values instead"
    if given.lent:
        return (
            "is called with a local array, by which there is no derivative here",
            "pass the numbers as a vector",
        )
    for f, twice in _reached(fn, False):
        replay = f.replay
        if _writes(f) or (replay is not None and any(map(_writes, (*callees(replay), replay)))):
            return "writes memory, so `grad` cannot call it", "return the values instead"
        adjoint = f.grad if twice and f.grad is not None and f.grad.native is not None else f
        if adjoint.native is not None and adjoint.grad is None and any(map(is_float, f.results)):
            what = "adjoint that can itself be differentiated" if twice else "adjoint"
            return (
                f"depends on the native function `{f.name}`, which has no {what}",
                f"write `{f.name}` in the kernel language, or give it a `@func_grad`"
                if twice
                else "give `@func_native` an `adj_snippet`, or the function a `@func_grad`",
            )
    if not any(is_float(t) for t in fn.results):
        return "has no result with a derivative", "return a float"
    if not any(is_float(p.type) and not isinstance(p.type, ArrayType) for p in fn.params):
        return "has no argument with a derivative", "pass a float, vector or matrix"
    return None


def _reached(fn: Function, twice: bool) -> Iterator[tuple[Function, bool]]:
    """The function and those that it calls; True with those whose derivative it calls."""
    for f in (*callees(fn), fn):
        yield f, twice
        if f.derivative_of is not None:
            yield from _reached(f.derivative_of, True)


def _writes(f: Function) -> bool:
    if f.native is not None:
        return bool(f.native.writes | f.native.updates)
    return any(isinstance(s, (Store, Atomic)) for s in walk(f.body))


# ---- builtins and derivatives as functions of the IR


def _wrapped(cx: Context, node: ast.Call, target: object) -> tuple[Function, Arguments] | None:
    """A function that does nothing but call something else that kernels know."""
    args = _literals_fitted(cx, [cx.expr(a) for a in node.args])
    if node.keywords:
        cx.error(
            "E109", node.keywords[0].value, "a derivative takes its arguments by position here"
        )
        return None
    given = Arguments()
    for a in args:
        if a is BAD or decompose(a) is None:
            if a is not BAD:
                cx.error("E109", node, "an argument is several values", "pass them one by one")
            return None
        given.add(cx, a)
    outer, told = cx.b, len(cx.report.diagnostics)
    params: list[Var] = []
    inner: list[ast.expr] = []
    for kind, like in zip(given.kinds, node.args, strict=True):
        own = [outer.temp(s.type, "x") for s in slots(kind)]
        params += own
        inner.append(lowered(compose(kind, own), like))
    call = ast.copy_location(ast.Call(lowered(Known(target), node.func), inner, []), node)
    with cx.nested() as b:
        got = cx.expr(call)
    parts = [decompose(p) for p in (got.items if isinstance(got, Several) else (got,))]
    if len(cx.report.diagnostics) > told or any(p is None for p in parts):
        return None
    results: list[Atom] = [a for p in parts if p is not None for a in p[1]]
    types = [a.type for a in results if not isinstance(a.type, ArrayType)]
    body = (*b.block(), Return(tuple(results), outer.span))
    return Function("wrapped", tuple(params), tuple(types), body, span=outer.span), given


def _literals_fitted(cx: Context, args: Sequence[Operand]) -> list[Operand]:
    """Numbers in the type of the floats beside them, as a call of the builtin takes them."""
    floats = [
        scalar_of(a.type)
        for a in args
        if isinstance(a, Value) and not a.weak and not isinstance(a.type, ArrayType)
        if is_float(a.type)
    ]
    out: list[Operand] = []
    for a in args:
        if isinstance(a, Value) and a.weak and floats and isinstance(a.type, ScalarType):
            a = adapt(cx.b, a, floats[0]) or a if a.type.kind == "f" else a
        out.append(a)
    return out
