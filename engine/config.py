"""Settings of the engine. Set them as attributes: `engine.config.verify_ir = True`.

They are read when they are used, so that a change takes effect from then on. Other
attributes may be set too and mean nothing: programs written for Warp set some.
"""

from __future__ import annotations

import os
import warnings
from enum import IntEnum
from typing import Literal


class DeterministicMode(IntEnum):
    """Warp's names for `deterministic`; both of the latter mean True."""

    NOT_GUARANTEED = 0
    RUN_TO_RUN = 1
    GPU_TO_GPU = 2


class LaunchArrayAccessMode(IntEnum):
    """Warp's names for `launch_array_access_mode`, which means nothing here."""

    RELAXED = 0
    CHECKED = 1
    STRICT = 2


def _number(name: str, default: int = 0, least: int = 0) -> int:
    """A number from `least` on, from an environment variable; a default where there is none."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    digits = text.removeprefix("-") if least < 0 else text
    if not digits.isdecimal() or int(text) < least:
        what = f"a number from {least} on" if least else "a number"
        warnings.warn(f"${name} is {text!r}, not {what}: it is ignored", stacklevel=2)
        return default
    return int(text)


# ---- devices

# Where arrays and launches go that name no device.
device: str = "cpu"

# Threads of the CPU that a launch may use. 0: as many as there are cores for this process.
# $ENGINE_NUM_THREADS is what it is at first.
num_threads: int = _number("ENGINE_NUM_THREADS")
# Whether runs give the same bits each time. None: on the CPU, for any number of threads; on a GPU
# not where threads add floats to one element, whose order is another one each time. False gives it
# up on the CPU, too, where it would cost much: sums into large arrays at indices that come from
# data. True: on GPUs, too, where launches for which the order of threads matters run them one after
# the other, or in one block (docs/cuda.md says what that costs), and gradients are not refused.
# The module option of this name says it for the kernels of a module, on GPUs.
deterministic: bool | DeterministicMode | None = None

# After how many launches of one kernel and grid compiled code takes over Python's share of them:
# whole launches, what tapes record of them, backward passes. Results are the same bits. 0: from
# the second launch on, and the program waits until that code is there. -1: never.
# $ENGINE_NATIVE_AFTER is what it is at first.
native_after: int = _number("ENGINE_NATIVE_AFTER", 200, -1)

# ---- compilation

# Where compiled kernels are kept; $ENGINE_CACHE_DIR comes first, and without either it is
# adtool/kernels in the user's cache folder.
cache_dir: str | None = None
# The cache is trimmed to this many bytes, least recently used kernels first. 0: never.
cache_limit_bytes: int = 1 << 30
# The C++ compiler, with arguments; $CXX comes first, and without either g++, clang++, c++ and
# the `ziglang` package are tried in this order.
cxx: str | None = None
# Seconds after which a compiler run is given up.
compile_timeout: float = 300.0
# The most that the C++ compiler may do for a kernel that is compiled from then on: 1, 2 or 3, which
# is what None means. Less takes the compiler less time, and the kernel more; results are the same
# bits. $ENGINE_OPTIMIZATION_LEVEL is what it is at first. The module option of this name means
# nothing.
optimization_level: int | None = _number("ENGINE_OPTIMIZATION_LEVEL") or None
# Compile with debug information, and with `#line` directives that point to the Python source.
debug_info: bool = False
# Kernels that are compiled from then on call the C library for functions of real numbers (sin, exp,
# pow and their like), one number at a time. Else they are functions of the engine's own, of which
# compilers make vectors; docs/python.md says how exact they are.
precise_math: bool = False
# "debug" compiles the `assert` statements of kernels that are launched for the first time from
# then on (the module option "mode" does it for one module); else they mean nothing. Their launches
# and adjoints are watched, too: after an access outside of an array, view, vector or matrix, which
# gives zero where it reads and does nothing where it writes, they raise LaunchError (E211).
mode: Literal["release", "debug"] = "release"
# What a failed `expect_eq`, `expect_neq` or `expect_near` does after its message is printed:
# raise an error at the end of the launch, or nothing, as in Warp.
expect: Literal["raise", "print"] = "raise"
# "strict": integers of a NumPy array that the array to be made has no place for are refused (E206),
# those that a vector has no place for too (E202), and `requires_grad` of integers, which means
# nothing, is warned of. "lenient", as in Warp: they wrap, and nobody is warned.
integers: Literal["strict", "lenient"] = "strict"
# The element types that `atomic_add` and its like take: "all" numbers, or only those that Warp's
# take, "native" to GPUs: no integers of 8 or 16 bits, and halves for sums alone (E104).
atomics: Literal["all", "native"] = "all"
# What the axes of a NumPy array are that `from_numpy` is given without a dtype: "dimensions" of the
# array, or "elements", as in Warp: two axes are vectors then, three are matrices.
inner_axes: Literal["dimensions", "elements"] = "dimensions"
# What a launch or a copy does that would write memory of a JAX array, or memory that `to_jax` gave
# away and that JAX still holds, which is immutable to JAX: "refuse" (E206), or "warn" once and
# write it, as Warp does without a word. None: "warn" where `warp` is a name of the engine, else
# "refuse".
immutable: Literal["refuse", "warn"] | None = None
# Check the IR between passes.
verify_ir: bool = os.environ.get("ENGINE_VERIFY_IR", "") not in ("", "0")
# Accepted for programs written for Warp; loops are unrolled by the C++ compiler.
max_unroll: int = 16

# Whether gradients flow through launches of kernels whose module and decorator say nothing.
enable_backward: bool = True

# ---- tape

# How a tape remembers the inputs of launches: copied when they are about to change (not where
# `overwrites` is "present"), copied at once, or not at all.
tape_snapshots: Literal["lazy", "eager", "off"] = "lazy"
# Bytes that remembered inputs may take up in all. What comes later is not remembered, and its
# launches cannot be checked.
snapshot_limit_bytes: int = 4 << 30
# Memory that user code may change unseen (a NumPy view of it is alive, or it came from outside)
# is copied at every recorded launch that reads it, up to this size of one array. What is larger
# is taken to change by the engine alone, as costs nothing. `adtool check` copies up to 64 MiB.
snapshot_exposed_bytes: int = 0
# Bytes that the values which one thread saves for its reverse sweep may take up. Loops that
# would save more are run once more instead, segment by segment (see `engine.ad.checkpoints`).
# 0: any number.
stack_limit_bytes: int = 128 << 20
# Whether a GPU runs captured sequences by itself, where that comes to the same.
device_graphs: bool = True

# Bytes that a recorded launch may save of what it overwrites, for its adjoint.
journal_limit_bytes: int = 4 << 30
# What a backward pass reads where a later operation of the same tape overwrote what a launch
# had read:
# "restore": what the launch read, so that the gradient is that of what ran.
# "warn": the same, and says once an array what it costs, and that Warp would be wrong there.
# "error": nothing; it is refused (E408) before anything is changed.
# "present": what the array contains at present, as Warp does. Nothing is copied for it.
# What anything else wrote (an optimizer between two backward passes) is read as it is at present.
overwrites: Literal["restore", "present", "warn", "error"] = "restore"

# Warn (UserWarning) as soon as an array is written on a tape that an earlier launch has read, or
# that the kernel itself has read before: by whole arrays, as Warp does. `adtool check` finds what
# matters, by elements. Kernels are not built again for it.
verify_autograd_array_access: bool = False

# ---- what is said, and what is looked at

# Which messages of `engine.get_logger()` are given: those of this level or above (`LOG_DEBUG` 10,
# `LOG_INFO` 20, `LOG_WARNING` 30, `LOG_ERROR` 40). Warnings are Python's: filters apply to them.
log_level: int = 20
# Log each launch: its kernel, dimensions and arguments, at the level of information.
print_launches: bool = False
# Log which kernels a GPU runs one thread after the other, by `deterministic`, and why.
deterministic_debug: bool = False
# Look at the floats that each launch and each adjoint has written, and print where one is NaN or
# infinite. Each launch costs a pass over the arrays that it writes.
verify_fp: bool = False

# ---- names that Warp has for settings above

# The same as `cache_dir`, where that is None.
kernel_cache_dir: str | None = None

# ---- accepted for programs written for Warp; they change nothing here, but for the module option
# of the same name where there is one

verbose: bool = False
quiet: bool = False
verbose_warnings: bool = False
version: str = "1.19.0"  # of Warp, whose programs these names are for
cache_kernels: bool = True
load_module_max_workers: int | None = 0
cpu_compiler_flags: str | None = None
lineinfo: bool = False
line_directives: bool = True
compile_time_trace: bool = False
enable_vector_component_overwrites: bool = False
enable_cpu_blocks: bool = False
default_grid_stride: bool = True
enable_tiles_in_stack_memory: bool | None = True
enable_graph_capture_module_load_by_default: bool = True
enable_mempools_at_init: bool = True
enable_mathdx_gemm: bool = True
enable_mathdx_solver: bool = True
enable_mathdx_fft: bool = True
launch_array_access_mode: int = 0
track_memory: bool = False
use_precompiled_headers: bool = True
verify_cuda: bool = False
cuda_output: str | None = None
cuda_arch_suffix: str | None = None
ptx_target_arch: int | None = None
llvm_cuda: bool = False
legacy_cpu_linker: bool = False
deterministic_max_records: int = 0
