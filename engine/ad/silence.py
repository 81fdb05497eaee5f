"""Removes messages from a function, so that code that reruns for a derivative prints nothing."""

from __future__ import annotations

from collections.abc import Iterable

from engine.ir import nodes as n
from engine.ir.rewrite import Rewriter


def silent(fn: n.Function) -> n.Function:
    """The function without messages, in itself and in what it calls; `fn` where it has none."""
    return _Silence().function(fn)


class _Silence(Rewriter):
    custom = False

    def stmt(self, s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
        return () if isinstance(s, n.Message) else s
