"""The reference semantics of the IR: a NumPy interpreter, thread by thread.

It separates a wrong pass from wrong code generation, checks every index, and can
watch every value. Operations mean what `Op.numpy` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from engine.diagnostics import UNKNOWN, Span
from engine.ir import nodes as n
from engine.ir.messages import Listener
from engine.ir.ops import OPS
from engine.lang.types import ArrayType, ScalarType, Type, ValueType, scalar_of, shape_of

SLOT = 8  # bytes of a journal slot

# trace(statement, operand values, result, thread): called after each Let and Load.
# The operands of a Load are its index and its component path.
Trace = Callable[[n.Let | n.Load, Sequence[Any], Any, int], None]


class InterpError(Exception):
    """The program did something that has no meaning, such as reading outside an array.

    thread: linear index. index, shape: of the access, where it was one.
    """

    def __init__(
        self,
        problem: str,
        span: Span = UNKNOWN,
        thread: int = -1,
        index: tuple[int, ...] = (),
        shape: tuple[int, ...] = (),
    ) -> None:
        self.problem = problem
        self.span = span
        self.thread = thread
        self.index = index
        self.shape = shape
        super().__init__(f"{problem} (thread {thread}, {span})")


class Journal:
    """What a recorded launch wrote, for its adjoint to read: values in 8-byte slots.

    A value takes the slots that its bytes fill; it stands in the first of them.
    `frames` are the places where each thread's entries begin, in the order in which the
    threads ran; adjoint threads take them from the end. `pos` is the present one's.
    """

    def __init__(self) -> None:
        self.slots: list[Any] = []
        self.frames: list[int] = []
        self.pos = 0

    def write(self, value: Any, size: int) -> None:
        self.slots += [value] + [None] * (-(-size // SLOT) - 1)

    def read(self, offset: int) -> Any:
        """The value `offset` slots after `pos`; None where there is none."""
        at = self.pos + offset
        return self.slots[at] if 0 <= at < len(self.slots) else None


def run(
    fn: n.Function,
    args: Sequence[Any],
    dim: int | Sequence[int],
    *,
    threads: Iterable[int] | None = None,
    journal: Journal | None = None,
    trace: Trace | None = None,
    max_steps: int | None = None,
    messages: Listener | None = None,
) -> Journal:
    """Runs a kernel over a grid of `dim`. Returns the journal (the one passed in, if any).

    args: in parameter order; for arrays, NumPy arrays of shape + component shape, changed
    in place; numbers and component sequences for the rest. threads: linear indices to
    run, in this order; by default all, an adjoint's from the last to the first. max_steps:
    statements that a thread may run. messages: called with each message.
    Raises InterpError, and TypeError for arguments that do not fit.
    """
    grid = (dim,) if isinstance(dim, int) else tuple(dim)
    values = _arguments(fn, args)
    journal = Journal() if journal is None else journal
    count = int(np.prod(grid, dtype=np.int64))
    constants: dict[int, tuple[n.Const, Any]] = {}
    order = reversed(range(count)) if fn.adjoints else range(count)
    writes = any(isinstance(s, n.JournalWrite) for s in n.walk(fn.body))
    frames = iter(reversed(journal.frames))
    with np.errstate(all="ignore"):
        for k in order if threads is None else threads:
            if writes:
                journal.frames.append(len(journal.slots))
            else:
                journal.pos = next(frames, len(journal.slots))
            thread = _Thread(int(k), grid, journal, trace, max_steps, constants, messages)
            thread.call(fn, values)
            if thread.stack:
                raise InterpError(f"{len(thread.stack)} pushed values are left", fn.span, int(k))
    return journal


def evaluate(fn: n.Function, args: Sequence[Any], trace: Trace | None = None) -> tuple[Any, ...]:
    """The results of a function, as NumPy values, for a single thread."""
    with np.errstate(all="ignore"):
        return _Thread(0, (1,), Journal(), trace, None, {}).call(fn, _arguments(fn, args))


def _arguments(fn: n.Function, args: Sequence[Any]) -> list[Any]:
    if len(args) != len(fn.params):
        raise TypeError(f"{fn.name} takes {len(fn.params)} arguments, got {len(args)}")
    return [_argument(p, a) for p, a in zip(fn.params, args, strict=True)]


def _argument(p: n.Var, value: Any) -> Any:
    if not isinstance(p.type, ArrayType):
        return typed(value, p.type)
    inner = shape_of(p.type.element)
    dtype = scalar_of(p.type).numpy
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        raise TypeError(f"argument {p.name} is not a NumPy array of {dtype}")
    if value.ndim != p.type.ndim + len(inner) or value.shape[p.type.ndim :] != inner:
        raise TypeError(f"argument {p.name} has shape {value.shape}, not that of {p.type}")
    return value


def typed(value: Any, t: ValueType) -> Any:
    """A value as NumPy holds it: a scalar of the type's dtype, or an array of components."""
    dtype = scalar_of(t).numpy
    if isinstance(t, ScalarType):
        return value if type(value) is dtype.type else dtype.type(value)
    out = np.asarray(value, dtype)
    if out.shape != shape_of(t):
        raise TypeError(f"a {t} cannot have shape {out.shape}")
    return out


def zero(t: Type) -> Any:
    assert not isinstance(t, ArrayType)
    return np.zeros(shape_of(t), scalar_of(t).numpy)[()]


# Atomic updates as operations; the others store.
_UPDATES = {"add": "add", "sub": "sub", "min": "min", "max": "max",
            "and": "bitand", "or": "bitor", "xor": "bitxor"}  # fmt: skip
_BREAK = "break"
_CONTINUE = "continue"
# How a block ended: fell through, a jump, or the values of a return.
_End = str | tuple[Any, ...] | None


class _Thread:
    """One thread of a launch. A frame maps the names of a function's variables to values."""

    def __init__(
        self,
        index: int,
        grid: tuple[int, ...],
        journal: Journal,
        trace: Trace | None,
        max_steps: int | None,
        constants: dict[int, tuple[n.Const, Any]],
        messages: Listener | None = None,
    ) -> None:
        self.index = index
        self.coordinates = np.unravel_index(index, grid) if index < np.prod(grid) else (index,)
        self.journal = journal
        self.trace = trace
        self.left = max_steps
        self.constants = constants
        self.messages = messages
        self.stack: list[tuple[int, Any]] = []
        self.frame: dict[str, Any] = {}

    def call(self, fn: n.Function, args: Sequence[Any]) -> tuple[Any, ...]:
        if fn.native is not None or fn.derivative_of is not None:
            raise self.error(f"{fn.name} is no code that can be interpreted", fn.span)
        outer = self.frame
        self.frame = {p.name: a for p, a in zip(fn.params, args, strict=True)}
        end = self.block(fn.body)
        self.frame = outer
        if isinstance(end, tuple):
            return end
        if fn.results:
            raise self.error(f"{fn.name} ended without returning a value", fn.span)
        return ()

    def error(self, problem: str, span: Span, *access: tuple[int, ...]) -> InterpError:
        return InterpError(problem, span, self.index, *access)

    def value(self, a: n.Atom, span: Span) -> Any:
        if isinstance(a, n.Const):
            # Keyed by identity (the constant is kept, so that it stays unique): fast.
            known = self.constants.get(id(a))
            if known is None:
                known = self.constants[id(a)] = (a, typed(a.value, a.type))
            return known[1]
        if a.name not in self.frame:
            if not a.mutable:
                raise self.error(f"{a} is read before it is defined", span)
            self.frame[a.name] = zero(a.type)
        return self.frame[a.name]

    def values(self, atoms: Sequence[n.Atom], span: Span) -> list[Any]:
        frame = self.frame  # most are variables with a value: a call for each takes as long again
        return [
            frame[a.name] if a.__class__ is n.Var and a.name in frame else self.value(a, span)
            for a in atoms
        ]

    def block(self, block: n.Block) -> _End:
        for s in block:
            if self.left is not None:
                if self.left <= 0:
                    raise self.error("the step limit is reached", s.span)
                self.left -= 1
            end: _End = getattr(self, _STATEMENTS[s.__class__])(s)
            if end is not None:
                return end
        return None

    def set(self, s: n.Set) -> None:
        self.frame[s.dst.name] = self.value(s.value, s.span)

    def load(self, s: n.Load) -> None:
        array, at = self.place(s)
        result = array[at].copy()
        self.frame[s.dst.name] = result
        if self.trace is not None:
            self.trace(s, self.values((*s.index, *s.path), s.span), result, self.index)

    def store(self, s: n.Store) -> None:
        array, at = self.place(s)
        array[at] = self.value(s.value, s.span)

    def branch(self, s: n.If) -> _End:
        return self.block(s.then if self.value(s.cond, s.span) else s.orelse)

    def end_loop(self, s: n.Break) -> _End:
        return _BREAK

    def next_turn(self, s: n.Continue) -> _End:
        return _CONTINUE

    def end_call(self, s: n.Return) -> _End:
        return tuple(self.values(s.values, s.span))

    def called(self, s: n.Call) -> None:
        got = self.call(s.func, self.values(s.args, s.span))
        self.frame.update((d.name, v) for d, v in zip(s.dsts, got, strict=False))

    def let(self, s: n.Let) -> None:
        operands = self.values(s.args, s.span)
        result: Any
        if s.op == "tid":
            dim = int(operands[0])
            result = np.int32(self.coordinates[dim] if dim < len(self.coordinates) else 0)
        elif s.op == "thread":
            result = np.int32(self.index)
        else:
            op = OPS[s.op]
            try:
                result = op.numpy(s.dst.type, *operands) if op.explicit else op.numpy(*operands)
            except IndexError as e:
                raise self.error(str(e), s.span) from None
        kind = s.dst.type
        if kind.__class__ is ScalarType:
            dtype = kind.numpy.type
            result = result if result.__class__ is dtype else dtype(result)
        elif not isinstance(kind, ArrayType):
            result = typed(result, kind)
        self.frame[s.dst.name] = result
        if self.trace is not None:
            self.trace(s, operands, result, self.index)

    def place(self, s: n.Load | n.Store | n.Atomic) -> tuple[Any, tuple[int, ...]]:
        """The array of an access and the checked index into it, components last."""
        array = self.value(s.array, s.span)
        at = tuple(int(i) for i in self.values((*s.index, *s.path), s.span))
        shape = array.shape
        if any(not 0 <= i < size for i, size in zip(at, shape, strict=False)):
            text = f"index {at} is outside {s.array} of shape {shape[: len(at)]}"
            raise self.error(text, s.span, at, shape)
        return array, at

    def atomic(self, s: n.Atomic) -> None:
        array, at = self.place(s)
        old = array[at].copy()
        value = self.value(s.value, s.span)
        if s.kind in _UPDATES:
            operands = (old, value)
            if s.kind in ("min", "max"):  # of equal values, the one that is there stays
                operands = (value, old)
            array[at] = OPS[_UPDATES[s.kind]].numpy(*operands)
        elif s.compare is None or old == self.value(s.compare, s.span):
            array[at] = value
        if s.dst is not None:
            self.frame[s.dst.name] = old

    def for_loop(self, s: n.For) -> _End:
        start, stop, step = (int(v) for v in self.values((s.start, s.stop, s.step), s.span))
        number = scalar_of(s.var.type).numpy.type
        for k in range(start, stop, step) if step else ():
            self.frame[s.var.name] = number(k)
            end = self.block(s.body)
            if end == _BREAK:
                break
            if isinstance(end, tuple):
                return end
        return None

    def while_loop(self, s: n.While) -> _End:
        while True:
            if self.left is not None:
                self.left -= 1  # an empty loop must meet the limit too
                if self.left < 0:
                    raise self.error("the step limit is reached", s.span)
            self.block(s.test)
            if not self.value(s.cond, s.span):
                return None
            end = self.block(s.body)
            if end == _BREAK:
                return None
            if isinstance(end, tuple):
                return end

    def message(self, s: n.Message) -> None:
        if self.messages is not None:
            thread = None if s.thread is None else int(self.value(s.thread, s.span))
            self.messages(s, thread, self.values(s.args, s.span))
        if s.kind == "assert":
            raise self.error("an assertion failed", s.span)

    # ---- the stack and the journal of adjoint code

    def push(self, s: n.Push) -> None:
        self.stack.append((s.stack, self.value(s.value, s.span)))

    def pop(self, s: n.Pop) -> None:
        stack, value = self.stack.pop() if self.stack else (-1, None)
        if stack != s.stack:
            raise self.error(f"pop of stack {s.stack} does not match its push", s.span)
        self.frame[s.dst.name] = value

    def reserve(self, s: n.Reserve) -> None:
        self.value(s.size, s.span)  # there is no limit here

    def journal_write(self, s: n.JournalWrite) -> None:
        assert not isinstance(s.value.type, ArrayType)
        self.journal.write(self.value(s.value, s.span), s.value.type.size)

    def journal_read(self, s: n.JournalRead) -> None:
        value = self.journal.read(int(self.value(s.pos, s.span)))
        if value is None or value.dtype != scalar_of(s.dst.type).numpy:
            raise self.error(f"the journal has no {s.dst.type} here", s.span)
        self.frame[s.dst.name] = value


# The methods of a thread that run statements.
_STATEMENTS: dict[type[n.Stmt], str] = {
    n.Let: "let", n.Set: "set", n.Load: "load", n.Store: "store", n.Atomic: "atomic",
    n.Message: "message", n.Call: "called", n.If: "branch", n.For: "for_loop",
    n.While: "while_loop", n.Break: "end_loop", n.Continue: "next_turn", n.Return: "end_call",
    n.Push: "push", n.Pop: "pop", n.Reserve: "reserve", n.JournalWrite: "journal_write",
    n.JournalRead: "journal_read",
}  # fmt: skip
