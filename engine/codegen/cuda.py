"""The CUDA backend's text: the table for the emitter, and a kernel's entry point.

    extern "C" __global__ void SYMBOL(eng::block_t<BYTES> args, eng_launch L)
    extern "C" __global__ void SYMBOL_apart(eng::block_t<BYTES> args, eng_launch L, POINTERS)

runs the threads L.begin to L.end, each CUDA thread those that lie a grid of blocks apart. What a
thread saves is in its own memory where it is little, else in frames of one size that are the
launcher's (see `native/cuda/block.h`): a thread that exceeds its frame is abandoned and leaves an
error.

Threads run in no order, so that every update of memory is atomic, but where launches of the second
kind know better (see `engine.codegen.apart`). What one thread does to another
through memory is therefore not reversed as it happened, which is what the CPU promises.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.codegen import headers, snippets
from engine.codegen.apart import UNKNOWN, Apart, Form
from engine.codegen.cstyle import Dialect, Emitter
from engine.codegen.facts import LINEAR
from engine.codegen.frames import Frames, frames_of
from engine.codegen.guards import guards_of
from engine.codegen.layout import SLOT, arg_offsets
from engine.codegen.spelling import flag
from engine.ir import nodes as n

# nvcc has read headers by then in which integers of 64 bits are other types, and tells of what
# nothing reads, as no option of a file's own would keep it from.
_NVCC = """\
#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#define int64_t eng_int64_t
#define uint64_t eng_uint64_t
#pragma nv_diag_suppress 177
#endif
"""

# Bytes of saved values that a thread keeps in its own memory, where they are known to be so few.
LOCAL = 4096

CUDA = Dialect(
    name="cuda",
    function="static __device__",
    thread="static __device__ inline",
    piece="static __device__ __noinline__",
    context="eng::ctx_t&",
    cuda=True,
)


def preamble(fns: Sequence[n.Function]) -> str:
    """What stands before the text of some kernels: all that they use, without a file."""
    name = headers.SNIPPET if any(map(snippets.has_snippets, fns)) else headers.ENGINE
    watch = [headers.WATCH] if any(f.watch for f in fns) else []
    return headers.in_one(headers.CUDA, name, *watch)


def unit(fns: Sequence[n.Function]) -> str:
    """The same for a file of its own, which nvcc takes, too."""
    return _NVCC + preamble(fns)


def arg_bytes(fn: n.Function) -> int:
    """Bytes of the block of arguments, which is never empty."""
    end = arg_offsets([p.type for p in fn.params])[-1]
    return max(SLOT, end + SLOT * bool(fn.watch))


def emit(fn: n.Function, symbol: str, lines: bool = False, known: Apart = UNKNOWN) -> str:
    """A kernel as one block of CUDA that needs only `preamble` before it.

    symbol: name of the entry point; all else is in a namespace of that name.
    lines: write `#line` directives that point to the Python source.
    known: what is known of launches whose arrays share no memory; they have an entry point of their
    own where that is something.
    """
    e = Emitter(fn, CUDA, lines)
    e.guards = guards_of(fn, e.facts, True) if known.wide else None
    forms = [Form(e)]
    if known.useful:
        forms.append(Form(e, known))
    if known.wide:
        forms.append(Form(e, known, wide=True))
    out = [f"namespace ns_{symbol} {{", *e.functions()]
    for form in forms:
        out += _run(e, form)
    out += ["}", *_entry(e, symbol, forms[:1])]
    if known.useful:
        out += _entry(e, symbol, forms[1:])
    return "\n".join(out) + "\n"


def _run(e: Emitter, form: Form) -> list[str]:
    """The threads that one CUDA thread runs."""
    facts = e.facts[id(e.fn)]
    out = form.begin()
    body: list[str] = []
    if facts.context:
        size = local_stack(frames_of(e.fn))
        if size is None:
            out.append("    const eng::stack_t stack = eng::stack_of(L, eng::lane());")
        else:
            out += [
                f"    alignas(8) unsigned char saved[{max(size, SLOT)}];",
                f"    const eng::stack_t stack = eng::stack_at(saved, {size});",
            ]
        body += [
            "if (eng::skips(L, k)) continue;",
            f"eng::ctx_t ctx = eng::enter<{flag(facts.reads)}>(L, k, stack);",
        ]
    if e.fn.watch:
        body.append("ctx.watch = watch;")
    body += form.coordinates()
    body.append(f"{e.call(e.fn, form.arguments())};")
    if facts.context:
        body.append(f"eng::leave<{flag(facts.writes)}>(L, k, ctx);")
    return [*out, *form.loop(body), *form.end(), "}"]


def local_stack(frames: Frames) -> int | None:
    """Bytes of a stack in the thread's own memory; None where the launcher provides it."""
    return frames.stack if frames.stack is not None and frames.stack <= LOCAL else None


def _entry(e: Emitter, symbol: str, forms: Sequence[Form]) -> list[str]:
    """The entry point of a form, or of one form for most launches and one for wide ones."""
    facts = e.facts[id(e.fn)]
    args = f"const __grid_constant__ eng::block_t<{arg_bytes(e.fn)}> args"
    rest = ["const __grid_constant__ eng_launch L", *forms[0].pointers()]
    out = [
        f'extern "C" __global__ void {symbol}{forms[0].suffix}({args},',
        f"    {', '.join(rest)}) {{",
    ]
    if facts.tids and not forms[0].apart:
        out.append(f"    if (!eng::fits(L, {flag(LINEAR in facts.tids)}, {facts.axes})) return;")
    calls = [f"ns_{symbol}::{form.call()};" for form in forms]
    if len(calls) > 1:
        return [*out, f"    if (L.wide) {calls[1]}", f"    else {calls[0]}", "}"]
    return [*out, f"    {calls[0]}", "}"]
