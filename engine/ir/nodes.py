"""The typed, structured IR: three-address statements inside structured blocks.

Two kinds of variable make every later pass simple:

* a *temporary* (`mutable=False`) is defined by exactly one statement of the
  function, so its value is still there when the reverse sweep wants it;
* a *mutable* variable is changed only by `Set` (or by `Pop` in adjoint code),
  so these are the only places where a value can be destroyed.

Operands are atoms: a variable or a constant. Every statement carries the span
of the Python source it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.diagnostics import UNKNOWN, Span
from engine.lang.structs import Argument
from engine.lang.types import Type, ValueType

AtomicKind = Literal["add", "sub", "min", "max", "and", "or", "xor", "exch", "cas"]
MessageKind = Literal["print", "expect", "assert"]


@dataclass(frozen=True, slots=True)
class Var:
    """A variable. Names are unique in a function; two equal Vars are the same variable."""

    name: str
    type: Type
    mutable: bool = False

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, slots=True)
class Const:
    """A literal: a Python number for scalars, a (nested) tuple for vectors and matrices."""

    value: bool | int | float | tuple[object, ...]
    type: ValueType

    def __str__(self) -> str:
        return f"{self.value!r}:{self.type}"

    # 0.0 == -0.0 == False in Python: compare what will be printed instead.
    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const)
            and self.type == other.type
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))


Atom = Var | Const


@dataclass(frozen=True, slots=True)
class Let:
    """`dst = op(args)`: a pure operation of `engine.ir.ops` defines a temporary."""

    dst: Var
    op: str
    args: tuple[Atom, ...]
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Set:
    """`dst = value`: overwrites a mutable variable."""

    dst: Var
    value: Atom
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Load:
    """`dst = array[index]`, or a scalar of that element where `path` names a component.

    `site` numbers the reads of a prepared function (see `engine.ad`); -1 elsewhere.
    """

    dst: Var
    array: Var
    index: tuple[Atom, ...]
    path: tuple[Atom, ...] = ()
    span: Span = UNKNOWN
    site: int = -1


@dataclass(frozen=True, slots=True)
class Store:
    """`array[index](path) = value`."""

    array: Var
    index: tuple[Atom, ...]
    value: Atom
    path: tuple[Atom, ...] = ()
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Atomic:
    """An atomic update of an element (or component). `dst` receives the value before it.

    `compare`: of `cas` alone, which stores `value` where the element equals it.
    """

    dst: Var | None
    kind: AtomicKind
    array: Var
    index: tuple[Atom, ...]
    value: Atom
    path: tuple[Atom, ...] = ()
    span: Span = UNKNOWN
    site: int = -1
    compare: Atom | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """Tells the host something, which it prints after the launch.

    text: the pieces before, between and after the values `args`; formats: how each value
    is shown: "" as `print` does, else a format of C ("%d") or of Python (":.3f").
    kind: an `expect` says that a test failed; an `assert` also ends the launch.
    thread: for tests, the linear index of the thread. Adjoint code has no messages.
    """

    kind: MessageKind
    text: tuple[str, ...]
    formats: tuple[str, ...]
    args: tuple[Atom, ...]
    thread: Atom | None = None
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Call:
    """`dsts = func(args)`: a user function with any number of results."""

    dsts: tuple[Var, ...]
    func: Function
    args: tuple[Atom, ...]
    span: Span = UNKNOWN
    site: int = -1


@dataclass(frozen=True, slots=True)
class If:
    """Runs one of two blocks."""

    cond: Atom
    then: Block
    orelse: Block = ()
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class For:
    """Counts the temporary `var` from start (inclusive) to stop (exclusive).

    All three bounds are integer atoms of var's type, read once at entry. A step of 0
    runs no iteration. `var` may not be assigned in the body.
    """

    var: Var
    start: Atom
    stop: Atom
    step: Atom
    body: Block
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class While:
    """Runs `test`, leaves if `cond` is false, runs `body`, and starts again.

    `test` holds only Let, Set, Load, Call and structured statements without stores.
    `body` may not use temporaries that `test` defines.
    """

    test: Block
    cond: Atom
    body: Block
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Break:
    """Leaves the innermost loop."""

    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Continue:
    """Goes on with the innermost loop's next iteration."""

    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Return:
    """Leaves the function. `values` match `Function.results`; a kernel returns ()."""

    values: tuple[Atom, ...] = ()
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Push:
    """Saves a value on the thread's stack. Adjoint code only; pairs with the Pops of `stack`."""

    stack: int
    value: Atom
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Pop:
    """Takes back the last value pushed by this thread. `dst` may be mutable."""

    dst: Var
    stack: int
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class Reserve:
    """Abandons the thread unless `size` more bytes may be saved on its stack. Adjoint code only.

    It stands between the forward sweep and the first effect, so that a thread that is
    abandoned has left no trace and can be run again by code that needs less.
    """

    size: Atom
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class JournalWrite:
    """Appends a value to the launch's journal (forward code of a recorded launch)."""

    value: Atom
    site: int
    span: Span = UNKNOWN


@dataclass(frozen=True, slots=True)
class JournalRead:
    """`dst = journal[pos]`, `pos` in 8-byte slots from the start of the thread's entries.

    Each thread of a recorded launch leaves one frame of entries; adjoint threads, which
    run in reverse order, take the frames from the end.
    """

    dst: Var
    pos: Atom
    site: int
    span: Span = UNKNOWN


Stmt = (
    Let | Set | Load | Store | Atomic | Call | If | For | While | Break | Continue | Return
    | Push | Pop | Reserve | JournalWrite | JournalRead | Message
)  # fmt: skip
Block = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Native:
    """The C++ text of a native function, which takes the place of its body.

    It names the function's parameters as they are, and returns its result. reads, writes:
    array parameters whose elements it may read and replace; updates: those that it only
    adds to and the like. inputs: of an adjoint, the parameters whose adjoints `adj_<name>`
    it adds to and which are its results, in order. absent: array parameters that stand for
    gradients which are not there: what is added to them is lost, and they read as zero.
    """

    text: str
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    updates: frozenset[str] = frozenset()
    inputs: tuple[str, ...] | None = None
    absent: frozenset[str] = frozenset()
    # Elements outside of an array read as NaN and lose what is written (see `engine.ad.guard`).
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class UnassignedRead:
    """A read that some path reaches before any assignment to the variable, which is zero then.

    name: as the user wrote it. variables: names of the mutable variables behind it.
    """

    name: str
    variables: tuple[str, ...]
    span: Span


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
    # Names of array parameters that hold gradients. A kernel that has them is an adjoint:
    # its threads run in the reverse of their forward order, the last one first.
    adjoints: frozenset[str] = field(default=frozenset())
    # What the user's parameters and results were before structs and the like were taken
    # apart; empty where none was. Passes hand these on and never look at them.
    arguments: tuple[Argument, ...] = ()
    returns: tuple[Any, ...] = ()
    # What its author is warned of. Of the function as lowered; passes need not keep it.
    unassigned: tuple[UnassignedRead, ...] = ()

    def __str__(self) -> str:
        from engine.ir.printer import to_text

        return to_text(self)


def blocks_of(s: Stmt) -> tuple[Block, ...]:
    """The nested blocks of a statement, in source order."""
    if isinstance(s, If):
        return (s.then, s.orelse)
    if isinstance(s, For):
        return (s.body,)
    if isinstance(s, While):
        return (s.test, s.body)
    return ()


def walk(block: Block) -> Iterator[Stmt]:
    """Every statement of a block, outer before inner."""
    for s in block:
        yield s
        for inner in blocks_of(s):
            yield from walk(inner)


def defs_of(s: Stmt) -> tuple[Var, ...]:
    """Variables that the statement itself (not its nested blocks) writes."""
    if isinstance(s, Call):
        return s.dsts
    if isinstance(s, For):
        return (s.var,)
    if isinstance(s, (Let, Set, Load, Pop, JournalRead)):
        return (s.dst,)
    if isinstance(s, Atomic) and s.dst is not None:
        return (s.dst,)
    return ()


def uses_of(s: Stmt) -> tuple[Atom, ...]:
    """Atoms that the statement itself (not its nested blocks) reads, arrays included."""
    if isinstance(s, (Let, Call)):
        return s.args
    if isinstance(s, (Set, Push, JournalWrite)):
        return (s.value,)
    if isinstance(s, Load):
        return (s.array, *s.index, *s.path)
    if isinstance(s, (Store, Atomic)):
        compare = s.compare if isinstance(s, Atomic) else None
        return (s.array, *s.index, *s.path, s.value, *(() if compare is None else (compare,)))
    if isinstance(s, Message):
        return s.args if s.thread is None else (*s.args, s.thread)
    if isinstance(s, (If, While)):
        return (s.cond,)
    if isinstance(s, For):
        return (s.start, s.stop, s.step)
    if isinstance(s, Return):
        return s.values
    if isinstance(s, Reserve):
        return (s.size,)
    if isinstance(s, JournalRead):
        return (s.pos,)
    return ()


def set_in(block: Block) -> dict[Var, None]:
    """Mutable variables changed anywhere in a block, in order of first change."""
    out: dict[Var, None] = {}
    for s in walk(block):
        if isinstance(s, (Set, Pop)) and s.dst.mutable:
            out[s.dst] = None
    return out


def writes_memory(fn: Function) -> bool:
    """True where a function, or one that it calls, changes an array or gives a message."""
    if fn.native is not None:
        return bool(fn.native.writes | fn.native.updates)
    return any(
        isinstance(s, (Store, Atomic, Message)) or (isinstance(s, Call) and writes_memory(s.func))
        for s in walk(fn.body)
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
