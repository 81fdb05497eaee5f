"""Runs CUDA's runtime compiler, which CuPy brings and which needs no device."""

from __future__ import annotations

from typing import Any

from engine.diagnostics import CompilerError, Diagnostic

FILE = "kernels.cu"  # what the compiler calls the text
FLAGS = (
    "--std=c++17",
    # IEEE arithmetic, as on the CPU: no contraction to fma, denormals kept, division and square
    # root rounded correctly. `--use_fast_math` would undo all of it.
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    # Passes leave temporaries that nothing reads.
    "--diag-suppress=177",
)


def find() -> Any:
    """CuPy's module of the compiler. Raises CompilerError (E301) where it cannot be loaded."""
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()  # loads the library
    except (ImportError, RuntimeError, OSError) as e:
        raise CompilerError(
            Diagnostic(
                "E301",
                "no compiler for CUDA found",
                help="install CuPy: `pip install 'cupy-cuda13x[ctk]'`",
                notes=(f"{type(e).__name__}: {e}",),
            )
        ) from None
    return nvrtc


def version() -> tuple[int, int]:
    """The compiler's version. Raises CompilerError (E301)."""
    major, minor = find().getVersion()
    return int(major), int(minor)


def compile_program(text: str, arch: str, *options: str) -> tuple[bytes, str]:
    """Code for an architecture, and what the compiler said; text is all of the program.

    arch: `sm_90` gives machine code, `compute_90` PTX, which later devices run, too.
    options: of the compiler, beside `FLAGS`.

    The code is empty where the text does not compile. Raises CompilerError (E301).
    """
    nvrtc = find()
    program = nvrtc.createProgram(text, FILE, (), ())
    try:
        try:
            nvrtc.compileProgram(program, (f"--gpu-architecture={arch}", *FLAGS, *options))
        except nvrtc.NVRTCError:
            return b"", str(nvrtc.getProgramLog(program))
        return _code(nvrtc, program, arch), str(nvrtc.getProgramLog(program))
    finally:
        nvrtc.destroyProgram(program)


def _code(nvrtc: Any, program: Any, arch: str) -> bytes:
    if arch.startswith("sm_"):
        return bytes(nvrtc.getCUBIN(program))
    found = nvrtc.getPTX(program)
    return found.encode() if isinstance(found, str) else bytes(found)


def known(arch: str) -> str:
    """An architecture to compile for, so that the code runs where `arch` (`sm_90`) is.

    Where the compiler does not know that one, PTX of the last one before it.
    """
    wanted = int(arch.removeprefix("sm_"))
    archs = [int(a) for a in find().getSupportedArchs()]
    before = [a for a in archs if a < wanted]
    return arch if wanted in archs or not before else f"compute_{max(before)}"
