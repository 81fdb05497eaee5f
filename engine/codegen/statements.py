"""Writes the statements of one function: one method a node of the IR."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from engine.codegen.facts import Facts, sure_pushes, tid_part
from engine.codegen.guards import Guards
from engine.codegen.hints import cleared, even_sums
from engine.codegen.inplace import run_of_inserts, uses
from engine.codegen.literals import literal
from engine.codegen.outline import Outline, Piece, outline
from engine.codegen.scopes import Declarations, declarations
from engine.codegen.spelling import array_type, identifier, index_name, local, template
from engine.codegen.winners import NONE, fights_of
from engine.diagnostics import Span
from engine.ir import nodes as n
from engine.ir.ops import OPS
from engine.lang.types import INT32, ArrayType, ScalarType, Type

# Thread indices keep twice this far from the end of int32 (eng::fits), so that adding
# a constant up to it gives the same in 32 and in 64 bits.
MAX_OFFSET = 1 << 15
WITHIN = "within"  # whether a thread is known to pass the kernel's guards


class Spelling(Protocol):
    """What a dialect says about operations; see `engine.codegen.cstyle.Dialect`."""

    @property
    def cuda(self) -> bool: ...
    @property
    def atomics(self) -> Mapping[str, str]: ...
    @property
    def context(self) -> str: ...
    @property
    def piece(self) -> str: ...


class Context(Protocol):
    """What statements need to know of the emitter around them."""

    @property
    def dialect(self) -> Spelling: ...
    @property
    def lines(self) -> bool: ...
    @property
    def fn(self) -> n.Function: ...
    @property
    def places(self) -> Mapping[int, int]: ...
    @property
    def facts(self) -> Mapping[int, Facts]: ...
    @property
    def guards(self) -> Guards | None: ...
    @property
    def room(self) -> int: ...
    @property
    def down(self) -> bool: ...
    def type(self, t: Type) -> str: ...
    def declared(self, v: n.Var) -> str: ...
    def result(self, f: n.Function) -> str: ...
    def call(self, f: n.Function, args: Sequence[str]) -> str: ...
    def message(self) -> int: ...
    def name(self, f: n.Function) -> str: ...


# Updates that need not be atomic where CUDA is told which thread an element is of.
_OWN = ("add", "sub")

# How a piece ended: by its end, or as the function around it has to go on.
_DONE, _BREAK, _CONTINUE, _RETURN = 0, 1, 2, 3


def _declared_in_pieces(cut: Outline) -> Declarations:
    """Variables are declared in the frame, or at the head of their piece."""
    return Declarations((), {}, frozenset(v for group in cut.locals.values() for v in group)
                        | frozenset(cut.frame))  # fmt: skip


class Body:
    """Writes the statements of one function."""

    def __init__(self, emitter: Context, fn: n.Function) -> None:
        self.e = emitter
        self.fn = fn
        self.cut = outline(fn)
        self.decls = declarations(fn) if self.cut is None else _declared_in_pieces(self.cut)
        self.inserted = uses(fn)
        guards = emitter.guards if fn is emitter.fn else None
        self.holds = {} if guards is None else guards.holds
        even = self.clears = emitter.dialect.cuda and not emitter.fn.watch
        self.even = even_sums(fn) if even else frozenset()
        self.fights = fights_of(fn) if emitter.dialect.cuda else NONE
        self.sure = sure_pushes(fn)
        self.out: list[str] = []
        # What stands before the function: its frame and its pieces.
        self.before: list[str] = []
        self.home = 0  # the piece that is written; 0 is the function itself
        self.loops = 0  # around the present place, in the present piece
        self.blocks = 0
        self.depth = 1
        self.place: tuple[str, int] | None = None
        # Thread indices and their sums with small constants, in 64 bits: what compilers
        # need to see in an index before they use vector loads in conditional code.
        self.wide: dict[n.Var, tuple[str, int]] = {}

    def write(self) -> list[str]:
        """The lines between the function's braces; what belongs before it is in `before`."""
        if self.cut is not None:
            self.frame(self.cut)
        for v in self.decls.mutable:
            self.line(f"{self.e.type(v.type)} {local(v)}{{}};")
        self.block(self.fn.body)
        ends = bool(self.fn.body) and isinstance(self.fn.body[-1], n.Return)
        if self.fn.results and (self.cut is not None or not ends):
            self.line("return {};")
        return self.out

    # ---- pieces of large functions

    def frame(self, cut: Outline) -> None:
        """Declares the frame, and puts the parameters into it that pieces need."""
        name = self.e.name(self.fn)
        kinds = self.kinds(cut)
        members = [f"    {self.e.declared(v)} {local(v)};" for v in cut.frame]
        if self.fn.results:
            members.append(f"    {self.e.result(self.fn)} result;")
        self.before += [*template(cut.frame), f"struct {name}_frame {{", *members, "};"]
        self.line(f"{name}_frame{kinds} F{{}};")
        for p in self.fn.params:
            if p in cut.frame:
                self.line(f"F.{local(p)} = {local(p)};")
        self.declare(cut, 0)

    def kinds(self, cut: Outline) -> str:
        """The arguments of the frame's template."""
        names = [array_type(v) for v in cut.frame if isinstance(v.type, ArrayType)]
        return f"<{', '.join(names)}>" if names else ""

    def declare(self, cut: Outline, home: int) -> None:
        for v in cut.locals.get(home, ()):
            self.line(f"{self.e.type(v.type)} {local(v)};")

    def piece(self, cut: Outline, p: Piece) -> None:
        """Writes a piece as a function, and its call."""
        facts = self.e.facts[id(self.fn)]
        name = f"{self.e.name(self.fn)}_{p.number}"
        context = [f"{self.e.dialect.context} ctx"] if facts.context else []
        tids = [index_name(part) for part in sorted(facts.tids)]
        params = [*context, f"{self.e.name(self.fn)}_frame{self.kinds(cut)}& F"]
        params += [f"int64_t {t}" for t in tids]
        outer = self.out, self.depth, self.home, self.loops, self.place
        self.out, self.depth, self.home, self.loops, self.place = [], 1, p.number, 0, None
        self.declare(cut, p.number)
        self.block(p.stmts)
        body = self.out
        self.out, self.depth, self.home, self.loops, self.place = outer
        self.before += [*template(cut.frame),
                        f"{self.e.dialect.piece} int {name}({', '.join(params)}) {{",
                        *body, f"    return {_DONE};", "}"]  # fmt: skip
        call = f"{name}({', '.join([*(['ctx'] if context else []), 'F', *tids])})"
        if not p.leaves:
            self.line(f"{call};")
            return
        self.line(f"if (const int end = {call}) {{")
        self.depth += 1
        if self.loops:
            self.line(f"if (end == {_BREAK}) break;")
            self.line(f"if (end == {_CONTINUE}) continue;")
        if self.home:
            self.line("return end;")
        else:
            self.line("return F.result;" if self.fn.results else "return;")
        self.depth -= 1
        self.line("}")

    def line(self, text: str) -> None:
        self.out.append("    " * self.depth + text)

    def block(self, block: n.Block) -> None:
        me = self.blocks
        self.blocks += 1
        for v in self.decls.at_head.get(me, ()):
            self.line(f"{self.e.type(v.type)} {local(v)};")
        if self.cut is not None and id(block) in self.cut.parts:
            for part in self.cut.parts[id(block)]:
                if isinstance(part, Piece):
                    self.piece(self.cut, part)
                else:
                    self.at(part.span)
                    self.statement(part)
            return
        self.sequence(block)

    def sequence(self, block: n.Block) -> None:
        done = 0
        for k, s in enumerate(block):
            if k < done:
                continue
            self.at(s.span)
            inserts = run_of_inserts(block, k, self.inserted) if self.inserted else []
            if inserts:
                self.components(inserts)
                done = k + len(inserts) + 1
            elif self.clears and (seen := cleared(block, k)) is not None:
                assert isinstance(s, n.Store)
                self.line(f"{self.element(s)} = eng::cleared({self.name(seen)});")
            else:
                self.statement(s)

    def statement(self, s: n.Stmt) -> None:
        _WRITERS[type(s)](self, s)

    def components(self, inserts: Sequence[n.Let]) -> None:
        """Writes components of a variable where they are."""
        whole = inserts[0].args[0]
        for s in inserts:
            index = ", ".join(self.atom(a) for a in s.args[1:-1])
            self.line(f"eng::item({self.atom(whole)}, {index}) = {self.atom(s.args[-1])};")

    def nested(self, head: str, block: n.Block, tail: str = "}") -> None:
        self.line(head)
        self.depth += 1
        self.block(block)
        self.depth -= 1
        if tail:
            self.line(tail)

    def at(self, span: Span) -> None:
        place = (os.path.basename(span.file), span.line)
        if self.e.lines and span.line > 0 and place != self.place:
            self.place = place
            name = place[0].replace("\\", "\\\\").replace('"', '\\"')
            self.out.append(f'#line {span.line} "{name}"')

    def name(self, v: n.Var) -> str:
        """A variable where it is used or assigned."""
        return f"F.{local(v)}" if self.cut is not None and v in self.cut.frame else local(v)

    def atom(self, a: n.Atom) -> str:
        return self.name(a) if isinstance(a, n.Var) else literal(a)

    def index(self, a: n.Atom) -> str:
        if isinstance(a, n.Const):
            return str(a.value)
        if a in self.wide:
            base, offset = self.wide[a]
            return base if offset == 0 else f"{base} {'+' if offset > 0 else '-'} {abs(offset)}"
        return self.name(a)

    def assign(self, v: n.Var, text: str) -> None:
        """Gives a variable its value, declaring it if this is the place."""
        if v.mutable or v in self.decls.hoisted:
            self.line(f"{self.name(v)} = {text};")
        else:
            # Not for structs: GCC 12 keeps a const struct in memory, and vectorises no loop
            # around it.
            const = "const " if isinstance(v.type, ScalarType) else ""
            self.line(f"{const}{self.e.type(v.type)} {local(v)} = {text};")

    def leave(self) -> str:
        """The statement that abandons the thread after an error."""
        if self.home:
            return f"return {_RETURN};"
        return "return {};" if self.fn.results else "return;"

    def widen(self, s: n.Let) -> None:
        if s.op in ("tid", "thread"):
            self.wide[s.dst] = (index_name(tid_part(s)), 0)
        elif s.op == "copy" and isinstance(s.args[0], n.Var) and s.args[0] in self.wide:
            self.wide[s.dst] = self.wide[s.args[0]]
        elif s.op in ("add", "sub") and s.dst.type == INT32:
            a, b = s.args
            if s.op == "add" and isinstance(a, n.Const):
                a, b = b, a
            if isinstance(a, n.Var) and a in self.wide and isinstance(b, n.Const):
                assert isinstance(b.value, int)
                base, offset = self.wide[a]
                offset += b.value if s.op == "add" else -b.value
                if abs(offset) <= MAX_OFFSET:
                    self.wide[s.dst] = (base, offset)

    def let(self, s: n.Let) -> None:
        self.widen(s)
        if s.op in ("tid", "thread"):
            self.assign(s.dst, f"int32_t({index_name(tid_part(s))})")
        elif s.op == "shape":
            self.assign(s.dst, f"int32_t({self.atom(s.args[0])}.shape[{self.index(s.args[1])}])")
        elif s.dst in self.holds:
            known = f"{WITHIN} ||" if self.holds[s.dst] else f"!{WITHIN} &&"
            self.assign(s.dst, f"{known} {self.operation(s)}")
        else:
            self.assign(s.dst, self.operation(s))

    def operation(self, s: n.Let) -> str:
        types = [a.type for a in s.args]
        text = OPS[s.op].spelling(types, s.dst.type, self.e.dialect.cuda)
        return text.format(*(self.atom(a) for a in s.args))

    def set(self, s: n.Set) -> None:
        self.assign(s.dst, self.atom(s.value))

    def element(self, s: n.Load | n.Store | n.Atomic) -> str:
        """The element or component that an access names, as an lvalue."""
        text = f"{self.name(s.array)}.at({', '.join(self.index(a) for a in s.index)})"
        if s.path:
            text = f"eng::item({', '.join([text, *(self.atom(a) for a in s.path)])})"
        return text

    def load(self, s: n.Load) -> None:
        self.assign(s.dst, self.element(s))

    def store(self, s: n.Store) -> None:
        self.line(f"{self.element(s)} = {self.atom(s.value)};")

    def update(self, s: n.Atomic) -> str:
        """The function that updates an element."""
        name = self.e.dialect.atomics[s.kind]
        return f"{name}_even" if id(s) in self.even else name

    def atomic(self, s: n.Atomic) -> None:
        won = self.fights.place(s)
        if won is not None:  # what the journal gets is written there
            args = f"ctx, {won}, {self.element(s)}, {self.atom(s.value)}"
            self.line(f"if (!eng::{s.kind}_won({args})) {self.leave()}")
            return
        compare = "" if s.compare is None else f", {self.atom(s.compare)}"
        whose = f"{self.name(s.array)}, " if self.e.dialect.cuda and s.kind in _OWN else ""
        text = f"{self.update(s)}({whose}{self.element(s)}, {self.atom(s.value)}{compare})"
        if s.dst is None:
            self.line(f"{text};")
        else:
            self.assign(s.dst, text)

    def call(self, s: n.Call) -> None:
        text = self.e.call(s.func, [self.atom(a) for a in s.args])
        if len(s.dsts) == 1 and len(s.func.results) == 1:
            self.assign(s.dsts[0], text)
        elif not s.dsts:
            self.line(f"{text};")
        else:
            # Named after its first variable, which is unique in the function.
            name = f"call_{identifier(s.dsts[0].name)}"
            self.line(f"{self.e.result(s.func)} {name} = {text};")
            for i, d in enumerate(s.dsts):
                self.assign(d, f"{name}.r{i}")
        if self.e.facts[id(s.func)].context:
            self.line(f"if (ctx.error) {self.leave()}")

    def if_(self, s: n.If) -> None:
        self.nested(f"if ({self.atom(s.cond)}) {{", s.then, "" if s.orelse else "}")
        if s.orelse:
            self.nested("} else {", s.orelse)
        else:
            self.blocks += 1  # numbered by `scopes` as well

    def looped(self, head: str, block: n.Block, tail: str = "}") -> None:
        self.loops += 1
        self.nested(head, block, tail)
        self.loops -= 1

    def for_(self, s: n.For) -> None:
        t, var = self.e.type(s.var.type), local(s.var)
        start, step = self.atom(s.start), self.atom(s.step)
        stop = self.atom(s.stop)
        if isinstance(s.stop, n.Var) and s.stop.mutable:
            stop = f"{var}_stop"
            self.line(f"const {t} {stop} = {self.atom(s.stop)};")
        unit = isinstance(s.step, n.Const) and s.step.value in (1, -1)
        if unit and s.var not in self.decls.hoisted:
            assert isinstance(s.step, n.Const)
            test, go = ("<", "++") if s.step.value == 1 else (">", "--")
            self.looped(f"for ({t} {var} = {start}; {var} {test} {stop}; {go}{var}) {{", s.body)
            return
        r = f"{var}_range"
        head = f"eng::range_t<{t}> {r}({start}, {stop}, {step})"
        self.line(f"for ({head}; {r}.more(); {r}.next()) {{")
        self.depth += 1
        self.loops += 1
        self.assign(s.var, f"{r}.value")
        self.block(s.body)
        self.loops -= 1
        self.depth -= 1
        self.line("}")

    def while_(self, s: n.While) -> None:
        self.looped("for (;;) {", s.test, "")
        self.depth += 1
        self.loops += 1
        self.line(f"if (!({self.atom(s.cond)})) break;")
        self.block(s.body)
        self.loops -= 1
        self.depth -= 1
        self.line("}")

    def jump(self, word: str, code: int) -> None:
        self.line(f"{word};" if self.loops or not self.home else f"return {code};")

    def return_(self, s: n.Return) -> None:
        values = [self.atom(a) for a in s.values]
        if self.home:
            whole = ", ".join(values)
            if len(values) > 1:
                whole = f"{self.e.result(self.fn)}{{{whole}}}"
            self.line(f"{f'F.result = {whole}; ' if values else ''}return {_RETURN};")
        elif len(values) > 1:
            self.line(f"return {self.e.result(self.fn)}{{{', '.join(values)}}};")
        else:
            self.line(f"return{' ' if values else ''}{''.join(values)};")

    def push(self, s: n.Push) -> None:
        self.line(f"if (!eng::{self.pushing(s)}(ctx, {self.atom(s.value)})) {self.leave()}")

    def pushing(self, s: n.Push) -> str:
        return "push_sure" if id(s) in self.sure else "push"

    def pop(self, s: n.Pop) -> None:
        self.assign(s.dst, f"eng::pop<{self.e.type(s.dst.type)}>(ctx)")

    def reserve(self, s: n.Reserve) -> None:
        self.line(f"if (!eng::reserve(ctx, {self.atom(s.size)})) {self.leave()}")

    def message(self, s: n.Message) -> None:
        """The number of the message and its values; the host knows the rest."""
        words = [f"int64_t({self.e.message()})"]
        words += [self.atom(a) for a in (*([] if s.thread is None else [s.thread]), *s.args)]
        failed = " || ".join(f"!eng::tell(ctx, {w})" for w in words)
        self.line(f"if ({failed}) {self.leave()}")
        if s.kind == "assert":
            self.line(f"{{ ctx.error = eng::error_assert; {self.leave()} }}")

    def journal_write(self, s: n.JournalWrite) -> None:
        if s.site in self.fights.sites:
            return
        if self.e.room:
            self.line(f"eng::journal_sure(ctx, {self.atom(s.value)});")
            return
        self.line(f"if (!eng::journal_write(ctx, {self.atom(s.value)})) {self.leave()}")

    def journal_read(self, s: n.JournalRead) -> None:
        self.assign(s.dst, f"eng::journal_read<{self.e.type(s.dst.type)}>(ctx, {self.atom(s.pos)})")


_WRITERS: dict[type, Callable[[Body, Any], None]] = {
    n.Let: Body.let,
    n.Set: Body.set,
    n.Load: Body.load,
    n.Store: Body.store,
    n.Atomic: Body.atomic,
    n.Call: Body.call,
    n.If: Body.if_,
    n.For: Body.for_,
    n.While: Body.while_,
    n.Break: lambda body, _: body.jump("break", _BREAK),
    n.Continue: lambda body, _: body.jump("continue", _CONTINUE),
    n.Return: Body.return_,
    n.Push: Body.push,
    n.Pop: Body.pop,
    n.Reserve: Body.reserve,
    n.Message: Body.message,
    n.JournalWrite: Body.journal_write,
    n.JournalRead: Body.journal_read,
}
