"""Finds functions with a handwritten derivative whose loops end by a comparison of floats.

Newton's method ends when floats are small enough. The derivative of the iterations that ran, which
is the reference, then differs from the derivative of the limit, which the user may have written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from engine.autograd.comparison.tolerance import left_by_iteration
from engine.autograd.launch.derived import called
from engine.compile.pipeline import Variants
from engine.ir.nodes import (
    Block,
    Break,
    Const,
    For,
    Function,
    Let,
    Return,
    Stmt,
    Var,
    While,
    callees,
    defs_of,
    uses_of,
    walk,
)
from engine.lang.types import BOOL, is_float

_ORDERED = ("lt", "le", "gt", "ge")


@lru_cache(256)
def iterated(variants: Variants) -> tuple[tuple[str, float], ...]:
    """Names of such functions, and the relative error that their loops may leave."""
    out: dict[str, float] = {}
    for f in called(variants.ir):
        if f.grad is not None:
            found = [e for g in (f, *callees(f)) for e in _errors(g)]
            if found:
                out[f.name] = max(found)
    return tuple(out.items())


def _errors(fn: Function) -> Iterator[float]:
    """For each loop that ends by a comparison of floats, the error that it leaves."""
    for loop in walk(fn.body):
        if not isinstance(loop, (For, While)):
            continue
        decisive = loop.test if isinstance(loop, While) else ()
        if not _compares_floats(decisive) and _body_ends(loop):
            decisive = loop.body
        if _compares_floats(decisive):
            read = [a.value for s in walk(decisive) for a in uses_of(s) if isinstance(a, Const)]
            yield left_by_iteration(x for x in read if isinstance(x, float))


def _body_ends(loop: For | While) -> bool:
    """Whether the body may end a loop: by a jump, or by a flag that the test reads."""
    if any(isinstance(s, (Break, Return)) for s in walk(loop.body)):
        return True
    if isinstance(loop, For):
        return False
    made = {v for s in walk(loop.test) for v in defs_of(s)}
    read = {loop.cond, *(a for s in walk(loop.test) for a in uses_of(s))}
    return any(isinstance(a, Var) and a.type == BOOL and a not in made for a in read)


def _compares_floats(block: Block) -> bool:
    return any(_is_comparison(s) for s in walk(block))


def _is_comparison(s: Stmt) -> bool:
    return isinstance(s, Let) and s.op in _ORDERED and is_float(s.args[0].type)
