"""The loop over the threads of a launch on the CPU, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.classes import dataclass
from engine.codegen import beforehand
from engine.codegen.beforehand import Beforehand
from engine.codegen.cstyle import Emitter
from engine.codegen.facts import LINEAR, Facts
from engine.codegen.frames import frames_of
from engine.codegen.guards import Guards
from engine.codegen.spelling import flag, local
from engine.codegen.statements import Body
from engine.codegen.sums import Place, Sums
from engine.ir import nodes as n

if TYPE_CHECKING:
    from engine.codegen.streams import Streams


SOME = 64  # threads whose frames of the journal are made room for at once
MOST = 256  # bytes of such a frame


@dataclass(frozen=True)
class Loops:
    """What is known of a kernel's threads, of launches with arrays that share no memory.

    any_order: an adjoint's threads need not run from the last to the first. alone: arrays of
    which that holds only where different indices are different memory. sums: arrays that threads
    only add to, and to which places, more than one or those that several threads share. lanes: how
    many threads in a row have numbers of their own for these sums. loans: arrays that threads touch
    near their own coordinates alone: for each dimension an axis of the grid, -1 for none, and the
    least and the most that is added to the coordinate; of what is written, each thread has one
    element of its own.
    """

    any_order: bool = False
    alone: frozenset[str] = frozenset()
    sums: tuple[tuple[str, tuple[Place, ...]], ...] = ()
    lanes: int = 0
    loans: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...] = ()


def room_of(e: Emitter, known: Loops) -> int:
    """Bytes of the journal that a thread may write, where loops may see to them; 0 elsewhere."""
    facts = e.facts[id(e.fn)]
    if not (facts.writes and facts.axes) or e.fn.adjoints or e.fn.watch or known.sums:
        return 0
    frame = frames_of(e.fn).journal
    return frame + 8 if frame is not None and frame <= MOST else 0  # where it begins, in the end


def runs_down(e: Emitter, known: Loops) -> bool:
    """Whether the loop goes from the last thread to the first, as adjoints do that have to."""
    return bool(e.fn.adjoints) and (e.facts[id(e.fn)].context or not known.any_order)


def spans_of(e: Emitter, known: Loops) -> set[str]:
    """Over which threads sums run."""
    sums = Sums(e, known)
    return {sums.span(place) for some in sums.places.values() for place in some}


def loop(
    e: Emitter, known: Loops, scalar: bool = False, guarded: bool = False,
    what: Beforehand | None = None, far: Streams | None = None,
) -> list[str]:  # fmt: skip
    """The body of a function that runs threads; arguments have the names of parameters.

    scalar: it is not to be vectorised. guarded: it leaves out threads that do nothing, where it
    goes up. what: what blocks of threads evaluate beforehand. far: what goes out by lines.
    """
    facts = e.facts[id(e.fn)]
    adjoint, down = bool(e.fn.adjoints), runs_down(e, known)
    sums = Sums(e, known)
    out = []
    if facts.context:
        out.append("    eng::ctx_t ctx = eng::enter(L);")
    if e.fn.watch:
        out.append("    ctx.watch = watch;")
    out.append("    const int64_t begin = L->begin, end = L->end;")
    out += [f"    {line}" for line in sums.before()]
    if far is not None:
        out += [f"    {line}" for line in far.before()]
    streamed = frozenset[str]() if far is None else far.names()

    def argument(p: n.Var) -> str:
        if far is not None and p.name in streamed:
            return far.argument(p)
        return sums.argument(p) if p.name in sums.places else local(p)

    args = [argument(p) for p in e.fn.params]
    guards = e.guards if guarded and not down else None
    within = [] if e.guards is None else [flag(guards is not None)]
    numbered = facts.axes > 0 and LINEAR in facts.tids
    linear = f"const int64_t k = {_linear(facts, down)}; " if numbered else ""

    def around(thread: str) -> str:
        """What is done for a thread, which runs by a call."""
        call = " ".join([*sums.own(), thread, *sums.kept()])
        if e.fn.watch:
            call = f"ctx.thread = {_linear(facts, down)}; {call}"
        if scalar:
            call = f"ENG_SCALAR; {call}"
        if facts.writes:
            call += f" eng::close_{'sure' if e.room else 'frame'}(ctx);"
        if facts.context and adjoint:
            k = "k" if facts.axes == 0 else f"row - (stop - k{facts.axes - 1})"
            reads = flag(facts.reads)
            call += f" if (ctx.error) {{ eng::abandon(L, ctx, {k}, {reads}); break; }}"
        elif facts.context:
            call += " if (ctx.error) break;"
        if facts.reads:
            call = f"eng::open_frame(ctx); {call} eng::next_frame(ctx);"
        return linear + call

    call = around(f"{e.call(e.fn, [*args, *within])};")
    if facts.axes == 0:
        head = "int64_t k = end - 1; k >= begin; --k" if down else "int64_t k = begin; k < end; ++k"
        lines = [f"for ({head}) {{ {call} }}"]
    else:
        left_out = [] if guards is None else left_out_of(e, guards)
        row_of = None
        if what is not None:
            x = f"k{facts.axes - 1}"
            ends = ["if (ctx.error) break;"] if facts.context else []
            *begins, rest = beforehand.calls(e, what, args, within)
            begins = [linear + b for b in begins]
            row_of = beforehand.block(e, what, x, begins, around(rest), down, ends)
            row_of.append(_threads(x, call, down, "at"))
        elif far is not None:
            row_of = far.row(call)
        lines = _rows(facts, call, sums, down, row_of, left_out, e.room)
    out += [f"    {line}" for line in (*lines, *sums.after())]
    if far is not None:
        out.append("    if (vast) eng::stream_end();")
    if facts.context:
        out.append("    eng::leave(L, ctx);")
    return out


def _linear(facts: Facts, down: bool) -> str:
    """The linear index of the thread."""
    last = facts.axes - 1
    if facts.axes == 0:
        return "k"
    return f"row - (stop - k{last})" if down else f"row + (k{last} - first)"


def left_out_of(e: Emitter, guards: Guards) -> list[str]:
    """Makes a row shorter, from `first` to `stop`, by the threads that do not pass its guards."""
    made = n.Function("row", e.fn.params, (), guards.hoisted)
    body = Body(e, made)
    out = [line.strip() for line in body.write()]
    for t in guards.tests:
        bound = f"int64_t({body.atom(t.bound)})" + (f" - ({t.by})" if t.by else "")
        if t.op in ("gt", "ge", "eq"):
            out.append(f"first = eng::from<{flag(t.op == 'gt')}>(first, stop, {bound});")
        if t.op in ("lt", "le", "eq"):
            out.append(f"stop = eng::up_to<{flag(t.op != 'lt')}>(first, stop, {bound});")
    for v, value in guards.rows:
        out.append(f"if ({'!' if value else ''}{body.atom(v)}) stop = first;")
    return out


def _threads(x: str, call: str, down: bool, begin: str) -> str:
    """The loop over the threads of a row, from one on."""
    if down:
        return f"for (int64_t {x} = {begin}; {x} > first; --{x}) {{ {call} }}"
    return f"for (int64_t {x} = {begin}; {x} < stop; ++{x}) {{ {call} }}"


def _rows(
    facts: Facts, call: str, sums: Sums, down: bool, row_of: list[str] | None = None,
    left_out: Sequence[str] = (), room: int = 0,
) -> list[str]:  # fmt: skip
    """The loop over the rows of the grid, and in it the loop over the threads of a row.

    down: from the last thread to the first, as adjoints go. row_of: another loop over a row.
    left_out: what makes rows shorter. room: bytes that a thread may write to the journal, if rows
    are to see to them.
    """
    last = facts.axes - 1
    x, axes = f"k{last}", facts.axes
    ends = ["if (ctx.error) break;"] if facts.context else []
    if down:
        row = "for (int64_t row = end - 1, n; row >= begin; row -= n) {"
        count = f"n = eng::row_down<{axes}>(L, row, begin, c);"
        range_ = f"const int64_t stop = c[{last}], first = stop - n;"
    else:
        row = "for (int64_t row = begin, n = 0; row < end; row += n) {"
        count = f"n = eng::next_row<{axes}>(L, row, n, c);"
        const = "" if left_out else "const "
        range_ = f"{const}int64_t first = c[{last}], stop = first + n;"
    coordinates = [f"const int64_t k{d} = c[{d}];" for d in range(last) if d in facts.tids]
    if row_of is not None:
        inner = row_of
    elif sums.places:
        inner = sums.blocks(x, call, ends, down)
    else:
        inner = [_threads(x, call, down, "stop" if down else "first")]
    if room:
        makes = [f"n = eng::least(n, {SOME});", f"eng::reserve_frames(ctx, n * {room});", *ends]
        coordinates, ends = [*makes, *coordinates], ["eng::check_frames(ctx);", *ends]
    body = [count, *coordinates, range_, *left_out, *inner, *ends]
    return [f"int64_t c[{axes}];", row, *(f"    {line}" for line in body), "}"]
