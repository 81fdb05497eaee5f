"""Takes the messages out of a function: what runs again for a derivative says nothing."""

from __future__ import annotations

from dataclasses import replace

from engine.ad.rename import map_stmt
from engine.ir import nodes as n


def silent(fn: n.Function) -> n.Function:
    """The function without messages, in itself and in what it calls; `fn` where it has none."""
    return _Silence().function(fn)


class _Silence:
    def __init__(self) -> None:
        self.functions: dict[int, n.Function] = {}

    def function(self, fn: n.Function) -> n.Function:
        if not speaks(fn):
            return fn
        if id(fn) not in self.functions:
            self.functions[id(fn)] = replace(fn, body=self.block(fn.body))
        return self.functions[id(fn)]

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Stmt] = []
        for s in block:
            if isinstance(s, n.Message):
                continue
            s = map_stmt(s, lambda a: a, self.block)
            out.append(replace(s, func=self.function(s.func)) if isinstance(s, n.Call) else s)
        return tuple(out)


def speaks(fn: n.Function) -> bool:
    """Whether a function, or one that it calls, gives a message."""
    return any(isinstance(s, n.Message) for f in (*n.callees(fn), fn) for s in n.walk(f.body))
