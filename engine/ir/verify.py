"""Verifies that a function is well formed. A failure is a fault of a pass, never of the user."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from engine import config
from engine.diagnostics import UNKNOWN, Span
from engine.ir import nodes as n
from engine.ir.ops import OPS
from engine.ir.printer import statement
from engine.lang.types import (
    BOOL,
    INT64,
    UINT64,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
    is_integer,
    scalar_of,
    shape_of,
)

_AXES = 4  # of a launch, at most


class VerifyError(Exception):
    """The IR breaks a rule. The text shows the statement, its neighbours and its source place.

    `problem` says what is wrong in one line; `span` is the statement's.
    """

    def __init__(self, problem: str, fn: n.Function, span: Span, shown: Sequence[str]) -> None:
        self.problem = problem
        self.span = span
        place = [] if span == UNKNOWN else [f"  --> {span}"]
        where = f"  in {'kernel' if fn.is_kernel else 'func'} {fn.name}"
        super().__init__("\n".join([problem, *place, where, *shown]))


class _Problem(Exception):
    """A broken rule, before its place is known."""


def verify(fn: n.Function) -> None:
    """Checks a function and the functions that it calls. Raises VerifyError.

    A temporary is used only where its definition has certainly run; in a `mirrored` function
    the definition only has to stand earlier in the text.
    """
    for f in (*n.callees(fn), fn):
        _Checker(f).function()


def checked(fn: n.Function) -> n.Function:
    """The function, verified if `config.verify_ir` says so: to be called on what a pass made."""
    if config.verify_ir:
        verify(fn)
    return fn


class _Checker:
    def __init__(self, fn: n.Function) -> None:
        self.fn = fn
        self.strict = not fn.mirrored
        self.names: dict[str, n.Var] = {}
        self.defined: dict[n.Var, None] = {}  # temporaries that a use may name here
        self.ever: set[n.Var] = set()  # temporaries defined anywhere so far
        self.stacks: dict[int, Type] = {}
        self.loops = 0

    def function(self) -> None:
        try:
            for p in self.fn.params:
                self.name(p)
                need(not p.mutable, f"parameter {p} is mutable")
                need(p not in self.ever, f"parameter {p} appears twice")
                self.ever.add(p)
                self.defined[p] = None
            need(not (self.fn.is_kernel and self.fn.results), "a kernel has results")
        except _Problem as e:
            raise VerifyError(str(e), self.fn, self.fn.span, ()) from None
        if self.fn.native is not None or self.fn.derivative_of is not None:
            return  # C++, or nothing yet
        self.block(self.fn.body)
        if self.fn.results and not _leaves(self.fn.body):
            raise VerifyError("the end is reached without a return", self.fn, self.fn.span, ())

    def block(self, block: n.Block) -> None:
        for i, s in enumerate(block):
            try:
                self.stmt(s)
            except _Problem as e:
                shown = _neighbours(block, i)
                raise VerifyError(str(e), self.fn, s.span, shown) from None

    def scope(self, block: n.Block) -> None:
        """A nested block: what it defines is not visible after it (if strict)."""
        outer = dict(self.defined)
        self.block(block)
        if self.strict:
            self.defined = outer

    # ---- statements

    def stmt(self, s: n.Stmt) -> None:
        for a in n.uses_of(s):
            if not (isinstance(s, n.While) and a == s.cond):  # read after `test`
                self.use(a)
        if isinstance(s, n.Let):
            self.let(s)
        elif isinstance(s, n.Set):
            need(s.dst.mutable, f"{s.dst} is a temporary, so Set may not change it")
            self.name(s.dst)
            same(s.dst.type, s.value.type, "the assigned value")
        elif isinstance(s, (n.Load, n.Store, n.Atomic)):
            self.memory(s)
        elif isinstance(s, n.Call):
            self.call(s)
        elif isinstance(s, (n.If, n.For, n.While)):
            self.structured(s)
        elif isinstance(s, (n.Break, n.Continue)):
            need(self.loops > 0, "break or continue stands outside a loop")
        elif isinstance(s, n.Return):
            results = self.fn.results
            need(len(s.values) == len(results), f"{len(results)} results expected")
            for a, t in zip(s.values, results, strict=True):
                same(t, a.type, "a returned value")
        elif isinstance(s, n.Push):
            same(self.stacks.setdefault(s.stack, s.value.type), s.value.type, f"stack {s.stack}")
        elif isinstance(s, n.Pop):
            same(self.stacks.setdefault(s.stack, s.dst.type), s.dst.type, f"stack {s.stack}")
            if s.dst.mutable:
                self.name(s.dst)
            else:
                self.define(s.dst)
        elif isinstance(s, n.Reserve):
            same(UINT64, s.size.type, "the number of bytes")
        elif isinstance(s, n.Message):
            need(len(s.pieces) == len(s.formats) + 1 == len(s.args) + 1, "text and values differ")
            need(all(not isinstance(a.type, ArrayType) for a in s.args), "a message has an array")
            need((s.thread is None) == (s.kind == "print"), "tests alone know their thread")
        elif isinstance(s, n.JournalRead):
            same(INT64, s.pos.type, "the journal position")
            self.define(s.dst)

    def structured(self, s: n.If | n.For | n.While) -> None:
        if isinstance(s, n.If):
            same(BOOL, s.cond.type, "the condition")
            self.scope(s.then)
            self.scope(s.orelse)
            return
        if isinstance(s, n.For):
            need(is_integer(s.var.type), f"loop variable {s.var} is not an integer")
            for a in (s.start, s.stop, s.step):
                same(s.var.type, a.type, "a bound of the loop")
            outer = dict(self.defined)
            self.define(s.var)
        else:
            # The test has run wherever the body or the end of the loop is reached.
            self.block(s.test)
            self.use(s.cond)
            same(BOOL, s.cond.type, "the condition")
            outer = dict(self.defined)
            writes = any(
                isinstance(x, (n.Store, n.Atomic, n.Message))
                or (isinstance(x, n.Call) and n.writes_memory(x.func))
                for x in n.walk(s.test)
            )
            need(not writes, "the test of a loop writes memory")
            need(not _jumps(s.test), "the test of a loop leaves it")
        self.loops += 1
        self.scope(s.body)
        self.loops -= 1
        if self.strict:
            self.defined = outer

    def let(self, s: n.Let) -> None:
        need(s.op in OPS, f"there is no operation {s.op!r}")
        types = [a.type for a in s.args]
        op = OPS[s.op]
        shown = f"{s.op}({', '.join(map(str, types))})"
        if op.explicit:
            fits = op.fits or partial(_explicit, s.op)
            need(fits(types, s.dst.type), f"{shown} does not give a {s.dst.type}")
        else:
            result = op.infer(types)
            need(result is not None, f"{shown} does not exist")
            need(result == s.dst.type, f"{shown} gives {result}, {s.dst} is {s.dst.type}")
        constants = {"tid": s.args, "shape": s.args[1:]}.get(s.op, ())
        need(all(isinstance(a, n.Const) for a in constants), f"{s.op} takes constants")
        if constants:
            _axis(s)
        self.define(s.dst)

    def memory(self, s: n.Load | n.Store | n.Atomic) -> None:
        t = s.array.type
        need(isinstance(t, ArrayType), f"{s.array} is not an array")
        assert isinstance(t, ArrayType)
        need(len(s.index) == t.ndim, f"{len(s.index)} indices for {t.ndim} dimensions")
        for a in (*s.index, *s.path):
            need(is_integer(a.type), f"index {a} is not an integer")
        rank = len(shape_of(t.element))
        need(len(s.path) in (0, rank), f"{len(s.path)} component indices for a {t.element}")
        part: ValueType = scalar_of(t.element) if s.path else t.element
        if isinstance(s, n.Load):
            same(part, s.dst.type, "the loaded value")
            self.define(s.dst)
            return
        same(part, s.value.type, "the stored value")
        if isinstance(s, n.Atomic):
            need(scalar_of(part).kind != "b", "atomics do not work on booleans")
            bits = s.kind in ("and", "or", "xor")
            need(not bits or scalar_of(part).kind in "iu", f"atomic_{s.kind} takes integers")
            need((s.compare is not None) == (s.kind == "cas"), "cas alone compares")
            if s.compare is not None:
                same(part, s.compare.type, "the compared value")
                need(isinstance(part, ScalarType), "cas takes scalars")
            if s.dst is not None:
                same(part, s.dst.type, "the old value")
                self.define(s.dst)

    def call(self, s: n.Call) -> None:
        f = s.func
        need(not f.is_kernel, f"{f.name} is a kernel")
        need(len(s.args) == len(f.params), f"{f.name} takes {len(f.params)} arguments")
        for a, p in zip(s.args, f.params, strict=True):
            same(p.type, a.type, f"argument {p.name} of {f.name}")
        need(len(s.dsts) in (0, len(f.results)), f"{f.name} has {len(f.results)} results")
        for d, t in zip(s.dsts, f.results, strict=False):
            same(t, d.type, f"a result of {f.name}")
            self.define(d)

    # ---- variables and constants

    def name(self, v: n.Var) -> None:
        known = self.names.setdefault(v.name, v)
        need(known == v, f"the name {v} stands for two variables ({known.type} and {v.type})")

    def define(self, v: n.Var) -> None:
        self.name(v)
        need(not v.mutable, f"{v} is mutable: only Set and Pop may write it")
        need(v not in self.ever, f"temporary {v} is defined twice")
        self.ever.add(v)
        self.defined[v] = None

    def use(self, a: n.Atom) -> None:
        if isinstance(a, n.Const):
            need(_fits(a.value, a.type), f"constant {a} does not fit its type")
            return
        self.name(a)
        if not a.mutable and a not in self.defined:
            late = "used where its definition may not have run" if a in self.ever else "not defined"
            raise _Problem(f"temporary {a} is {late}")


def need(holds: bool, problem: str) -> None:
    if not holds:
        raise _Problem(problem)


def same(expected: Type, got: Type, what: str) -> None:
    need(expected == got, f"{what} is {got}, expected {expected}")


def _axis(s: n.Let) -> None:
    """Whether the axis that `tid` or `shape` takes is one of those that there are."""
    axis, *count = [a.value for a in s.args if isinstance(a, n.Const)]
    axes = _AXES
    if s.op == "tid":
        need(count[0] in range(1, _AXES + 1), f"tid gives 1 to {_AXES} coordinates, not {count[0]}")
        axes = int(count[0])  # type: ignore[arg-type]
    elif isinstance(t := s.args[0].type, ArrayType):
        axes = t.ndim
    need(axis in range(axes), f"{s.op} has no axis {axis}: there are {axes}")


def _explicit(op: str, types: Sequence[Type], result: Type) -> bool:
    """Whether an operation whose result type stands in the IR may have that type."""
    if isinstance(result, ArrayType):
        return False
    shape = shape_of(result)
    if op == "cast":
        t = types[0] if len(types) == 1 else None
        return t is not None and not isinstance(t, ArrayType) and shape_of(t) == shape
    if op == "identity":
        return not types and isinstance(result, MatrixType) and result.rows == result.cols
    size = 1
    for k in shape:
        size *= k
    count = size if op == "construct" else 1
    composite = isinstance(result, (VectorType, MatrixType))
    return composite and list(types) == [scalar_of(result)] * count


def _fits(value: object, t: ValueType) -> bool:
    """Whether a literal has the form, and the range, of its type."""
    if not isinstance(t, ScalarType):
        shape = shape_of(t)
        inner: ValueType = t.scalar if len(shape) == 1 else VectorType(t.scalar, shape[1])
        whole = isinstance(value, tuple) and len(value) == shape[0]
        return whole and all(_fits(v, inner) for v in value)  # type: ignore[attr-defined]
    if t.kind == "b":
        return isinstance(value, bool)
    if t.kind == "f":
        return isinstance(value, float)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    low = -(1 << (t.bits - 1)) if t.kind == "i" else 0
    return low <= value < low + (1 << t.bits)


def _leaves(block: n.Block) -> bool:
    """Whether control never reaches the end of a block."""
    for s in block:
        if isinstance(s, n.Return):
            return True
        if isinstance(s, n.If) and _leaves(s.then) and _leaves(s.orelse):
            return True
        if isinstance(s, n.While) and isinstance(s.cond, n.Const) and s.cond.value is True:
            if not _breaks(s.body):
                return True
    return False


def _breaks(block: n.Block) -> bool:
    """Whether a block leaves the loop that it is the body of by `break`."""
    return any(
        isinstance(s, n.Break) or (isinstance(s, n.If) and (_breaks(s.then) or _breaks(s.orelse)))
        for s in block
    )


def _jumps(block: n.Block) -> bool:
    """Whether a block can leave other than by its end."""
    if any(isinstance(s, n.Return) for s in n.walk(block)):
        return True
    return any(
        isinstance(s, (n.Break, n.Continue))
        or (isinstance(s, n.If) and (_jumps(s.then) or _jumps(s.orelse)))
        for s in block
    )


def _neighbours(block: n.Block, at: int, around: int = 2) -> list[str]:
    """The statement with those before and after it, nested blocks left out."""
    out = []
    for i in range(max(0, at - around), min(len(block), at + around + 1)):
        out.append(f"  {'>' if i == at else ' '} {statement(block[i])}")
    return out
