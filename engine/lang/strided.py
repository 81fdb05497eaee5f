"""The positions of elements of strided arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.classes import NamedTuple


class Elements(NamedTuple):
    """The elements of an array. address: of the first. lo, hi: the lowest address, and the one

    past the highest. strides, size: in bytes.
    """

    address: int
    lo: int
    hi: int
    strides: Sequence[int]
    size: int


def row_major(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a contiguous array."""
    out = []
    step = itemsize
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(reversed(out))


def byte_range(
    ptr: int, shape: Sequence[int], strides: Sequence[int], itemsize: int
) -> tuple[int, int]:
    """Lowest and one past the highest address of a strided array; equal for an empty one."""
    lo = hi = ptr
    for n, s in zip(shape, strides, strict=True):
        if n == 0:
            return ptr, ptr
        if s < 0:
            lo += (n - 1) * s
        else:
            hi += (n - 1) * s
    return lo, hi + itemsize


# Addresses and strides have to be below: the upper half of what 64 bits count is the system's.
ADDRESSES = 1 << 63


def misplaced(
    address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int, align: int = 1
) -> str:
    """Why no memory has such elements; empty where it may.

    address: of the first. strides: in bytes. align: what addresses of elements are multiples of.
    """
    if any(not -ADDRESSES <= s < ADDRESSES for s in strides):
        return f"strides {tuple(strides)} do not fit into 64 bits"
    lo, hi = byte_range(address, shape, strides, itemsize)
    if address < 0 or lo < 0:
        return f"its elements begin at the address {lo}, which is negative"
    if hi > ADDRESSES:
        return f"its elements end at the address {hi:#x}, which is beyond the address space"
    if lo == hi:
        return ""
    if not lo:
        return "its elements begin at the address 0"
    if address % align:
        return f"the address {address:#x} is not a multiple of {align}"
    if any(n > 1 and s % align for n, s in zip(shape, strides, strict=True)):
        return f"strides {tuple(strides)} are not multiples of {align} bytes"
    return ""


def may_meet(a: Elements, b: Elements) -> bool:
    """Whether an element of one array may share memory with one of the other.

    False is certain. Fields of structs lie side by side: where both arrays go in steps of
    one size, what counts is where in a step their elements lie.
    """
    if a.lo >= b.hi or b.lo >= a.hi:
        return False
    step = math.gcd(*a.strides, *b.strides)
    if step == 0:
        return True
    apart = (b.address - a.address) % step
    return apart < a.size or step - apart < b.size


def overlaps_itself(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether two elements of a strided array may share memory."""
    reach = itemsize
    for step, count in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True)):
        if count > 1:
            if step < reach:
                return True
            reach += step * (count - 1)
    return False
