"""The layout of a kernel's arguments in the argument block.

Arguments follow each other in parameter order, each padded to a multiple of 8 bytes:
an array is a pointer, `ndim` lengths and `ndim` strides in bytes (all 64 bit); a
scalar, vector or matrix is its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.lang.types import ArrayType, Type

SLOT = 8  # bytes; arguments and saved values take whole slots


# Words of `watch_t` before its faults, and of `fault_t`, in watch.h.
HEAD, FAULT = 4, 14


def watch_words(places: int) -> int:
    """Words of a `watch_t` with room for what is seen at so many places."""
    return HEAD + FAULT * max(places, 1)


def arg_bytes(t: Type) -> int:
    """Bytes that an argument of a type takes."""
    if isinstance(t, ArrayType):
        return SLOT * (1 + 2 * t.ndim)
    return -(-t.size // SLOT) * SLOT


def arg_offsets(types: Sequence[Type]) -> tuple[int, ...]:
    """The offset of each argument in bytes, and of the end of the block."""
    out = [0]
    for t in types:
        out.append(out[-1] + arg_bytes(t))
    return tuple(out)
