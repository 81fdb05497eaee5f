"""The C-style emitter: a kernel and what it calls as text, spelled by a `Dialect`.

The text is deterministic and holds nothing of the place where the program lies but,
if asked for, `#line` directives with the base name of the Python file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import get_args

from engine import builtins  # noqa: F401  (fills the operation table)
from engine.classes import dataclass
from engine.codegen.facts import facts_of
from engine.codegen.guards import Guards
from engine.codegen.prefetches import Asking
from engine.codegen.snippets import snippet_body
from engine.codegen.spelling import array_type, identifier, index_name, local, template
from engine.codegen.statements import WITHIN, Body
from engine.codegen.watched import WatchedBody
from engine.ir import nodes as n
from engine.ir.sites import places
from engine.lang.ctypes_ import ctype
from engine.lang.types import ArrayType, Type


@dataclass(frozen=True)
class Dialect:
    """What differs between the languages that the emitter writes.

    function, thread, piece: qualifiers of user functions, of the body of one thread, and of
    a part of a large function.
    context: the parameter type through which stack and journal are reached.
    cuda: take the CUDA spelling of operations. atomics: the function of each kind.
    """

    name: str
    function: str
    thread: str
    piece: str
    context: str
    cuda: bool = False
    atomics: dict[str, str] = field(
        default_factory=lambda: {k: f"eng::atomic_{k}" for k in get_args(n.AtomicKind)}
    )


class Emitter:
    """Writes a kernel's functions. The entry point around them is the backend's."""

    def __init__(self, fn: n.Function, dialect: Dialect, lines: bool = False) -> None:
        self.fn = fn
        self.dialect = dialect
        self.lines = lines
        self.facts = facts_of(fn)
        self.names: dict[int, str] = {id(fn): "thread"}
        self.out: list[str] = []
        self.messages = 0
        # Of threads that loops leave out; then a thread is told whether it is one of the others.
        self.guards: Guards | None = None
        # Bytes of the journal that loops see to before a thread writes them; 0: threads do.
        self.room = 0
        self.down = False  # whether its threads run from the last to the first
        # Numbers of the places that are watched, by the identity of statements.
        self.places = places(fn)[0] if fn.watch else {}
        if fn.watch == "silent":
            self.places = dict.fromkeys(self.places, -1)

    def message(self) -> int:
        """The number of the next message, as `engine.ir.messages.messages_of` counts them."""
        self.messages += 1
        return self.messages - 1

    def functions(self) -> list[str]:
        """The called functions, callees first, then the kernel's body as `thread(...)`."""
        for i, f in enumerate(n.callees(self.fn)):
            self.names[id(f)] = f"f{i}_{identifier(f.name)}"
            self.function(f)
        self.function(self.fn)
        return self.out

    def type(self, t: Type) -> str:
        if isinstance(t, ArrayType):
            return f"eng::array_t<{ctype(t.element)},{t.ndim}>"
        return ctype(t)

    def declared(self, v: n.Var) -> str:
        """The type of a parameter, or of a variable that holds one."""
        return array_type(v) if isinstance(v.type, ArrayType) else self.type(v.type)

    def name(self, f: n.Function) -> str:
        """What a function is called in the text."""
        return self.names[id(f)]

    def result(self, f: n.Function) -> str:
        """The C++ type that a function returns."""
        if len(f.results) < 2:
            return ctype(f.results[0]) if f.results else "void"
        return f"r_{self.names[id(f)]}"

    def call(self, f: n.Function, args: Sequence[str]) -> str:
        """A call of a function from code with the same context and thread index."""
        facts = self.facts[id(f)]
        context = ["ctx"] if facts.context else []
        tids = [index_name(p) for p in sorted(facts.tids)]
        return f"{self.names[id(f)]}({', '.join([*context, *args, *tids])})"

    def function(self, f: n.Function) -> None:
        facts = self.facts[id(f)]
        if len(f.results) > 1:
            members = " ".join(f"{ctype(t)} r{i};" for i, t in enumerate(f.results))
            self.out.append(f"struct {self.result(f)} {{ {members} }};")
        params = [f"{self.dialect.context} ctx"] if facts.context else []
        params += [f"{self.declared(p)} {local(p)}" for p in f.params]
        if f is self.fn and self.guards is not None:
            params.append(f"const bool {WITHIN}")
        params += [f"int64_t {index_name(p)}" for p in sorted(facts.tids)]
        qualifier = self.dialect.thread if f.is_kernel else self.dialect.function
        if f.kept is not None:
            qualifier = self.dialect.piece
        head = f"{qualifier} {self.result(f)} {self.names[id(f)]}({', '.join(params)}) {{"
        before: list[str] = []
        if f.native is None:
            kind = WatchedBody if self.fn.watch else Asking if f is self.fn else Body
            body = kind(self, f)
            lines, before = body.write(), body.before
        else:
            lines = snippet_body(f, self.result(f))
        self.out += [*before, *template(f.params), head, *lines, "}"]
