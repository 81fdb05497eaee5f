"""Writes what an entry point says of its kernel to what is made when a launch first needs it: the
form for any arrays, and what lends memory. See `native/cpu/late.h`.
"""

from __future__ import annotations

import re

from engine.codegen import loans
from engine.codegen.cstyle import Emitter
from engine.codegen.facts import touched_arrays
from engine.codegen.layout import arg_offsets
from engine.codegen.loops import Loops, runs_down
from engine.codegen.rows import operations
from engine.codegen.spelling import flag

HEADER = "late.h"
SYMBOL = "ENGINE_OTHER"  # what stands for the entry point's name in the text of a form
# Tests change them: operations that a launch must have to be worth it, and about how many take as
# long as a copy of four bytes.
FEW, WORD = 1500, 3.0
_MARK = "engine"  # ends the text of a form, with characters that no C++ of the engine has
FORM = re.compile(rf'R"{_MARK}\((.*)\){_MARK}"', re.DOTALL)  # the text of a form in a kernel's


def other(lends: bool) -> list[str]:
    """A function that runs threads for any arrays. lends: whether these may be lent memory."""
    return [
        "static void run_any(const unsigned char* args, eng_launch* L,",
        "    const eng::extent_t* arrays, const eng::kernel_t& how) {",
        *(["    if (eng::lend(args, L, arrays, how, run)) return;"] if lends else []),
        "    run(args, L);",
        "}",
    ]


def entry(symbol: str) -> list[str]:
    """The entry point of a form that is compiled alone."""
    return [
        f"ENG_EXPORT void {symbol}(const unsigned char* args, eng_launch* L,",
        "    const eng::extent_t* arrays, const eng::kernel_t& how) {",
        f"    ns_{symbol}::run_any(args, L, arrays, how);",
        "}",
    ]


def form(symbol: str, text: str) -> list[str]:
    """The form of a kernel for any arrays. text: of it, empty where it is compiled with it."""
    if not text:
        return [f'static eng::form_t other{{run_any, {symbol}, "{symbol}"}};']
    return [
        f'static eng::form_t other{{nullptr, {symbol}, "{symbol}", R"{_MARK}({text}){_MARK}",',
        "    eng::precise, eng::large};",
    ]


def kernel(e: Emitter, known: Loops, blocks: bool) -> list[str]:
    """What is said of it."""
    facts, params = e.facts[id(e.fn)], [p.type for p in e.fn.params]
    down = bool(e.fn.adjoints) if blocks else runs_down(e, known)
    count = len(touched_arrays(e.fn, facts))
    work = operations(e.fn.body, calls=True)
    few, words = max(FEW // max(work, 1), 1), int(min(work / WORD, 2**30))
    flags = f"{few}, {words}, eng::sums_{loans.sums(e, known)}, {flag(down)}"
    size = arg_offsets(params)[-1]
    return [
        *loans.table(e, known),
        f"static const eng::kernel_t how{{touched, {count}, {size}, {facts.axes}, {flags},",
        "    go, &other};",
    ]
