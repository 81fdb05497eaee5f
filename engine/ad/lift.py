"""The lift pass: the same function with every float made float64.

Constants keep the value that they have in their own precision, so that the lifted function
is the same function and differs from the original by rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from engine.ad.silence import silent
from engine.ir import nodes as n
from engine.ir.rewrite import Rewriter, map_stmt, rewrite
from engine.lang.types import (
    FLOAT64,
    ArrayType,
    ScalarType,
    Type,
    ValueType,
    is_float,
    scalar_of,
    with_scalar,
)


def lift_type(t: Type) -> Type:
    """The type with its floats replaced by float64."""
    if isinstance(t, ArrayType):
        return ArrayType(_value(t.element), t.ndim)
    return _value(t)


def _value(t: ValueType) -> ValueType:
    return with_scalar(t, FLOAT64) if is_float(t) else t


def _round(value: object, t: ScalarType) -> object:
    if isinstance(value, tuple):
        return tuple(_round(v, t) for v in value)
    with np.errstate(over="ignore"):
        return float(t.numpy.type(value))


class _Lift(Rewriter):
    def atom(self, a: n.Atom) -> n.Atom:
        if isinstance(a, n.Var):
            return n.Var(a.name, lift_type(a.type), a.mutable)
        value = _round(a.value, scalar_of(a.type)) if is_float(a.type) else a.value
        return n.Const(value, _value(a.type))  # type: ignore[arg-type]

    def var(self, v: n.Var) -> n.Var:
        return n.Var(v.name, lift_type(v.type), v.mutable)

    def body(self, fn: n.Function) -> n.Block:
        def step(s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
            if isinstance(s, n.Let) and s.op == "reinterpret":
                return self.bits(s)
            if isinstance(s, n.Call):
                s = self.call(s)
            return map_stmt(s, self.atom, lambda b: b)

        return rewrite(fn.body, step)

    def bits(self, s: n.Let) -> list[n.Stmt]:
        """The bytes of a float32 are those of the number rounded to float32."""
        arg = self.atom(s.args[0])
        out: list[n.Stmt] = []
        if arg.type != s.args[0].type:
            narrow = n.Var(f"{s.dst.name}__from", s.args[0].type)
            out.append(n.Let(narrow, "cast", (arg,), s.span))
            arg = narrow
        dst = self.var(s.dst)
        raw = dst if dst.type == s.dst.type else n.Var(f"{s.dst.name}__raw", s.dst.type)
        out.append(n.Let(raw, "reinterpret", (arg,), s.span))
        if raw != dst:
            out.append(n.Let(dst, "cast", (raw,), s.span))
        return out

    def change(self, fn: n.Function) -> n.Function:
        return replace(
            fn,
            name=f"{fn.name}_lifted",
            params=tuple(self.var(p) for p in fn.params),
            results=tuple(_value(t) for t in fn.results),
            body=self.body(fn),
            grad=None if fn.grad is None else self.function(fn.grad),
            replay=None if fn.replay is None else self.function(fn.replay),
            derivative_of=None if fn.derivative_of is None else self.function(fn.derivative_of),
        )


def lift(fn: n.Function) -> n.Function:
    """The function in float64, with the functions that it calls."""
    return _Lift().function(silent(fn))


def can_lift(fn: n.Function) -> bool:
    """Whether a kernel has a float64 form: whether its native functions have one.

    What a C++ text computes in float cannot be had in double.
    """
    for f in n.callees(fn):
        if f.native is not None and any(
            lift_type(t) != t for t in (*(p.type for p in f.params), *f.results)
        ):
            return False
        if any(not can_lift(g) for g in (f.grad, f.replay) if g is not None and g.native is None):
            return False
    return True
