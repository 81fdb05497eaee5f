"""Writes a kernel for a block of threads at once; see `engine.codegen.together`.

    static bool lanes(..., int64_t at, int64_t n)

runs n threads from coordinate `at` of the last axis on. It gives false where they do not go the
same way, or save too much; it has had no effect then, and threads have to run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.codegen.cstyle import Emitter
from engine.codegen.facts import LINEAR, Facts
from engine.codegen.spelling import identifier, index_name, local, template
from engine.codegen.statements import Body
from engine.codegen.together import Part, Segment, Together, Total, together
from engine.ir import nodes as n

HEADER = "lanes.h"


class LanesBody(Body):
    """Writes the statements of a kernel for a block of threads."""

    def __init__(self, emitter: Emitter, fn: n.Function, how: Together, last: int) -> None:
        super().__init__(emitter, fn)
        self.how = how
        self.holds = {}  # blocks have all threads
        self.last = last
        self.alone = False  # inside of a segment
        self.outer: set[n.Var] = set()  # of several blocks, declared where lanes are together
        self.coordinates = [s for s in n.walk(fn.body)
                            if isinstance(s, n.Let) and s.op in ("tid", "thread")
                            and s.dst in how.varying]  # fmt: skip

    def write(self) -> list[str]:
        width = self.how.width
        for v in self.how.kept:
            self.line(f"eng::lanes_t<{self.e.type(v.type)},{width}> {lanes_of(v)};")
        for v in self.decls.mutable:
            if v not in self.how.varying:
                self.line(f"{self.e.type(v.type)} {local(v)}{{}};")
            elif v in self.how.kept:
                self.lanes(f"{lanes_of(v)}.set(l, {self.e.type(v.type)}{{}});")
        if self.how.ahead:
            self.line(f"if (!eng::reserve(ctx, {self.how.ahead})) return false;")
        self.block(self.fn.body)
        self.line("return true;")
        return self.out

    def lanes(self, text: str) -> None:
        self.line(f"for (int64_t l = 0; l < n; ++l) {text}")

    def leave(self) -> str:
        return "return false;"

    def return_(self, s: n.Return) -> None:
        self.line("return true;")

    def block(self, block: n.Block) -> None:
        if self.alone:
            super().block(block)
            return
        me = self.blocks
        self.blocks += 1
        for v in self.decls.at_head.get(me, ()):
            if v in self.how.varying:
                self.outer.add(v)
            else:
                self.line(f"{self.e.type(v.type)} {local(v)};")
        for part in self.how.parts[id(block)]:
            self.part(part)

    def part(self, part: Part) -> None:
        if isinstance(part, Segment):
            self.segment(part)
        elif isinstance(part, Total):
            self.at(part.s.span)
            assert isinstance(part.s.value, n.Var)
            update, value = self.update(part.s), lanes_of(part.s.value)
            self.line(f"{update}({self.element(part.s)}, eng::sum({value}, n));")
        else:
            self.at(part.span)
            self.statement(part)

    def segment(self, segment: Segment) -> None:
        """A loop over the lanes. What they keep is read first, and written last."""
        defined = {d: None for s in n.walk(segment.stmts) for d in n.defs_of(s)}
        used = {a: None for s in n.walk(segment.stmts) for a in n.uses_of(s)
                if isinstance(a, n.Var)}  # fmt: skip
        self.line("for (int64_t l = 0; l < n; ++l) {")
        self.depth += 1
        self.alone = True
        if self.last >= 0:
            self.line(f"const int64_t {index_name(self.last)} = at + l;")
        if LINEAR in self.e.facts[id(self.fn)].tids:
            self.line(f"const int64_t {index_name(LINEAR)} = linear + l;")
        for s in self.coordinates:
            if s.dst in used:
                self.let(s)
        known = {s.dst for s in self.coordinates}
        for v in {**used, **defined}:
            if v not in self.how.varying or v in known:
                continue
            kind, kept = self.e.type(v.type), v in self.how.kept
            if kept and (v.mutable or v not in defined):
                self.line(f"{kind} {local(v)} = {lanes_of(v)}.get(l);")
            elif kept or v.mutable or v in self.outer:
                self.line(f"{kind} {local(v)}{{}};")
        self.sequence(segment.stmts)
        for v in defined:
            if v in self.how.kept:
                self.line(f"{lanes_of(v)}.set(l, {local(v)});")
        self.alone = False
        self.depth -= 1
        self.line("}")

    def statement(self, s: n.Stmt) -> None:
        own = _WRITERS.get(type(s))
        if own is None:
            super().statement(s)
        else:
            own(self, s)

    def assign(self, v: n.Var, text: str) -> None:
        if self.alone and v in self.how.kept and not v.mutable:
            self.line(f"{local(v)} = {text};")
        else:
            super().assign(v, text)

    def if_(self, s: n.If) -> None:
        if self.alone or not isinstance(s.cond, n.Var) or s.cond not in self.how.varying:
            super().if_(s)
            return
        if id(s) in self.how.votes:
            self.line(f"if (!eng::agree({lanes_of(s.cond)}, n)) return false;")
        self.nested(f"if ({lanes_of(s.cond)}.get(0)) {{", s.then, "" if s.orelse else "}")
        if s.orelse:
            self.nested("} else {", s.orelse)
        else:
            self.blocks += 1

    def push(self, s: n.Push) -> None:
        if s.stack not in self.how.stacks:
            super().push(s)
        elif isinstance(s.value, n.Var) and s.value in self.how.kept:
            self.line(f"if (!eng::{self.pushing(s)}(ctx, {lanes_of(s.value)})) {self.leave()}")
        else:
            kind = f"eng::lanes_t<{self.e.type(s.value.type)},{self.how.width}>"
            same = f"eng::same<{kind}>({self.atom(s.value)}, {self.how.width})"
            self.line(f"if (!eng::{self.pushing(s)}(ctx, {same})) {self.leave()}")

    def pop(self, s: n.Pop) -> None:
        if s.stack in self.how.stacks:
            self.line(f"eng::take(ctx, {lanes_of(s.dst)});")
        else:
            super().pop(s)

    def reserve(self, s: n.Reserve) -> None:
        size = f"{self.atom(s.size)} * {self.how.width}"
        self.line(f"if (!eng::reserve(ctx, {size})) {self.leave()}")


_WRITERS: dict[type, Callable[[LanesBody, Any], None]] = {
    n.If: LanesBody.if_,
    n.Return: LanesBody.return_,
    n.Push: LanesBody.push,
    n.Pop: LanesBody.pop,
    n.Reserve: LanesBody.reserve,
}


def lanes_of(v: n.Var) -> str:
    """A variable's values of all lanes."""
    return f"L_{identifier(v.name)}"


def function(e: Emitter) -> tuple[list[str], int]:
    """The kernel for a block of threads, and how many these are at most.

    Nothing and 0 where it has no such form.
    """
    fn = e.fn
    how = together(fn, e.facts)
    if how is None:
        return [], 0
    facts = e.facts[id(fn)]
    body = LanesBody(e, fn, how, facts.axes - 1).write()
    params = [f"{e.dialect.context} ctx"] if facts.context else []
    params += [f"{e.declared(p)} {local(p)}" for p in fn.params]
    params += [f"int64_t {index_name(d)}" for d in _rest(facts)]
    params += ["int64_t at", "int64_t n"]
    params += ["int64_t linear"] if LINEAR in facts.tids else []
    head = f"ENG_ALONE bool lanes({', '.join(params)}) {{"
    return [*template(fn.params), head, *body, "}"], how.width


def _rest(facts: Facts) -> list[int]:
    """The coordinates that are the same for all threads of a block."""
    return [d for d in range(facts.axes - 1) if d in facts.tids]


def run(e: Emitter, width: int, pointers: Sequence[str], args: Sequence[str]) -> list[str]:
    """The loop over blocks of threads. Those of a block that do not go together run one by one.

    pointers: names of parameters, the memory of arrays. args: lines that make the arguments.
    """
    fn = e.fn
    facts = e.facts[id(fn)]
    down, last = bool(fn.adjoints), facts.axes - 1
    memory = ", ".join(f"unsigned char* {p}" for p in pointers)
    out = [f"ENG_ALONE void run_lanes(const unsigned char* args, eng_launch* L,\n    {memory}) {{"]
    out += args
    if facts.context:
        out.append("    eng::ctx_t ctx = eng::enter(L);")
    out.append("    const int64_t begin = L->begin, end = L->end;")
    words = [*(["ctx"] if facts.context else []), *(local(p) for p in fn.params)]
    words += [f"c[{d}]" for d in _rest(facts)]
    words += ["first", "n", *(["linear"] if LINEAR in facts.tids else [])]
    count = f"const int64_t n = left - done < {width} ? left - done : {width};"
    if down:
        rows = ["for (int64_t row = end - 1, left; row >= begin; row -= left) {"]
        linear = "row - done - n + 1"
        find = "left = eng::row_down<{axes}>(L, row, begin, c);"
        first = f"c[{last}] - done - n + 1"
    else:
        rows = ["for (int64_t row = begin, left; row < end; row += left) {"]
        linear = "row + done"
        find = "left = eng::row<{axes}>(L, row, c);"
        first = f"c[{last}] + done"
    if facts.axes:
        rows += [f"    int64_t c[{facts.axes}];", f"    {find.format(axes=facts.axes)}"]
    else:
        rows += ["    left = end - begin;"]
        first = linear
    out += [f"    {line}" for line in rows]
    out += [
        "        for (int64_t done = 0; done < left;) {",
        f"            {count}",
        f"            const int64_t linear = {linear}, first = {first};",
        "            done += n;",
        *(["            const int64_t size = ctx.stack.size;"] if facts.context else []),
        f"            if (lanes({', '.join(words)})) continue;",
        *_alone(facts, pointers, down),
        "        }",
        "    }",
        "    L->begin = begin, L->end = end;",
        *(["    eng::leave(L, ctx);"] if facts.context else []),
        "}",
    ]
    return out


def _alone(facts: Facts, pointers: Sequence[str], down: bool) -> Sequence[str]:
    """Runs the threads of a block one after the other."""
    out = ["L->begin = linear, L->end = linear + n;"]
    if facts.context:
        out = ["ctx.stack.size = size, ctx.error = 0;", "eng::leave(L, ctx);", *out]
    out.append(f"run_apart(args, L, {', '.join(pointers)});")
    # An adjoint says by the end which threads are left to do.
    end = "" if down else ", L->end = end"
    out.append(f"if (L->error) {{ L->begin = begin{end}; return; }}")
    if facts.context:
        out.append("ctx = eng::enter(L);")
    return [f"            {line}" for line in out]
