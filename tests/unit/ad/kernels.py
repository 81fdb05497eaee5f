"""Short ways to IR for tests of single passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine import ad
from engine.ir import interp
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.verify import verify
from engine.lang.types import FLOAT32, INT32, ArrayType

A = n.Var("a", ArrayType(FLOAT32, 1))
B = n.Var("b", ArrayType(FLOAT32, 1))
COUNT = n.Var("m", INT32)
ZERO, ONE = const(0, INT32), const(1, INT32)


def built(write: Callable[[Builder], None]) -> n.Function:
    """A kernel of arrays `a` and `b` and a number `m`, whose statements `write` adds."""
    b = Builder(Names(["a", "b", "m"]))
    write(b)
    out = n.Function("k", (A, B, COUNT), (), b.block(), is_kernel=True)
    verify(out)
    return out


def statements(fn: n.Function, *kinds: type) -> list[Any]:
    """The statements of some kinds, those of nested blocks included."""
    return [s for s in n.walk(fn.body) if isinstance(s, kinds)]


def operations(fn: n.Function) -> list[str]:
    """Names of the operations, in order."""
    return [s.op for s in statements(fn, n.Let)]


def named(fn: n.Function, name: str) -> n.Var:
    """The variable that the source text calls so."""
    found = {d for s in n.walk(fn.body) for d in n.defs_of(s)} | set(fn.params)
    return next(v for v in found if v.name == name)


def ran(fn: n.Function, dim: int, *args: Any, **options: Any) -> list[Any]:
    """Copies of the arguments after a run by the interpreter."""
    own = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    interp.run(fn, own, dim, **options)
    return own


def prepared(kernel: Any) -> n.Function:
    return ad.prepare(kernel.ir)
