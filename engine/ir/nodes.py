"""The typed, structured IR: three-address statements inside structured blocks.

Two kinds of variable make every later pass simple:

* a *temporary* (`mutable=False`) is defined by exactly one statement of the function, so its
  value is still there when the reverse sweep wants it;
* a *mutable* variable is changed only by `Set` (or by `Pop` in adjoint code), which destroys.

Operands are atoms: a variable or a constant. Every statement carries the span
of the Python source it comes from.

Variables, constants and the base of all statements are in `engine.ir.atoms`. Each kind of
statement says in its declaration which of its fields are variables that it defines, atoms that
it reads and blocks nested in it; `defs_of`, `uses_of`, `blocks_of` and `map_stmt` follow from
that, and passes from these. So a new kind of statement is a class here, its meaning in
`engine.ir.interp` and its text in each code generator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from engine.classes import dataclass
from engine.diagnostics import UNKNOWN, Span
from engine.ir.atoms import Atom as Atom
from engine.ir.atoms import Const as Const
from engine.ir.atoms import Stmt as Stmt
from engine.ir.atoms import Var as Var
from engine.ir.atoms import Watch as Watch
from engine.ir.links import NO_LINKS, Links
from engine.ir.unassigned import UnassignedRead
from engine.lang.structs import Argument
from engine.lang.types import ValueType

AtomicKind = Literal["add", "sub", "min", "max", "and", "or", "xor", "exch", "cas"]
MessageKind = Literal["print", "expect", "assert"]
Block = tuple[Stmt, ...]


def _typed(v: Var) -> str:
    return f"{v}: {v.type}"


def _listed(atoms: Sequence[Atom]) -> str:
    return ", ".join(map(str, atoms))


def _at(s: Load | Store | Atomic) -> str:
    path = f".({_listed(s.path)})" if s.path else ""
    return f"{s.array}[{_listed(s.index)}]{path}"


@dataclass(frozen=True, slots=True)
class Let(Stmt):
    """`dst = op(args)`: a pure operation of `engine.ir.ops` defines a temporary."""

    DEFINES = ("dst",)
    READS = ("args",)
    dst: Var
    op: str
    args: tuple[Atom, ...]
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"{_typed(self.dst)} = {self.op}({_listed(self.args)})",)


@dataclass(frozen=True, slots=True)
class Set(Stmt):
    """`dst = value`: overwrites a mutable variable."""

    DEFINES = ("dst",)
    READS = ("value",)
    dst: Var
    value: Atom
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"{_typed(self.dst)} := {self.value}",)


@dataclass(frozen=True, slots=True)
class Load(Stmt):
    """`dst = array[index]`, or a scalar of that element where `path` names a component.

    `site` numbers the reads of a prepared function (see `engine.ad`); -1 elsewhere.
    """

    DEFINES = ("dst",)
    READS = ("array", "index", "path")
    dst: Var
    array: Var
    index: tuple[Atom, ...]
    path: tuple[Atom, ...] = ()
    span: Span = UNKNOWN
    site: int = -1

    def text(self) -> tuple[str, ...]:
        site = f"  #{self.site}" if self.site >= 0 else ""
        return (f"{_typed(self.dst)} = load {_at(self)}{site}",)


@dataclass(frozen=True, slots=True)
class Store(Stmt):
    """`array[index](path) = value`."""

    READS = ("array", "index", "path", "value")
    EFFECT = True
    array: Var
    index: tuple[Atom, ...]
    value: Atom
    path: tuple[Atom, ...] = ()
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"store {_at(self)} <- {self.value}",)


@dataclass(frozen=True, slots=True)
class Atomic(Stmt):
    """An atomic update of an element (or component). `dst` receives the value before it.

    `compare`: of `cas` alone, which stores `value` where the element equals it.
    """

    DEFINES = ("dst",)
    READS = ("array", "index", "path", "value", "compare")
    EFFECT = True
    dst: Var | None
    kind: AtomicKind
    array: Var
    index: tuple[Atom, ...]
    value: Atom
    path: tuple[Atom, ...] = ()
    span: Span = UNKNOWN
    site: int = -1
    compare: Atom | None = None

    def text(self) -> tuple[str, ...]:
        dst = f"{_typed(self.dst)} = " if self.dst is not None else ""
        compare = "" if self.compare is None else f" if {self.compare}"
        return (f"{dst}atomic_{self.kind} {_at(self)} <- {self.value}{compare}",)


@dataclass(frozen=True, slots=True)
class Message(Stmt):
    """Tells the host something, which it prints after the launch.

    pieces: the text before, between and after the values `args`; formats: how each value
    is shown: "" as `print` does, else a format of C ("%d") or of Python (":.3f").
    kind: an `expect` says that a test failed; an `assert` also ends the launch.
    thread: for tests, the linear index of the thread. Adjoint code has no messages.
    """

    READS = ("args", "thread")
    EFFECT = True
    kind: MessageKind
    pieces: tuple[str, ...]
    formats: tuple[str, ...]
    args: tuple[Atom, ...]
    thread: Atom | None = None
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        words = (f"{self.kind} {self.pieces!r}", _listed(self.args),
                 "" if self.thread is None else f"in {self.thread}")  # fmt: skip
        return (" ".join(filter(None, words)),)


@dataclass(frozen=True, slots=True)
class Call(Stmt):
    """`dsts = func(args)`: a user function with any number of results."""

    DEFINES = ("dsts",)
    READS = ("args",)
    dsts: tuple[Var, ...]
    func: Function
    args: tuple[Atom, ...]
    span: Span = UNKNOWN
    site: int = -1

    def text(self) -> tuple[str, ...]:
        dsts = ", ".join(map(_typed, self.dsts))
        return (f"{dsts + ' = ' if dsts else ''}call {self.func.name}({_listed(self.args)})",)


@dataclass(frozen=True, slots=True)
class If(Stmt):
    """Runs one of two blocks."""

    READS = ("cond",)
    NESTED = ("then", "orelse")
    cond: Atom
    then: Block
    orelse: Block = ()
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"if {self.cond} {{", "} else {" if self.orelse else "", "}")


@dataclass(frozen=True, slots=True)
class For(Stmt):
    """Counts the temporary `var` from start (inclusive) to stop (exclusive).

    All three bounds are integer atoms of var's type, read once at entry. A step of 0
    runs no iteration. `var` may not be assigned in the body.
    """

    DEFINES = ("var",)
    READS = ("start", "stop", "step")
    NESTED = ("body",)
    var: Var
    start: Atom
    stop: Atom
    step: Atom
    body: Block
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"for {self.var} = {self.start} to {self.stop} by {self.step} {{", "}")


@dataclass(frozen=True, slots=True)
class While(Stmt):
    """Runs `test`, leaves if `cond` is false, runs `body`, and starts again.

    `test` writes no memory, and nothing leaves it.
    `body` may not use temporaries that `test` defines.
    """

    READS = ("cond",)
    NESTED = ("test", "body")
    test: Block
    cond: Atom
    body: Block
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return ("while {", f"}} {self.cond} {{", "}")


@dataclass(frozen=True, slots=True)
class Break(Stmt):
    """Leaves the innermost loop."""

    LEAVES = True
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return ("break",)


@dataclass(frozen=True, slots=True)
class Continue(Stmt):
    """Goes on with the innermost loop's next iteration."""

    LEAVES = True
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return ("continue",)


@dataclass(frozen=True, slots=True)
class Return(Stmt):
    """Leaves the function. `values` match `Function.results`; a kernel returns ()."""

    READS = ("values",)
    LEAVES = True
    values: tuple[Atom, ...] = ()
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"return {_listed(self.values)}".rstrip(),)


@dataclass(frozen=True, slots=True)
class Push(Stmt):
    """Saves a value on the thread's stack. Adjoint code only; pairs with the Pops of `stack`."""

    READS = ("value",)
    stack: int
    value: Atom
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"push s{self.stack} <- {self.value}",)


@dataclass(frozen=True, slots=True)
class Pop(Stmt):
    """Takes back the last value pushed by this thread. `dst` may be mutable."""

    DEFINES = ("dst",)
    dst: Var
    stack: int
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"{_typed(self.dst)} {':=' if self.dst.mutable else '='} pop s{self.stack}",)


@dataclass(frozen=True, slots=True)
class Reserve(Stmt):
    """Abandons the thread unless `size` more bytes may be saved on its stack. Adjoint code only.

    It stands between the forward sweep and the first effect, so that a thread that is
    abandoned has left no trace and can be run again by code that needs less.
    """

    READS = ("size",)
    EFFECT = True
    size: Atom
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"reserve {self.size}",)


@dataclass(frozen=True, slots=True)
class JournalWrite(Stmt):
    """Appends a value to the launch's journal (forward code of a recorded launch)."""

    READS = ("value",)
    EFFECT = True
    value: Atom
    site: int
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"journal #{self.site} <- {self.value}",)


@dataclass(frozen=True, slots=True)
class JournalRead(Stmt):
    """`dst = journal[pos]`, `pos` in 8-byte slots from the start of the thread's entries.

    Each thread of a recorded launch leaves one frame of entries; adjoint threads, which
    run in reverse order, take the frames from the end.
    """

    DEFINES = ("dst",)
    READS = ("pos",)
    dst: Var
    pos: Atom
    site: int
    span: Span = UNKNOWN

    def text(self) -> tuple[str, ...]:
        return (f"{_typed(self.dst)} = journal #{self.site} at {self.pos}",)


@dataclass(frozen=True, slots=True)
class Native:
    """The C++ text of a native function, which takes the place of its body.

    It names the function's parameters as they are, and returns its result. reads, writes:
    array parameters whose elements it may read and replace; updates: those that it only
    adds to and the like. inputs: of an adjoint, the parameters whose adjoints `adj_<name>`
    it adds to and which are its results, in order. absent: array parameters that stand for
    gradients which are not there: what is added to them is lost, and they read as zero.
    references: parameters that it changes, whose values are the last results. before: of an
    adjoint of such, the text of the function itself, which the text of the adjoint runs after.
    """

    text: str
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    updates: frozenset[str] = frozenset()
    inputs: tuple[str, ...] | None = None
    absent: frozenset[str] = frozenset()
    # The text certainly keeps no state and calls nothing that does.
    pure: bool = False
    # Elements outside of arrays read as NaN and lose writes: see `engine.ad.guarded_accesses`.
    guarded: bool = False
    references: tuple[str, ...] = ()
    before: str = ""


@dataclass(frozen=True, eq=False)
class Function:
    """A kernel or function. Identity is equality: a call graph shares Function objects.

    `results` is empty for kernels. `grad` is the user's own adjoint, a function
    (inputs..., cotangents of results..., gradients of arrays...) -> adjoints of the
    differentiable inputs, in order; `replay` the user's own forward code for the backward
    pass, which writes no memory unless it is native. `native` stands in place of the body.
    `derivative_of` means a body that is not written yet: the derivative of the sum of that
    function's float results by each float parameter that is no array (see `ad.derivatives`).
    """

    name: str
    params: tuple[Var, ...]
    results: tuple[ValueType, ...]
    body: Block
    is_kernel: bool = False
    span: Span = UNKNOWN
    grad: Function | None = None
    replay: Function | None = None
    # Of a `grad`: the array parameters of the primal whose gradients are its last parameters.
    gradients: tuple[str, ...] = ()
    native: Native | None = None
    derivative_of: Function | None = None
    # Array parameters and those that hold their gradients, by names. A kernel that has any is an
    # adjoint: its threads run in the reverse of their forward order, the last one first.
    adjoints: tuple[tuple[str, str], ...] = ()
    # A reverse sweep in it takes the branches of a forward sweep again: what it uses has been
    # defined, though the text alone does not show it.
    mirrored: bool = False
    # What the user's parameters and results were before structs and the like were taken
    # apart; empty where none was. Passes hand these on and never look at them.
    arguments: tuple[Argument, ...] = ()
    returns: tuple[Any, ...] = ()
    unassigned: tuple[UnassignedRead, ...] = ()  # what its author is warned of; passes may drop it
    rounded: bool = False  # it returns literals in the type of a result: for advice to callers
    watch: Watch = ""  # of a kernel that is about to be compiled: see `engine.ir.sites`
    tables: tuple[Argument, ...] = ()  # the last ones, which callers add: `builtins.queries`
    apart: tuple[tuple[str, str], ...] = ()  # array parameters that must not share memory
    links: Links = NO_LINKS
    kept: tuple[frozenset[int], ...] | None = None  # it stays a call in adjoints: see `ad.kept`

    def __str__(self) -> str:
        from engine.ir.printer import to_text

        return to_text(self)


def blocks_of(s: Stmt) -> tuple[Block, ...]:
    """The nested blocks of a statement, in source order."""
    return tuple([getattr(s, name) for name in s.NESTED])


def defs_of(s: Stmt) -> tuple[Var, ...]:
    """Variables that the statement itself (not its nested blocks) writes."""
    return (s.dst,) if isinstance(s, Let) else _collected(s, s.DEFINES)  # most are one


def uses_of(s: Stmt) -> tuple[Atom, ...]:
    """Atoms that the statement itself (not its nested blocks) reads, arrays included."""
    return s.args if isinstance(s, Let) else _collected(s, s.READS)


def _collected(s: Stmt, names: tuple[str, ...]) -> tuple[Any, ...]:
    out: list[Any] = []
    for name in names:
        value = getattr(s, name)
        if value.__class__ is tuple:
            out += value
        elif value is not None:
            out.append(value)
    return tuple(out)


def walk(block: Block) -> Iterator[Stmt]:
    """Every statement of a block, outer before inner."""
    todo = [iter(block)]
    while todo:
        for s in todo[-1]:
            yield s
            if s.NESTED:
                todo += [iter(getattr(s, name)) for name in reversed(s.NESTED)]
                break
        else:
            todo.pop()


def set_in(block: Block) -> dict[Var, None]:
    """Mutable variables changed anywhere in a block, in order of first change."""
    out: dict[Var, None] = {}
    for s in walk(block):
        for v in defs_of(s):
            if v.mutable:
                out[v] = None
    return out


def writes_memory(fn: Function) -> bool:
    """True where a function, or one that it calls, changes an array or gives a message."""
    return fn.kept is None and any(
        f.native.writes | f.native.updates
        if f.native is not None
        else any(isinstance(s, (Store, Atomic, Message)) for s in walk(f.body))
        for f in (fn, *callees(fn))
    )


def callees(fn: Function) -> list[Function]:
    """Functions that `fn` needs, each before its callers, without `fn`."""
    seen: dict[int, Function] = {}

    def visit(f: Function) -> None:
        for s in walk(f.body):
            if isinstance(s, Call) and id(s.func) not in seen:
                visit(s.func)
                seen[id(s.func)] = s.func

    visit(fn)
    return list(seen.values())
