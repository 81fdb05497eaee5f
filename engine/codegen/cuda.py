"""The CUDA backend's text: the table for the emitter, and a kernel's entry point.

    extern "C" __global__ void SYMBOL(eng::block_t<BYTES> args, eng_launch L)

runs the threads L.begin to L.end, each CUDA thread those that lie a grid of blocks apart. What a
thread saves is in its own memory where it is little, else in frames of one size that are the
launcher's (see `native/cuda/block.h`): a thread that exceeds its frame is abandoned and leaves an
error.

Threads run in no order, so that every update of memory is atomic. What one thread does to another
through memory is therefore not reversed as it happened, which is what the CPU promises.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.codegen import headers, snippets
from engine.codegen.cstyle import Dialect, Emitter
from engine.codegen.facts import LINEAR
from engine.codegen.frames import Frames, frames_of
from engine.codegen.layout import SLOT, arg_offsets
from engine.codegen.spelling import local
from engine.ir import nodes as n

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
    return headers.in_one(headers.CUDA, name)


def arg_bytes(fn: n.Function) -> int:
    """Bytes of the block of arguments, which is never empty."""
    return max(SLOT, arg_offsets([p.type for p in fn.params])[-1])


def emit(fn: n.Function, symbol: str, lines: bool = False) -> str:
    """A kernel as one block of CUDA that needs only `preamble` before it.

    symbol: name of the entry point; all else is in a namespace of that name.
    lines: write `#line` directives that point to the Python source.
    """
    e = Emitter(fn, CUDA, lines)
    out = [f"namespace ns_{symbol} {{", *e.functions(), *_run(e), "}", *_entry(e, symbol)]
    return "\n".join(out) + "\n"


def _run(e: Emitter) -> list[str]:
    """The threads that one CUDA thread runs."""
    facts = e.facts[id(e.fn)]
    out = [f"{CUDA.thread} void run(const unsigned char* args, const eng_launch& L) {{"]
    offsets = arg_offsets([p.type for p in e.fn.params])
    for p, at in zip(e.fn.params, offsets, strict=False):
        out.append(f"    const auto {local(p)} = eng::arg<{e.type(p.type)}>(args, {at});")
    body: list[str] = []
    if facts.context:
        size = local_stack(frames_of(e.fn))
        if size is None:
            out.append("    const eng::frame_t stack = eng::stack_of(L, eng::lane());")
        else:
            out += [
                f"    alignas(8) unsigned char saved[{max(size, SLOT)}];",
                f"    const eng::frame_t stack{{saved, 0, {size}}};",
            ]
        body += [
            "if (eng::skips(L, k)) continue;",
            f"eng::ctx_t ctx = eng::enter<{_flag(facts.reads)}>(L, k, stack);",
        ]
    if facts.axes:
        body += [f"int64_t c[{facts.axes}];", f"eng::coordinates<{facts.axes}>(L, k, c);"]
        axes = sorted(facts.tids - {LINEAR})
        body += [f"const int64_t k{d} = c[{d}];" for d in axes]
    body.append(f"{e.call(e.fn, [local(p) for p in e.fn.params])};")
    if facts.context:
        body.append(f"eng::leave<{_flag(facts.writes)}>(L, k, ctx);")
    # The last thread of an adjoint comes first, where there is an order.
    first, turns = ("L.end - 1 - eng::lane()", "k >= L.begin; k -=") if e.fn.adjoints else (
        "L.begin + eng::lane()", "k < L.end; k +=")  # fmt: skip
    return [
        *out,
        "    const int64_t step = eng::lanes();",
        # Most run one thread: to know the number of turns would take a division.
        '    _Pragma("unroll 1")',
        f"    for (int64_t k = {first}; {turns} step) {{",
        *(f"        {line}" for line in body),
        "    }",
        "}",
    ]


def local_stack(frames: Frames) -> int | None:
    """Bytes of a stack in the thread's own memory; None where the launcher provides it."""
    return frames.stack if frames.stack is not None and frames.stack <= LOCAL else None


def _entry(e: Emitter, symbol: str) -> list[str]:
    facts = e.facts[id(e.fn)]
    args = f"const __grid_constant__ eng::block_t<{arg_bytes(e.fn)}> args"
    out = [
        f'extern "C" __global__ void {symbol}({args},',
        "    const __grid_constant__ eng_launch L) {",
    ]
    if facts.tids:
        out.append(f"    if (!eng::fits(L, {_flag(LINEAR in facts.tids)}, {facts.axes})) return;")
    # One form for all strides: a device gains little from knowing the innermost one.
    return [*out, f"    ns_{symbol}::run(args.bytes, L);", "}"]


def _flag(value: bool) -> str:
    return "true" if value else "false"
