"""The C++ backend: the table for the emitter, and a kernel's entry point.

    extern "C" void SYMBOL(const unsigned char* args, eng_launch* L)

runs the threads L->begin to L->end. Kernels with array parameters are compiled twice: for arrays
whose innermost axis is contiguous, and for any strides; large ones just for any strides, since
the compiler's time is what counts there and no loop over them becomes vector code.
"""

from __future__ import annotations

import re

from engine.codegen import headers, snippets
from engine.codegen.cstyle import Dialect, Emitter
from engine.codegen.facts import LINEAR, Facts
from engine.codegen.layout import arg_offsets
from engine.codegen.outline import is_large
from engine.codegen.spelling import local
from engine.ir import nodes as n
from engine.lang.ctypes_ import ctype
from engine.lang.types import ArrayType

CPP = Dialect(
    name="c++",
    function="ENG_FN",
    thread="ENG_INLINE",
    piece="ENG_PIECE",
    context="eng::ctx_t&",
)
_TRIG = re.compile(r"eng::(sin|cos|tan)\(")


def emit(fn: n.Function, symbol: str, lines: bool = False) -> str:
    """A kernel as one block of C++ that needs only the header `ENGINE` before it.

    symbol: name of the entry point; all else is in a namespace of that name.
    lines: write `#line` directives that point to the Python source.
    """
    e = Emitter(fn, CPP, lines)
    out = [f"namespace ns_{symbol} {{", *e.functions(), *_run(e), "}", *_entry(e, symbol)]
    text = "\n".join(out) + "\n"
    return "".join(f'#include "{name}"\n' for name in _headers(fn, text)) + text


def _headers(fn: n.Function, text: str) -> list[str]:
    """What a kernel needs beside the header of all."""
    out = [headers.SNIPPET] if snippets.has_snippets(fn) else []
    if fn.watch:
        out.append(headers.WATCH)
    return out + [headers.TRIG.format(name) for name in sorted(set(_TRIG.findall(text)))]


def _run(e: Emitter) -> list[str]:
    """The loop over threads."""
    facts = e.facts[id(e.fn)]
    out = ["template <bool FLAT>"] if facts.arrays else []
    out.append("static void run(const unsigned char* args, eng_launch* L) {")
    offsets = arg_offsets([p.type for p in e.fn.params])
    for p, at in zip(e.fn.params, offsets, strict=False):
        out.append(f"    auto {local(p)} = eng::arg<{e.type(p.type)}>(args, {at});")
    if facts.context:
        out.append("    eng::ctx_t ctx = eng::enter(L);")
    if e.fn.watch:
        out.append(f"    ctx.watch = eng::arg<eng::watch_t*>(args, {offsets[-1]});")
    out.append("    const int64_t begin = L->begin, end = L->end;")
    call = f"{e.call(e.fn, [local(p) for p in e.fn.params])};"
    down = bool(e.fn.adjoints)
    if e.fn.watch:
        call = f"ctx.thread = {_linear(facts, down)}; {call}"
    if facts.writes:
        call += " eng::close_frame(ctx);"
    if facts.context and down:
        k = "k" if facts.axes == 0 else f"row - (stop - k{facts.axes - 1})"
        reads = "true" if facts.reads else "false"
        call += f" if (ctx.error) {{ eng::abandon(L, ctx, {k}, {reads}); break; }}"
    elif facts.context:
        call += " if (ctx.error) break;"
    if facts.reads:
        call = f"eng::open_frame(ctx); {call} eng::next_frame(ctx);"
    # No promise that threads are independent (GCC ivdep, clang assume_safety): compilers
    # also take it for the memory of a thread's own vectors, and for two parameters that
    # are one array. They check at run time whether arrays overlap.
    if facts.axes == 0:
        head = "int64_t k = end - 1; k >= begin; --k" if down else "int64_t k = begin; k < end; ++k"
        loop = [f"for ({head}) {{ {call} }}"]
    else:
        loop = _rows_down(facts, call) if down else _rows(facts, call)
    out += [f"    {line}" for line in loop]
    if facts.context:
        out.append("    eng::leave(L, ctx);")
    return [*out, "}"]


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


def _entry(e: Emitter, symbol: str) -> list[str]:
    facts = e.facts[id(e.fn)]
    linear = "true" if LINEAR in facts.tids else "false"
    out = [f"ENG_EXPORT void {symbol}(const unsigned char* args, eng_launch* L) {{"]
    if facts.tids:
        out.append(f"    if (!eng::fits(L, {linear}, {facts.axes})) return;")
    run = f"ns_{symbol}::run"
    if not facts.arrays:
        return [*out, f"    {run}(args, L);", "}"]
    if is_large(e.fn):
        return [*out, f"    {run}<false>(args, L);", "}"]
    offsets = arg_offsets([p.type for p in e.fn.params])
    tests = [
        f"eng::is_flat(eng::arg<eng::array_t<{ctype(p.type.element)},{p.type.ndim}>>(args, {at}))"
        for p, at in zip(e.fn.params, offsets, strict=False)
        if isinstance(p.type, ArrayType)
    ]
    joined = "\n        && ".join(tests)
    out += [
        f"    const bool flat = {joined};",
        f"    if (flat) {run}<true>(args, L);",
        f"    else {run}<false>(args, L);",
        "}",
    ]
    return out
