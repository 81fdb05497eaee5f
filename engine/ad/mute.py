"""Custom gradients where some of the gradient arrays that they add to are absent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.builder import const
from engine.ir.rewrite import rewrite
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
        def step(s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
            if isinstance(s, n.Call):
                given = zip(s.func.params, s.args, strict=True)
                passed = frozenset(
                    p.name for p, a in given if isinstance(a, n.Var) and a.name in arrays
                )
                return replace(s, func=self.function(s.func, passed))
            if isinstance(s, (n.Load, n.Store, n.Atomic)) and s.array.name in arrays:
                return [n.Let(d, "copy", (_zero(d),), s.span) for d in n.defs_of(s)]
            return s

        return rewrite(block, step)


def _zero(v: n.Var) -> n.Const:
    t: ValueType | ArrayType = v.type
    assert not isinstance(t, ArrayType)
    return const(0, t)
