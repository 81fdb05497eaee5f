"""What the threads of a compiled kernel do to its arrays, for each launch of it.

Works on the arguments as kernels read them, so that it serves every form and every caller.
"""

from __future__ import annotations

import functools
import math
import struct
from dataclasses import dataclass

from engine.ad.threads import Classes, Collected, Given, classify, collect, fills
from engine.codegen.layout import arg_offsets
from engine.ir.nodes import Function
from engine.lang.types import ArrayType, ScalarType, is_integer

_KEPT = 256  # launches that are remembered


@dataclass(frozen=True)
class Placed:
    """An array argument. at: its offset in the arguments. strides: in bytes."""

    name: str
    type: ArrayType
    at: int
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def empty(self) -> bool:
        return self.address == 0 or 0 in self.shape

    @property
    def ends(self) -> tuple[int, int]:
        """The first byte of its memory, and the one after the last."""
        low = high = self.address
        for n, s in zip(self.shape, self.strides, strict=True):
            low, high = low + min(s * (n - 1), 0), high + max(s * (n - 1), 0)
        return low, high + self.type.element.size

    @property
    def overlaps_itself(self) -> bool:
        """Whether two of its elements may share memory."""
        reach = self.type.element.size
        steps = sorted((abs(s), n) for s, n in zip(self.strides, self.shape, strict=True) if n > 1)
        for step, count in steps:
            if step < reach:
                return True
            reach += step * (count - 1)
        return False

    def same_as(self, other: Placed) -> bool:
        """Whether equal indices are the same element, and others are not."""
        return (self.address, self.shape, self.strides, self.type.element.size) == (
            other.address, other.shape, other.strides, other.type.element.size,
        )  # fmt: skip

    def meets(self, other: Placed) -> bool:
        """Whether an element of one may share memory with one of the other; False is certain.

        Fields of structs lie side by side: where both go in steps of one size, what counts is
        where in a step their elements lie.
        """
        (a, b), (c, d) = self.ends, other.ends
        if a >= d or c >= b:
            return False
        step = math.gcd(*self.strides, *other.strides)
        if step == 0:
            return True
        apart = (other.address - self.address) % step
        return apart < self.type.element.size or step - apart < other.type.element.size


class Threads:
    """Of one kernel. Looks at it when it is first asked."""

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        offsets = arg_offsets([p.type for p in fn.params])
        self._arrays = [
            (p.name, p.type, at, struct.Struct(f"<{1 + 2 * p.type.ndim}q"))
            for p, at in zip(fn.params, offsets, strict=False)
            if isinstance(p.type, ArrayType)
        ]
        self._integers = [
            (p.name, at, p.type)
            for p, at in zip(fn.params, offsets, strict=False)
            if isinstance(p.type, ScalarType) and is_integer(p.type)
        ]
        self._known: dict[object, Classes] = {}
        self._filled: dict[object, bool] = {}
        # For backends: what they make of launches.
        self.schedules: dict[object, object] = {}

    @functools.cached_property
    def collected(self) -> Collected:
        return collect(self.fn)

    @functools.cached_property
    def most(self) -> int | None:
        """Operations of a thread that does all there is to do; None where loops decide."""
        costs = self.collected.costs
        return None if any(turns for turns, _ in costs) else sum(n for _, n in costs)

    def arrays(self, args: bytes) -> list[Placed]:
        """The array arguments of a launch."""
        out = []
        for name, t, at, form in self._arrays:
            address, *rest = form.unpack_from(args, at)
            out.append(Placed(name, t, at, address, tuple(rest[: t.ndim]), tuple(rest[t.ndim :])))
        return out

    def classes(self, dim: tuple[int, ...], args: bytes, arrays: list[Placed]) -> Classes:
        """What a launch does. arrays: those of `args`."""
        given = self._given(args, arrays)
        there = [a for a in arrays if not a.empty]
        same: dict[str, int] = {}
        tangled: list[tuple[str, str]] = []
        for k, a in enumerate(there):
            twin = next((b for b in there[:k] if b.same_as(a)), None)
            same[a.name] = same[twin.name] if twin is not None else k
            if a.overlaps_itself:
                tangled.append((a.name, a.name))
            tangled += [(a.name, b.name) for b in there[:k] if not b.same_as(a) and b.meets(a)]
        given = {s: given[s] for s in self.collected.symbols if s in given}
        key = (dim, tuple(given.values()), tuple(same.items()), tuple(tangled))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = classify(self.collected, dim, given, same, tangled)
            self._known[key] = found
        return found

    def fills(self, name: str, dim: tuple[int, ...], args: bytes) -> bool:
        """Whether a launch certainly stores every element of an array argument."""
        arrays = self.arrays(args)
        given = self._given(args, arrays)
        key = (name, dim, tuple(given.items()))
        if key not in self._filled:
            if len(self._filled) >= _KEPT:
                self._filled.clear()
            (shape,) = (a.shape for a in arrays if a.name == name)
            self._filled[key] = fills(self.fn, self.collected, name, shape, dim, given)
        return self._filled[key]

    def _given(self, args: bytes, arrays: list[Placed]) -> dict[Given, int]:
        given = {Given(a.name, d): n for a in arrays for d, n in enumerate(a.shape)}
        for name, at, t in self._integers:
            (given[Given(name)],) = struct.unpack_from(_FORMATS[t.kind, t.bits], args, at)
        return given


_FORMATS = {
    ("i", 8): "<b", ("i", 16): "<h", ("i", 32): "<i", ("i", 64): "<q",
    ("u", 8): "<B", ("u", 16): "<H", ("u", 32): "<I", ("u", 64): "<Q",
}  # fmt: skip
