"""Writes how a thread asks for what threads to come will need; see `engine.codegen.ahead`."""

from __future__ import annotations

from engine.codegen.ahead import AHEAD, Ahead, ahead
from engine.codegen.spelling import index_name, local
from engine.codegen.statements import Body, Context
from engine.ir import nodes as n


class _Later(Body):
    """Writes what a thread to come computes, in a loop that is left where an array has ended."""

    def statement(self, s: n.Stmt) -> None:
        if isinstance(s, n.Load):
            sizes = f"{self.name(s.array)}.shape"
            inside = (f"eng::inside({self.index(a)}, {sizes}[{d}])" for d, a in enumerate(s.index))
            self.line(f"if (!({' && '.join(inside)})) break;")
        super().statement(s)


def prefetches(e: Context) -> list[str]:
    """What a thread of a kernel does first."""
    return [line for what in ahead(e.fn) for line in _prefetch(e, what)]


def _prefetch(e: Context, what: Ahead) -> list[str]:
    k = index_name(what.axis)
    later = _Later(e, n.Function("later", e.fn.params, (), (*what.first, *what.then)))
    later.line("do {")
    later.depth += 1
    later.line(f"const int64_t later = {k} {'-' if e.down else '+'} {AHEAD};")
    later.line("{")
    later.depth += 1
    later.line(f"const int64_t {k} = later;")
    later.block(what.first)
    for cond, value in what.tests:
        later.line(f"if ({'!' * value}{later.atom(cond)}) break;")
    later.block(what.then)
    index = ", ".join(map(later.index, what.index))
    for a in what.arrays:
        later.line(f"eng::ask({local(a)}, {index});")
    later.depth -= 1
    later.line("}")
    later.depth -= 1
    later.line("} while (false);")
    return later.out
