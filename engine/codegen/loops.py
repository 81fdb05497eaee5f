"""The loop over the threads of a launch on the CPU, as text."""

from __future__ import annotations

from engine.classes import dataclass
from engine.codegen.cstyle import Emitter
from engine.codegen.facts import LINEAR, Facts
from engine.codegen.spelling import local


@dataclass(frozen=True)
class Loops:
    """What is known of a kernel's threads, of launches with arrays that share no memory.

    any_order: an adjoint's threads need not run from the last to the first. alone: arrays of
    which that holds only where different indices are different memory.
    """

    any_order: bool = False
    alone: frozenset[str] = frozenset()


def loop(e: Emitter, known: Loops, scalar: bool = False) -> list[str]:
    """The body of a function that runs threads; arguments have the names of parameters.

    scalar: it is not to be vectorised.
    """
    facts = e.facts[id(e.fn)]
    adjoint = bool(e.fn.adjoints)
    down = adjoint and (facts.context or not known.any_order)
    out = []
    if facts.context:
        out.append("    eng::ctx_t ctx = eng::enter(L);")
    if e.fn.watch:
        out.append("    ctx.watch = watch;")
    out.append("    const int64_t begin = L->begin, end = L->end;")
    call = f"{e.call(e.fn, [local(p) for p in e.fn.params])};"
    if e.fn.watch:
        call = f"ctx.thread = {_linear(facts, down)}; {call}"
    if scalar:
        call = f"ENG_SCALAR; {call}"
    if facts.writes:
        call += " eng::close_frame(ctx);"
    if facts.context and adjoint:
        k = "k" if facts.axes == 0 else f"row - (stop - k{facts.axes - 1})"
        reads = "true" if facts.reads else "false"
        call += f" if (ctx.error) {{ eng::abandon(L, ctx, {k}, {reads}); break; }}"
    elif facts.context:
        call += " if (ctx.error) break;"
    if facts.reads:
        call = f"eng::open_frame(ctx); {call} eng::next_frame(ctx);"
    if facts.axes == 0:
        head = "int64_t k = end - 1; k >= begin; --k" if down else "int64_t k = begin; k < end; ++k"
        lines = [f"for ({head}) {{ {call} }}"]
    else:
        lines = _rows_down(facts, call) if down else _rows(facts, call)
    out += [f"    {line}" for line in lines]
    if facts.context:
        out.append("    eng::leave(L, ctx);")
    return out


def _linear(facts: Facts, down: bool) -> str:
    """The linear index of the thread."""
    last = facts.axes - 1
    if facts.axes == 0:
        return "k"
    return f"row - (stop - k{last})" if down else f"row + (k{last} - first)"


def _rows(facts: Facts, call: str) -> list[str]:
    """The loop over the rows of the grid, and in it the loop over the threads of a row."""
    last = facts.axes - 1
    if LINEAR in facts.tids:
        call = f"const int64_t k = row + (k{last} - first); {call}"
    return [
        "for (int64_t row = begin, n; row < end; row += n) {",
        f"    int64_t c[{facts.axes}];",
        f"    n = eng::row<{facts.axes}>(L, row, c);",
        *(f"    const int64_t k{d} = c[{d}];" for d in range(last) if d in facts.tids),
        f"    const int64_t first = c[{last}], stop = first + n;",
        f"    for (int64_t k{last} = first; k{last} < stop; ++k{last}) {{ {call} }}",
        *(["    if (ctx.error) break;"] if facts.context else []),
        "}",
    ]


def _rows_down(facts: Facts, call: str) -> list[str]:
    """The same from the last thread to the first, for adjoints."""
    last = facts.axes - 1
    if LINEAR in facts.tids:
        call = f"const int64_t k = row - (stop - k{last}); {call}"
    return [
        "for (int64_t row = end - 1, n; row >= begin; row -= n) {",
        f"    int64_t c[{facts.axes}];",
        f"    n = eng::row_down<{facts.axes}>(L, row, begin, c);",
        *(f"    const int64_t k{d} = c[{d}];" for d in range(last) if d in facts.tids),
        f"    const int64_t stop = c[{last}], first = stop - n;",
        f"    for (int64_t k{last} = stop; k{last} > first; --k{last}) {{ {call} }}",
        *(["    if (ctx.error) break;"] if facts.context else []),
        "}",
    ]
