"""The text of a kernel in every stage: IR as written and after each pass, C++ and CUDA.

`python -m tests.snapshots.render` prints all of them.
"""

from __future__ import annotations

from engine.codegen import cuda
from engine.compile.cpu import loops
from engine.compile.pipeline import Variants
from engine.frontend import lower_kernel
from engine.ir.nodes import Function, callees
from engine.ir.printer import to_text
from engine.ir.verify import verify
from engine.runtime.kernel import Kernel
from tests.snapshots.kernels import KERNELS


def render(kernel: Kernel) -> dict[str, str]:
    """The snapshots of a kernel, by the suffix of their files. Compiles nothing."""
    variants = Variants(lower_kernel(kernel.func))
    wrt = variants.differentiable
    journaled = variants.journaled()
    adjoint = variants.adjoint_ir(wrt, journaled).fn
    recorded = variants.recorded_ir(wrt, journaled)
    stages = {"primal": variants.ir, "prepared": variants.prepared}
    stages |= {"recorded": recorded} if recorded is not None else {}
    stages |= {"adjoint": adjoint}
    compiled = {name: fn for name, fn in stages.items() if name != "prepared"}
    for fn in stages.values():
        verify(fn)
    return {
        ".ir": _sections("#", {name: _ir(fn) for name, fn in stages.items()}),
        ".cpp": _sections("//", {name: loops.text(fn, name) for name, fn in compiled.items()}),
        ".cu": _sections("//", {name: cuda.emit(fn, name) for name, fn in compiled.items()}),
    }


def _ir(fn: Function) -> str:
    """A function and all that it calls."""
    return "\n".join(to_text(f) for f in (*callees(fn), fn))


def _sections(comment: str, texts: dict[str, str]) -> str:
    return "\n".join(f"{comment} ---- {name}\n{text}" for name, text in texts.items())


if __name__ == "__main__":
    for kernel in KERNELS.values():
        for text in render(kernel).values():
            print(text)
