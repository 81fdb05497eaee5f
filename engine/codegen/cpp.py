"""The C++ backend: the table for the emitter, and a kernel's entry point.

    extern "C" void SYMBOL(const unsigned char* args, eng_launch* L)

runs the threads L->begin to L->end. The loop over them is there twice where there are arrays: for
arrays that are contiguous and share no memory with what is written, which compilers are told, and,
as text that is compiled when a launch first needs it, for any others; of large kernels just for
any, since the compiler's time is what counts there.
"""

from __future__ import annotations

import re

from engine.codegen import beforehand, headers, lanes, late, loans, snippets, streams
from engine.codegen.beforehand import Beforehand
from engine.codegen.cstyle import Dialect, Emitter
from engine.codegen.facts import LINEAR, touched_arrays
from engine.codegen.guards import guards_of
from engine.codegen.layout import arg_offsets
from engine.codegen.loops import Loops, loop, room_of, runs_down
from engine.codegen.outline import is_large
from engine.codegen.spelling import flag, identifier, local
from engine.codegen.statements import WITHIN
from engine.codegen.streams import Streams
from engine.ir import nodes as n

CPP = Dialect(
    name="c++",
    function="ENG_FN",
    thread="ENG_INLINE",
    piece="ENG_PIECE",
    context="eng::ctx_t&",
)
PLAIN = Loops()
# All that `headers.DECOMPOSE` has.
_DECOMPOSE = re.compile(
    r"eng::(svd2|svd3|eig3|qr3|part|put_part|column|unit|perpendicular|beside|rescale|epsilon|ldexp"
    r"|rotation_t|swap_columns|orthogonal_columns|first_axes|jacobi_sweeps)\b"
)
_TRIG = re.compile(r"eng::(sin|cos|tan)\(")
APART = True  # tests change it: whether there is a loop for arrays that share no memory


def emit(fn: n.Function, symbol: str, lines: bool = False, known: Loops = PLAIN) -> str:
    """A kernel as one block of C++ that needs only the header `COMMON` before it.

    symbol: name of the entry point; all else is in a namespace of that name.
    lines: write `#line` directives that point to the Python source.
    known: what threads may do, as far as somebody knows.
    """
    e = Emitter(fn, CPP, lines)
    facts = e.facts[id(fn)]
    apart = APART and bool(facts.touched) and not fn.watch and not is_large(fn)
    if not facts.axes and (known.any_order or known.sums):
        apart = False  # its launches would need as many axes as the kernel has: every one has some
    e.guards = guards_of(fn, e.facts) if apart else None
    e.room, e.down = room_of(e, known), runs_down(e, known)
    functions = e.functions()
    head = f"ENG_EXPORT void {symbol}(const unsigned char* args, eng_launch* L)"
    out = [f"{head};"] if apart else []
    out += [f"namespace ns_{symbol} {{", *functions]
    blocks, far = list[str](), None
    lends = apart and loans.can_lend(fn, facts, known)
    at_once = not apart or snippets.has_snippets(fn)  # these may name files
    if at_once:
        out += _run(e, apart)
    if apart:
        blocks, width = lanes.function(e)
        guarded = e.guards is not None and not runs_down(e, known)
        what = None if blocks or known.sums else beforehand.beforehand(e, guarded)
        far = streams.streams(e, known) if lends and not blocks and what is None else None
        if what is not None:
            within = [] if e.guards is None else [f"const bool {WITHIN}"]
            out += beforehand.functions(e, what, within)
        out += _run_apart(e, known, what, far)
    if blocks:
        out += blocks + lanes.run(e, width, *_apart(e))
    if apart:
        out += _go(e, known, bool(blocks), far is not None)
        runs = late.other(lends) if at_once else []
        other = "" if at_once else _other(e, functions, lends)
        out += [*runs, *late.form(symbol, other), *late.kernel(e, known, bool(blocks))]
    entry = [f"{head} {{", *_entry(e, symbol, known, apart, far)]
    text = "\n".join([*out, "}", *entry]) + "\n"
    names = _headers(fn, text, bool(blocks))
    header = loans.HEADER if lends and at_once else late.HEADER
    names += [name for name, used in ((header, apart), (streams.HEADER, far)) if used]
    return _included(names) + text


def _other(e: Emitter, functions: list[str], lends: bool) -> str:
    """The form for any arrays, which needs no more than `emit`'s."""
    symbol = late.SYMBOL
    head = [f"namespace ns_{symbol} {{", *functions, *_run(e, True), *late.other(lends), "}"]
    text = "\n".join([*head, *late.entry(symbol)]) + "\n"
    names = [*_headers(e.fn, text, False), loans.HEADER if lends else late.HEADER]
    return _included([headers.COMMON, *names]) + text


def _included(names: list[str]) -> str:
    return "".join(f'#include "{name}"\n' for name in names)


def _headers(fn: n.Function, text: str, blocks: bool) -> list[str]:
    """What a kernel needs beside the header of all."""
    out = [headers.SNIPPET] if snippets.has_snippets(fn) else []
    if _DECOMPOSE.search(text):
        out.append(headers.DECOMPOSE)
    if fn.watch:
        out.append(headers.RACES if fn.watch == "races" else headers.WATCH)
    if blocks:
        out.append(lanes.HEADER)
    called = sorted(set(_TRIG.findall(text)))
    out += [headers.TRIG.format(name) for name in called if "float" in text or "half" in text]
    out += [headers.TRIG.format(f"{name}64") for name in called if "double" in text]
    return out


def only(pointer: str) -> str:
    """A parameter that points to memory of its own."""
    return f"unsigned char* ENG_ONLY {pointer}"


def _run(e: Emitter, apart: bool) -> list[str]:
    """The loop over threads, for any arrays. apart: there is another one for most launches."""
    offsets = arg_offsets([p.type for p in e.fn.params])
    args = []
    for p, at in zip(e.fn.params, offsets, strict=False):
        args.append(f"    auto {local(p)} = eng::arg<{e.type(p.type)}>(args, {at});")
    if e.fn.watch:
        args.append(f"    auto watch = eng::arg<eng::watch_t*>(args, {offsets[-1]});")
    head = "static void run(const unsigned char* args, eng_launch* L) {"
    return [head, *args, *loop(e, PLAIN, scalar=apart), "}"]


def _apart(e: Emitter) -> tuple[list[str], list[str]]:
    """Contiguous arrays that share no memory: parameters, and how arguments come of them."""
    args, pointers = [], []
    offsets = arg_offsets([p.type for p in e.fn.params])
    touched = e.facts[id(e.fn)].touched
    for p, at in zip(e.fn.params, offsets, strict=False):
        if p.name in touched:
            kind, pointer = f"{e.type(p.type)[:-1]},true>", f"d_{identifier(p.name)}"
            pointers.append(pointer)
            args.append(f"    auto {local(p)} = eng::flat<{kind}>(args, {at}, {pointer});")
        else:
            args.append(f"    auto {local(p)} = eng::arg<{e.type(p.type)}>(args, {at});")
    return pointers, args


def _run_apart(e: Emitter, known: Loops, what: Beforehand | None, far: Streams | None) -> list[str]:
    """The same for contiguous arrays of which none that is written shares memory with another.

    what: what is evaluated beforehand. far: what goes out by lines.
    """
    pointers, args = _apart(e)
    given = [*map(only, pointers), *(["bool vast"] if far else [])]
    head = f"const unsigned char* args, eng_launch* L,\n    {', '.join(given)}"
    return [
        f"ENG_ALONE void run_apart({head}) {{",
        *args,
        *loop(e, known, guarded=True, what=what, far=far),
        "}",
    ]


def _given(e: Emitter) -> str:
    """The memory of the arrays that a kernel touches, as arguments of its functions."""
    places = touched_arrays(e.fn, e.facts[id(e.fn)])
    return ", ".join(f"eng::data(args, {at})" for _, at in places)


def _go(e: Emitter, known: Loops, blocks: bool, far: bool) -> list[str]:
    """Runs threads for contiguous arrays that share no memory. far: whether results may stream."""
    given = _given(e)
    near = ", false" * far
    return [
        "ENG_ALONE void go(const unsigned char* args, eng_launch* L) {",
        *(_blocks(given, known) if blocks else []),
        f"    run_apart(args, L, {given}{near});",
        "}",
    ]


def _entry(e: Emitter, symbol: str, known: Loops, apart: bool, far: Streams | None) -> list[str]:
    facts = e.facts[id(e.fn)]
    linear = flag(LINEAR in facts.tids)
    out = []
    if facts.tids:
        out.append(f"    if (!eng::fits(L, {linear}, {facts.axes})) return;")
    if not apart:
        return [*out, f"    ns_{symbol}::run(args, L);", "}"]
    rest = f" && L->ndim == {facts.axes}" if known.any_order or known.sums else ""
    runs = "go(args, L)"
    if far is not None:
        vast = f"eng::vast(L, arrays, {streams.VAST}, {far.each}, {streams.ROW})"
        runs = f"run_apart(args, L, {_given(e)}, {vast})"
    return [
        *out,
        f"    eng::extent_t arrays[{len(touched_arrays(e.fn, facts))}];",
        f"    const bool apart = eng::apart(args, ns_{symbol}::touched, arrays){rest};",
        f"    if (apart && L->begin < L->end) return ns_{symbol}::{runs};",
        f"    eng::otherwise(args, L, arrays, ns_{symbol}::how, apart);",
        "}",
    ]


def _blocks(given: str, known: Loops) -> list[str]:
    """Runs blocks of threads at once, where their order does not matter."""
    free = "L->free >= 0" if known.any_order else "L->free > 0"
    return [f"    if ({free})", f"        return run_lanes(args, L, {given});"]
