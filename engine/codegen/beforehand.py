"""Functions that a block of threads evaluates in advance, as vectors.

Sines, exponentials and their like of what threads only read take most of the time of many kernels.
Where threads have memory of their own (a tape's journal), compilers make no vector code of them;
and a sine is a call, since there are arguments that need one. So what these functions depend on is
computed for a block of threads first, with their results beside each other, and then each thread
runs as it would, with them:

    template <bool near, ...> void before(..., k0, g0, ..., far)
    template <...> void after(..., k0, g0, ...)

`far` is set where an argument is too far from zero for the fast way; the block is done again then.
It is the same arithmetic, so that bits do not depend on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from engine.classes import dataclass
from engine.codegen.cstyle import Emitter
from engine.codegen.facts import Facts
from engine.codegen.outline import weight_of
from engine.codegen.prefetches import Asking
from engine.codegen.spelling import array_type, index_name, local, template
from engine.ir import nodes as n
from engine.lang.types import ArrayType, ScalarType

BLOCK = 64  # threads
APPLIED = True  # tests change it
MOST = 240  # operations of a kernel that is worth the compiler's time
_HELD = 16  # results of a thread
_FAR = ("sin", "cos")  # of which there is a fast way for most arguments
_CALLS = (*_FAR, "exp", "log", "log2", "log10", "pow", "tanh", "atan", "atan2")
# What is worth it where compilers make no vectors of the rest.
_SLOW = ("sqrt", "div")
_PASSED = (n.Let, n.Set, n.Load, n.Store, n.Atomic, n.JournalWrite, n.JournalRead, n.Push, n.Pop,
           n.Reserve, n.If)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Beforehand:
    """held: statements whose results are computed beforehand. needed: what they depend on."""

    held: tuple[n.Let, ...]
    needed: tuple[n.Stmt, ...]

    def arguments(self) -> list[str]:
        """The results of a thread, in a block."""
        return [f"g{k}[j]" for k in range(len(self.held))]

    def memory(self, e: Emitter) -> list[str]:
        """Declares the results of a block."""
        return [f"alignas(64) {e.type(s.dst.type)} g{k}[{BLOCK}];"
                for k, s in enumerate(self.held)]  # fmt: skip


def beforehand(e: Emitter, guarded: bool) -> Beforehand | None:
    """What a kernel's threads may evaluate so; None for nothing.

    guarded: whether only threads run that pass the kernel's guards.
    """
    fn, facts = e.fn, e.facts[id(e.fn)]
    if not APPLIED or not facts.axes or fn.watch or weight_of(fn) > MOST:
        return None
    called = n.callees(fn)
    if any(f.native is not None for f in called):
        return None
    if any(isinstance(s, n.Message) for f in (fn, *called) for s in n.walk(f.body)):
        return None  # they are counted
    known: dict[n.Var, n.Stmt] = {}
    found: list[n.Let] = []
    guesses: set[n.Var] = set()  # what depends on sines, which the fast way may have wrong
    holds = {} if e.guards is None else e.guards.holds
    for s in _surely(fn.body, holds if guarded else {}):
        if isinstance(s, n.Let) and s.dst not in holds and _is_pure(s, known, guesses, e):
            known[s.dst] = s
            if s.op in _FAR or any(a in guesses for a in s.args):
                guesses.add(s.dst)
            found += [s] if _is_one(s) else []
        elif isinstance(s, n.Load) and _is_read(s, known, facts):
            known[s.dst] = s
    wanted = (*_CALLS, *_SLOW) if facts.context or _one_by_one(fn) else _FAR
    held = tuple(s for s in found if s.op in wanted)
    if not any(s.op in _CALLS for s in held) or len(held) > _HELD:
        return None
    return Beforehand(held, _needed(held, known, fn))


def _one_by_one(fn: n.Function) -> bool:
    """Whether threads wait for what others leave: no compiler makes vectors of these."""
    atomics = [s for s in n.walk(fn.body) if isinstance(s, n.Atomic)]
    return any(s.dst is not None or s.kind not in ("add", "sub") for s in atomics)


def _surely(block: n.Block, holds: Mapping[n.Var, bool]) -> Iterator[n.Stmt]:
    """The statements that each thread comes to. holds: conditions that are known."""
    for s in block:
        if isinstance(s, n.If) and s.cond in holds:
            taken = s.then if holds[s.cond] else s.orelse  # type: ignore[index]
            yield from _surely(taken, holds)
            if not all(map(_goes_on, taken)):
                return
        elif not _goes_on(s):
            return  # threads may end here
        else:
            yield s


def _goes_on(s: n.Stmt) -> bool:
    """Whether a thread surely comes to what follows."""
    if not isinstance(s, _PASSED):
        return False
    return all(_goes_on(inner) for block in n.blocks_of(s) for inner in block)


def _is_one(s: n.Let) -> bool:
    """Whether its operands are real numbers as processors have them."""
    types = [s.dst.type, *(a.type for a in s.args)]
    return all(isinstance(t, ScalarType) and t.kind == "f" and t.bits >= 32 for t in types)


def _is_pure(
    s: n.Let, known: Mapping[n.Var, n.Stmt], guesses: Collection[n.Var], e: Emitter
) -> bool:
    """Whether it depends on what threads only read; integers of guesses would be wild indices."""
    if not (isinstance(s.dst.type, ScalarType) and s.dst.type.kind == "f"):
        if any(a in guesses for a in s.args):
            return False
    return not s.dst.mutable and all(
        isinstance(a, n.Const) or a in known or a in e.fn.params for a in s.args
    )


def _is_read(s: n.Load, known: Mapping[n.Var, n.Stmt], facts: Facts) -> bool:
    """Whether a thread loads what no thread changes."""
    return (
        s.array.name not in facts.written
        and not s.dst.mutable
        and all(isinstance(a, n.Const) or a in known for a in (*s.index, *s.path))
    )


def _needed(
    held: tuple[n.Let, ...], known: Mapping[n.Var, n.Stmt], fn: n.Function
) -> tuple[n.Stmt, ...]:
    """What they depend on and they themselves, in the order of the kernel."""
    todo: list[n.Var] = [s.dst for s in held]
    found: set[n.Var] = set()
    while todo:
        v = todo.pop()
        s = known.get(v)
        if v in found or s is None:
            continue
        found.add(v)
        reads = s.args if isinstance(s, n.Let) else (*s.index, *s.path)  # type: ignore[attr-defined]
        todo += [a for a in reads if isinstance(a, n.Var)]
    return tuple(s for v, s in known.items() if v in found)


class _Part(Asking):
    """what: the numbers of the results, by the identity of statements."""

    def __init__(self, e: Emitter, fn: n.Function, what: Beforehand) -> None:
        super().__init__(e, fn)
        self.what = {id(s): k for k, s in enumerate(what.held)}


class _Begin(_Part):
    """Writes what is computed beforehand."""

    def operation(self, s: n.Let) -> str:
        text = super().operation(s)
        if id(s) in self.what and s.op in _FAR:
            (arg,) = s.args
            return f"eng::vm::{s.op}_ahead<near>({self.atom(arg)}, far)"
        return text

    def statement(self, s: n.Stmt) -> None:
        super().statement(s)
        if isinstance(s, n.Let) and id(s) in self.what:
            self.line(f"g{self.what[id(s)]} = {self.name(s.dst)};")


class _Rest(_Part):
    """Writes a thread, which has the results."""

    def operation(self, s: n.Let) -> str:
        return f"g{self.what[id(s)]}" if id(s) in self.what else super().operation(s)


def functions(e: Emitter, what: Beforehand, within: Sequence[str]) -> list[str]:
    """The two functions. within: further parameters of a thread."""
    fn, facts = e.fn, e.facts[id(e.fn)]
    arrays = [f"class {array_type(p)}" for p in fn.params if isinstance(p.type, ArrayType)]
    params = [f"{e.declared(p)} {local(p)}" for p in fn.params]
    tids = [f"int64_t {index_name(p)}" for p in sorted(facts.tids)]
    types = [e.type(s.dst.type) for s in what.held]
    made = [f"{t}& g{k}" for k, t in enumerate(types)]
    given = [f"const {t} g{k}" for k, t in enumerate(types)]
    first = n.Function("before", fn.params, (), what.needed)
    head = f"ENG_INLINE void before({', '.join([*params, *tids, *made, 'int32_t& far'])}) {{"
    context = [f"{e.dialect.context} ctx"] if facts.context else []
    rest = _Rest(e, fn, what)
    lines = rest.write()
    return [
        f"template <{', '.join(['bool near', *arrays])}>", head, *_Begin(e, first, what).write(),
        "}",
        *rest.before, *template(fn.params),
        f"ENG_INLINE void after({', '.join([*context, *params, *within, *tids, *given])}) {{",
        *lines, "}",
    ]  # fmt: skip


def calls(e: Emitter, what: Beforehand, args: Sequence[str], within: Sequence[str]) -> list[str]:
    """The calls for thread j of a block: of `before`, fast and not, and of `after`."""
    facts = e.facts[id(e.fn)]
    tids = [index_name(p) for p in sorted(facts.tids)]
    context = ["ctx"] if facts.context else []
    given = what.arguments()
    first = ", ".join([*args, *tids, *given, "far"])
    return [
        f"before<true>({first});", f"before<false>({first});",
        f"after({', '.join([*context, *args, *within, *tids, *given])});",
    ]  # fmt: skip


def block(
    e: Emitter, what: Beforehand, x: str, begins: Sequence[str], rest: str, down: bool,
    ends: Sequence[str],
) -> list[str]:  # fmt: skip
    """The loop over whole blocks of a row, after which `at` is the first thread that is left.

    x: the coordinate. begins, rest: what is done for each thread. ends: what follows a block.
    """
    first = f"at - {BLOCK - 1}" if down else "at"
    each = f"{{ const int64_t {x} = {first} + j;"
    up, turn = f"int64_t j = 0; j < {BLOCK}; ++j", f"int64_t j = {BLOCK - 1}; j >= 0; --j"
    near, far = begins
    again = [f"if (far) for ({up}) {each} {far} }}"]
    body = [
        *what.memory(e), "int32_t far = 0;", f"for ({up}) {each} {near} }}",
        *(again if any(s.op in _FAR for s in what.held) else []),
        f"for ({turn if down else up}) {each} {rest} }}", *ends,
    ]  # fmt: skip
    head = (f"for (; at - {BLOCK} >= first; at -= {BLOCK}) {{" if down
            else f"for (; at + {BLOCK} <= stop; at += {BLOCK}) {{")  # fmt: skip
    return [f"int64_t at = {'stop' if down else 'first'};", head,
            *(f"    {line}" for line in body), "}", *ends]  # fmt: skip
