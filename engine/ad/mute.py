"""Custom gradients where some of the gradient arrays that they add to are not there."""

from __future__ import annotations

from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.builder import const
from engine.lang.types import ArrayType, ValueType


class Muted:
    """Functions without effect on some of their array parameters, each made once.

    What is stored to such an array is lost, and it reads as zero; only its shape counts,
    so that any array of the type and shape may be passed for it.
    """

    def __init__(self) -> None:
        self.made: dict[tuple[int, frozenset[str]], n.Function] = {}

    def function(self, fn: n.Function, arrays: frozenset[str]) -> n.Function:
        """`fn` with the parameters `arrays` muted."""
        if not arrays:
            return fn
        key = (id(fn), arrays)
        if key not in self.made:
            native = fn.native and replace(fn.native, absent=fn.native.absent | arrays)
            self.made[key] = replace(fn, native=native, body=self.block(fn.body, arrays))
        return self.made[key]

    def block(self, block: n.Block, arrays: frozenset[str]) -> n.Block:
        out: list[n.Stmt] = []
        for s in block:
            if isinstance(s, n.If):
                s = replace(s, then=self.block(s.then, arrays), orelse=self.block(s.orelse, arrays))
            elif isinstance(s, n.For):
                s = replace(s, body=self.block(s.body, arrays))
            elif isinstance(s, n.While):
                s = replace(s, test=self.block(s.test, arrays), body=self.block(s.body, arrays))
            elif isinstance(s, n.Call):
                passed = frozenset(
                    p.name
                    for p, a in zip(s.func.params, s.args, strict=True)
                    if isinstance(a, n.Var) and a.name in arrays
                )
                s = replace(s, func=self.function(s.func, passed))
            elif isinstance(s, (n.Load, n.Store, n.Atomic)) and s.array.name in arrays:
                if not isinstance(s, n.Store) and s.dst is not None:
                    out.append(n.Let(s.dst, "copy", (_zero(s.dst),), s.span))
                continue
            out.append(s)
        return tuple(out)


def _zero(v: n.Var) -> n.Const:
    t: ValueType | ArrayType = v.type
    assert not isinstance(t, ArrayType)
    return const(0, t)
