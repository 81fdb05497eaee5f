"""Runs the CUDA dialect's text on the host: as C++ behind `shim.h`, launched as on a GPU."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.codegen import cuda
from engine.compile.cpu.toolchain import find_toolchain
from engine.ir.nodes import Function
from tests.backend.signatures import Array

SHIM = Path(__file__).parent / "shim.h"
FLAGS = (
    "-std=c++17", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-exceptions",
    "-fPIC", "-shared", "-w",
)  # fmt: skip
FRAME = 1 << 12  # bytes, unless a test asks for fewer


class Frames(ctypes.Structure):
    """`eng_frames`."""

    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_int64))


class Launch(ctypes.Structure):
    """`eng_launch` of the CUDA dialect."""

    _fields_ = (
        ("dim", ctypes.c_int64 * 4), ("ndim", ctypes.c_int64), ("begin", ctypes.c_int64),
        ("end", ctypes.c_int64), ("error", ctypes.c_void_p), ("ended", ctypes.c_void_p),
        ("again", ctypes.c_int64), ("stack", Frames), ("journal", Frames), ("output", Frames),
    )  # fmt: skip


@dataclass
class Memory:
    """What a launcher provides for `threads` threads, and finds there afterwards."""

    threads: int
    stack_bytes: int = FRAME
    frame_bytes: int = FRAME  # of the journal and of messages
    error: Array = field(default_factory=lambda: np.zeros(1, np.int64))

    def __post_init__(self) -> None:
        self.ended = np.zeros(self.threads, np.uint8)
        self.stack = np.zeros((self.threads, max(1, self.stack_bytes // 8)), np.int64)
        self.journal = np.zeros((self.threads, self.frame_bytes // 8), np.int64)
        self.output = np.zeros((self.threads, self.frame_bytes // 8), np.int64)

    def launch(self, dim: Sequence[int], again: int = 0) -> Launch:
        sizes = (ctypes.c_int64 * 4)(*dim, *[1] * (4 - len(dim)))
        frames = [
            Frames(a.ctypes.data, n)
            for a, n in (
                (self.stack, self.stack_bytes),
                (self.journal, self.frame_bytes),
                (self.output, self.frame_bytes),
            )
        ]
        return Launch(sizes, len(dim), 0, self.threads, self.error.ctypes.data,
                      self.ended.ctypes.data, again, *frames)  # fmt: skip


class Program:
    """Kernels of the dialect as a library of the host."""

    def __init__(self, functions: Sequence[tuple[str, Function]], folder: Path) -> None:
        fns = [fn for _, fn in functions]
        runs = [f"SHIM_RUN({s}, {cuda.arg_bytes(fn)})" for s, fn in functions]
        texts = [cuda.emit(fn, s) for s, fn in functions]
        source, library = folder / "host.cpp", folder / "host.so"
        source.write_text("\n".join([SHIM.read_text(), cuda.preamble(fns), *texts, *runs]))
        command = [*find_toolchain().command, *FLAGS, "-o", str(library), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        self.library = ctypes.CDLL(str(library))

    def run(
        self, symbol: str, dim: Sequence[int], args: bytes, memory: Memory, *,
        down: bool = False, blocks: int = 0, again: int = 0,
    ) -> None:  # fmt: skip
        """One launch. blocks: of two CUDA threads; as many as the threads need if 0."""
        launch = memory.launch(dim, again)
        blocks = blocks or -(-memory.threads // 2)
        self.library[f"run_{symbol}"](args, ctypes.byref(launch), blocks, 2, int(down))
