"""The watch pass: makes a kernel that reports accesses out of bounds, or races.

The code stays as it is (see `engine.ir.sites`); only native text, which cannot be watched, is
kept inside of its arrays.
"""

from __future__ import annotations

from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.rewrite import Rewriter


class _Guarded(Rewriter):
    custom = False

    def change(self, fn: n.Function) -> n.Function:
        if fn.native is not None and not fn.native.guarded:
            return replace(fn, native=replace(fn.native, guarded=True))
        return super().change(fn)


def watch(fn: n.Function, what: n.Watch) -> n.Function:
    """The kernel as it is compiled to be watched."""
    return replace(_Guarded().function(fn), watch=what)
