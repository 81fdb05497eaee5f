"""Facts about a function that the emitter needs before it writes the signature."""

from __future__ import annotations

from engine.classes import dataclass
from engine.codegen.layout import arg_offsets
from engine.ir import nodes as n
from engine.lang.types import ArrayType

LINEAR = -1  # the thread's linear index (`thread`); 0 to 3 are coordinates (`tid`)

# What needs the context of the thread, and may end it with an error.
SAVES = (n.Push, n.Pop, n.Reserve, n.JournalWrite, n.JournalRead, n.Message)


@dataclass(frozen=True)
class Facts:
    """Of a function with all that it calls.

    context: touches the thread's stack or journal, gives messages, or is watched. writes,
    reads: the journal. tids: which parts of the thread's index it reads. axes: how many
    coordinates it asks for; 0 if none. touched, written: names of array parameters whose elements
    it may read or change, or may change.
    """

    context: bool
    writes: bool
    reads: bool
    tids: frozenset[int]
    axes: int
    touched: frozenset[str]
    written: frozenset[str]


SHORT = 1024  # turns of a loop that the reverse sweep does not measure: see `engine.ad.checkpoints`


def sure_pushes(fn: n.Function) -> frozenset[int]:
    """Pushes (by identity) that follow effects, so that no limit may end the thread there.

    They stand in loops in loops, which the reverse sweep runs again. What long ones save was
    reserved before the first effect, short ones save little.
    """
    reserved = any(isinstance(s, n.Reserve) for s in n.walk(fn.body))
    out: set[int] = set()

    def look(block: n.Block, loops: int, short: bool) -> None:
        for s in block:
            if isinstance(s, n.Push) and loops > 1 and (reserved or short):
                out.add(id(s))
            inside = isinstance(s, (n.For, n.While))
            for b in n.blocks_of(s):
                look(b, loops + inside, is_short(s) if inside else short)

    look(fn.body, 0, False)
    return frozenset(out)


def is_short(s: n.Stmt) -> bool:
    """Whether a loop is known to have few turns."""
    if not isinstance(s, n.For):
        return False
    trips = constant_trips(s)
    if trips is not None:
        return trips <= SHORT
    return 1 << s.var.type.size * 8 <= SHORT  # type: ignore[union-attr]


def constant_trips(s: n.Stmt) -> int | None:
    """Turns of a loop whose bounds are constants; None of others."""
    if not isinstance(s, n.For):
        return None
    bounds = [a.value for a in (s.start, s.stop, s.step) if isinstance(a, n.Const)]
    if len(bounds) < 3 or not all(isinstance(b, int) for b in bounds) or bounds[2] == 0:
        return None
    return len(range(*bounds))  # type: ignore[arg-type]


def tid_part(s: n.Let) -> int:
    """Which part of the thread's index a `tid(dim, arity)` or `thread()` is."""
    return LINEAR if s.op == "thread" else _number(s.args[0])


def _number(a: n.Atom) -> int:
    assert isinstance(a, n.Const) and isinstance(a.value, int)
    return a.value


def facts_of(fn: n.Function) -> dict[int, Facts]:
    """Facts of `fn` and of everything that it calls, by the identity of the function."""
    out: dict[int, Facts] = {}
    for f in (*n.callees(fn), fn):
        # What is watched is noted there.
        context = bool(fn.watch) and f.native is None
        writes = reads = False
        tids: set[int] = set()
        axes = 0
        touched: set[str] = set()
        written: set[str] = set()
        for s in n.walk(f.body):
            if isinstance(s, SAVES):
                context = True
                writes |= isinstance(s, n.JournalWrite)
                reads |= isinstance(s, n.JournalRead)
            elif isinstance(s, n.Call):
                inner = out[id(s.func)]
                context |= inner.context
                tids |= inner.tids
                axes = max(axes, inner.axes)
                touched |= _passed(s, inner.touched)
                written |= _passed(s, inner.written)
            elif isinstance(s, (n.Load, n.Store, n.Atomic)):
                touched.add(s.array.name)
                if not isinstance(s, n.Load):
                    written.add(s.array.name)
            elif isinstance(s, n.Let) and s.op in ("tid", "thread"):
                tids.add(tid_part(s))
                if s.op == "tid":
                    axes = max(axes, _number(s.args[1]))
        if f.native is not None:  # its text may change all that it gets
            touched = written = {p.name for p in f.params if isinstance(p.type, ArrayType)}
        sets = frozenset(touched), frozenset(written)
        out[id(f)] = Facts(context, writes, reads, frozenset(tids), axes, *sets)
    return out


def _passed(s: n.Call, names: frozenset[str]) -> set[str]:
    """Arrays of a caller that are certain parameters in a call."""
    pairs = zip(s.func.params, s.args, strict=True)
    return {a.name for p, a in pairs if p.name in names and isinstance(a, n.Var)}


def touched_arrays(fn: n.Function, facts: Facts) -> list[tuple[n.Var, int]]:
    """The array parameters that a kernel touches, and where its arguments name them."""
    offsets = arg_offsets([p.type for p in fn.params])
    return [(p, at) for p, at in zip(fn.params, offsets, strict=False) if p.name in facts.touched]
