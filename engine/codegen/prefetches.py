"""Writes a kernel whose threads ask for what others will need; see `engine.codegen.ahead`."""

from __future__ import annotations

from collections.abc import Callable

from engine.codegen.ahead import AHEAD, Ahead, ahead
from engine.codegen.spelling import index_name, local
from engine.codegen.statements import Body, Context
from engine.ir import nodes as n


class Asking(Body):
    """Writes the statements of a kernel."""

    def __init__(self, emitter: Context, fn: n.Function) -> None:
        super().__init__(emitter, fn)
        self.ahead = {} if emitter.dialect.cuda else ahead(fn)

    def statement(self, s: n.Stmt) -> None:
        for what in self.ahead.get(id(s), ()):
            if self.cut is None or (not what.turns and self.has_all(what)):
                self.ask(what)
        super().statement(s)

    def has_all(self, what: Ahead) -> bool:
        """Whether all parameters are there: pieces of large functions have those of the frame."""
        used = {*what.arrays, *(a for s in what.needed for a in n.uses_of(s))}
        frame = () if self.cut is None else self.cut.frame
        return not self.home or used.intersection(self.fn.params) <= {*frame}

    def ask(self, what: Ahead) -> None:
        k = index_name(what.axis)
        given = *self.fn.params, *what.turns
        later = _Later(self.e, n.Function("later", given, (), what.needed))
        later.given = self.name
        later.depth = self.depth
        later.line("do {")
        later.depth += 1
        later.line(f"const int64_t later = {k} {'-' if self.e.down else '+'} {AHEAD};")
        later.line("{")
        later.depth += 1
        later.line(f"const int64_t {k} = later;")
        later.block(what.needed)
        index = ", ".join(map(later.index, what.index))
        for a in what.arrays:
            later.line(f"eng::ask({later.name(a)}, {index});")
        later.depth -= 1
        later.line("}")
        later.depth -= 1
        later.line("} while (false);")
        self.out += later.out


class _Later(Body):
    """Writes what a thread to come computes, in a loop that is left where an array has ended.

    given: the name of what it is given.
    """

    given: Callable[[n.Var], str] = staticmethod(local)

    def name(self, v: n.Var) -> str:
        return self.given(v) if v in self.fn.params else local(v)

    def statement(self, s: n.Stmt) -> None:
        if isinstance(s, n.Load):
            sizes = f"{self.name(s.array)}.shape"
            inside = (f"eng::inside({self.index(a)}, {sizes}[{d}])" for d, a in enumerate(s.index))
            self.line(f"if (!({' && '.join(inside)})) break;")
        super().statement(s)
