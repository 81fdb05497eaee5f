"""Runs the CUDA dialect's text on the host: as C++ behind `shim.h`, launched as on a GPU."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.codegen import cuda
from engine.compile.cpu.toolchain import find_toolchain
from engine.compile.cuda import nvrtc
from engine.compile.cuda.runner import Frames, Launch, Messages
from engine.ir.nodes import Function
from tests.backend.signatures import Array

SHIM = Path(__file__).parent / "shim.h"
FLAGS = (
    "-std=c++17", "-O0", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-exceptions",
    "-fPIC", "-shared", "-w",
)  # fmt: skip
FRAME = 1 << 12  # bytes, unless a test asks for fewer

_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')
_PARAM = re.compile(r"\s*(?:const __grid_constant__ )?([^,]+?)(?: __restrict__)? \w+(?:,|$)")


def compile_text(text: str, folder: Path) -> tuple[Path | None, str]:
    """A library of the host with `run_NAME` for each kernel of the text, and what was said."""
    source, library = folder / "host.cpp", folder / "host.so"
    runs = [_run(name, _PARAM.findall(params)) for name, params in _KERNEL.findall(text)]
    named = f'#line 1 "{nvrtc.FILE}"'  # as what is said of it names it
    source.write_text("\n".join([SHIM.read_text(), named, text, *runs]))
    command = [*find_toolchain().command, *FLAGS, "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (None if done.returncode else library), done.stderr


def _run(name: str, types: Sequence[str]) -> str:
    """Runs a kernel on blocks of threads, or some of them: several may be on their way at once."""
    copies = [f"{t} a{k}; memcpy(&a{k}, params[{k}], sizeof(a{k}));" for k, t in enumerate(types)]
    args = ", ".join(f"a{k}" for k in range(len(types)))
    sizes = " ".join(f"sizes[{k}] = sizeof({t});" for k, t in enumerate(types))
    return f"""
extern "C" int sizes_{name}(int* sizes) {{ {sizes} return {len(types)}; }}
extern "C" void run_{name}(void** params, unsigned blocks, unsigned threads,
                           int first, int end, int step) {{
    {" ".join(copies)}
    gridDim.x = blocks;
    blockDim.x = threads;
    for (int at = first; at != end; at += step) {{
        blockIdx.x = at / threads;
        threadIdx.x = at % threads;
        {name}({args});
    }}
}}"""


def call(function: Any, params: int, blocks: int, threads: int, down: bool) -> None:
    """Runs a kernel of such a library. params: where the addresses of its parameters are."""
    total = blocks * threads
    first, end, step = (total - 1, -1, -1) if down else (0, total, 1)
    function(ctypes.c_void_p(params), blocks, threads, first, end, step)


@dataclass
class Memory:
    """What a launcher provides for `threads` threads, and finds there afterwards."""

    threads: int
    stack_bytes: int = FRAME
    frame_bytes: int = FRAME  # of the journal
    room: int = 1 << 10  # pairs of words for messages
    bits: Array = field(default_factory=lambda: np.zeros(2, np.uint64))

    def __post_init__(self) -> None:
        self.ended = np.zeros(self.threads, np.uint8)
        lanes = -(-(self.threads + 1) // 32) * 32  # stacks are those of whole warps
        self.stack = np.zeros((lanes, max(1, self.stack_bytes // 8)), np.int64)
        self.journal = np.zeros((self.threads, self.frame_bytes // 8), np.int64)
        self.output = np.zeros((self.room, 2), np.uint64)

    @property
    def errors(self) -> set[int]:
        """How threads ended that came to no good end; forgotten then."""
        found = int(self.bits[0])
        self.bits[0] = 0
        return {k for k in range(64) if found >> k & 1}

    def launch(self, dim: Sequence[int], again: int = 0) -> Launch:
        sizes = (ctypes.c_int64 * 4)(*dim, *[1] * (4 - len(dim)))
        at = self.bits.ctypes.data
        return Launch(sizes, len(dim), 0, self.threads, at, self.ended.ctypes.data, again,
                      Frames(self.stack.ctypes.data, self.stack_bytes), 0,
                      Frames(self.journal.ctypes.data, self.frame_bytes),
                      Messages(self.output.ctypes.data, at + 8, self.room))  # fmt: skip


class Program:
    """Kernels of the dialect as a library of the host."""

    def __init__(self, functions: Sequence[tuple[str, Function]], folder: Path) -> None:
        fns = [fn for _, fn in functions]
        texts = [cuda.emit(fn, s) for s, fn in functions]
        library, said = compile_text("\n".join([cuda.preamble(fns), *texts]), folder)
        assert library is not None, said[:4000]
        self.library = ctypes.CDLL(str(library))

    def run(
        self, symbol: str, dim: Sequence[int], args: bytes, memory: Memory, *,
        down: bool = False, blocks: int = 0, again: int = 0,
    ) -> None:  # fmt: skip
        """One launch. blocks: of two CUDA threads; as many as the threads need if 0."""
        launch, block = memory.launch(dim, again), ctypes.create_string_buffer(args, len(args) + 8)
        blocks = blocks or -(-memory.threads // 2)
        params = (ctypes.c_void_p * 2)(ctypes.addressof(block), ctypes.addressof(launch))
        call(self.library[f"run_{symbol}"], ctypes.addressof(params), blocks, 2, down)
