"""The accesses of a compiled kernel's threads to its arrays, for each launch.

Works on the arguments as kernels read them, so that it serves every form and every caller.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Literal

from engine.cached import cached_property
from engine.classes import dataclass
from engine.codegen.layout import arg_offsets
from engine.compile.remembered import Damaged
from engine.lang.strided import Elements, byte_range, may_meet, overlaps_itself
from engine.lang.types import ArrayType, ScalarType, Type, is_integer, shape_of

if TYPE_CHECKING:
    from engine.ad.threads import Box, Classes, Collected, Given
    from engine.ad.threads.collect import Touch
    from engine.compile.remembered import Form
    from engine.ir.nodes import Function

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
        return byte_range(self.address, self.shape, self.strides, self.type.element.size)

    @property
    def overlaps_itself(self) -> bool:
        """Whether two of its elements may share memory."""
        return overlaps_itself(self.shape, self.strides, self.type.element.size)

    @property
    def scalars(self) -> tuple[int, ...]:
        """Its shape as an array of scalars."""
        return (*self.shape, *shape_of(self.type.element))

    @property
    def elements(self) -> Elements:
        """Where its elements lie."""
        return Elements(self.address, *self.ends, self.strides, self.type.element.size)

    def same_as(self, other: Placed) -> bool:
        """Whether equal indices are the same element, and others are not."""
        return (self.address, self.shape, self.strides, self.type.element.size) == (
            other.address, other.shape, other.strides, other.type.element.size,
        )  # fmt: skip

    def meets(self, other: Placed) -> bool:
        """Whether the two may share memory."""
        return may_meet(self.elements, other.elements)


class Threads:
    """Of one kernel. Looks at it when it is first asked.

    adjoint: of a recorded form, gives those of its adjoint.
    """

    _look: Callable[[], Collected] | None = None

    def __init__(self, fn: Function, adjoint: Callable[[], Threads] | None = None) -> None:
        self._adjoint = adjoint
        self._begin(lambda: fn, [(p.name, p.type) for p in fn.params], fn.adjoints)

    @classmethod
    def of_kept(
        cls, fn: Callable[[], Function], form: Form, adjoint: Callable[[], Threads] | None = None
    ) -> Threads:
        """Those of a kernel that an earlier process looked at."""
        made = cls.__new__(cls)
        made._adjoint, made._look = adjoint, form.collected
        made.most, made.ends_soon = form.most, form.ends_soon
        made._begin(fn, form.params, form.adjoints)
        return made

    def _begin(
        self, fn: Callable[[], Function], params: Sequence[tuple[str, Type]],
        adjoints: Sequence[tuple[str, str]],
    ) -> None:  # fmt: skip
        self._fn = fn
        # Of an adjoint: by array parameters, those that hold their gradients.
        self.gradients = dict(adjoints)
        self._params = params
        self._reach: dict[object, list[tuple[int, int]]] = {}
        self._known: dict[object, Classes] = {}
        self._seen: dict[object, Classes] = {}
        self._filled: dict[object, bool] = {}
        # For backends: what they make of launches, and of those that are alike.
        self.schedules: dict[object, object] = {}
        self.alike: dict[object, object] = {}

    @property
    def fn(self) -> Function:
        """The kernel."""
        return self._fn()

    # How arguments are read: of small launches nobody asks.

    @cached_property
    def _types(self) -> list[Type]:
        return [t for _, t in self._params]

    @cached_property
    def _arrays(self) -> list[tuple[str, ArrayType, int, struct.Struct]]:
        return [
            (name, t, at, struct.Struct(f"<{1 + 2 * t.ndim}q"))
            for (name, t), at in zip(self._params, arg_offsets(self._types), strict=False)
            if isinstance(t, ArrayType)
        ]

    @cached_property
    def _integers(self) -> list[tuple[str, int, ScalarType]]:
        return [
            (name, at, t)
            for (name, t), at in zip(self._params, arg_offsets(self._types), strict=False)
            if isinstance(t, ScalarType) and is_integer(t)
        ]

    @cached_property
    def _layout(self) -> struct.Struct:
        return struct.Struct(_layout(self._types))

    @cached_property
    def _addresses(self) -> struct.Struct:
        return struct.Struct(_addresses(self._types))

    @cached_property
    def collected(self) -> Collected:
        if self._look is not None:
            with contextlib.suppress(Damaged):
                return self._look()
        from engine.ad.threads import collect

        return collect(self.fn)

    def wins(self, names: Sequence[str]) -> Literal["deal", "leave", "mixed"]:
        """What the adjoint does with the gradients of arrays that atomics replace values of.

        `deal`: only the threads take them that replaced a value, so that a winner is all that
        counts; `leave`: none of them does so; `mixed`: there is more to it.
        """
        if self._adjoint is None:
            return "leave"
        adjoint = self._adjoint()
        mine = {adjoint.gradients[k] for k in names if k in adjoint.gradients}
        kinds = {a.kind for a in adjoint.collected.accesses if a.array in mine}
        if not adjoint.collected.known and mine:
            return "mixed"
        if "take" not in kinds:
            return "leave"
        return "deal" if kinds == {"take"} else "mixed"

    @cached_property
    def most(self) -> int | None:
        """Operations of a thread, about; None where loops decide."""
        costs = self.collected.costs
        return None if any(t for t, _ in costs) else math.ceil(sum(n for _, n in costs))

    @cached_property
    def ends_soon(self) -> bool:
        """Whether a thread does nothing that may take any time: loops, and code of users' own."""
        from engine.ir.nodes import callees

        called = (self.fn, *callees(self.fn))
        return self.most is not None and all(f.native is None for f in called)

    def arrays(self, args: bytes) -> list[Placed]:
        """The array arguments of a launch."""
        out = []
        for name, t, at, form in self._arrays:
            address, *rest = form.unpack_from(args, at)
            out.append(Placed(name, t, at, address, tuple(rest[: t.ndim]), tuple(rest[t.ndim :])))
        return out

    def layout(self, args: bytes) -> tuple[int, ...]:
        """All that decides which elements threads may touch, but for the values in arrays.

        Extents and strides of arrays, and integers, in the order of the parameters; whatever
        follows the arguments does not count.
        """
        return self._layout.unpack_from(args)

    def apart(self, args: bytes) -> tuple[object, ...]:
        """The layout, which arrays are there, and how those lie whose memory may meet.

        Launches for which this is equal are the same to `classes`.
        """
        layout = self._layout.unpack_from(args)
        reach = self._reach.get(layout)
        if reach is None:
            if len(self._reach) >= _KEPT:
                self._reach.clear()
            reach = self._reach[layout] = [
                (0, 0) if 0 in a.shape else (a.ends[0] - a.address, a.ends[1] - a.address)
                for a in self.arrays(args)
            ]
        addresses, last, meeting = self._addresses.unpack_from(args), 0, False
        spans = sorted(
            (at + lo, at + hi, k)
            for k, (at, (lo, hi)) in enumerate(zip(addresses, reach, strict=True))
            if at and lo < hi
        )
        for begin, end, _ in spans:
            meeting |= begin < last
            last = max(last, end)
        there = tuple(map(bool, addresses))
        return (layout, there, _relative(spans, addresses)) if meeting else (layout, there)

    def classes(self, dim: tuple[int, ...], args: bytes, arrays: list[Placed]) -> Classes:
        """What a launch does. arrays: those of `args`."""
        from engine.ad.threads import classify

        given = self.given(args, arrays)
        there = [a for a in arrays if not a.empty]
        same: dict[str, int] = {}
        tangled: list[tuple[str, str]] = []
        for k, a in enumerate(there):
            twin = next((b for b in there[:k] if b.same_as(a)), None)
            same[a.name] = same[twin.name] if twin is not None else k
            if a.overlaps_itself:
                tangled.append((a.name, a.name))
            tangled += [(a.name, b.name) for b in there[:k] if not b.same_as(a)
                        and a.meets(b)]  # fmt: skip
        key = (dim, tuple(given.values()), tuple(same.items()), tuple(tangled))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = classify(self.collected, dim, given, same, tangled)
            self._known[key] = found
        return found

    def classes_of(self, dim: tuple[int, ...], args: bytes) -> Classes:
        """The same, by how its arrays lie to each other, where that was seen before."""
        key = (dim, self.apart(args))
        found = self._seen.get(key)
        if found is None:
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            found = self._seen[key] = self.classes(dim, args, self.arrays(args))
        return found

    def fills(self, name: str, dim: tuple[int, ...], args: bytes, kind: Touch = "store") -> bool:
        """Whether a launch certainly stores every element of an array argument.

        kind: `take` for gradients that are read and cleared.
        """
        from engine.ad.threads import fills

        arrays = self.arrays(args)
        given = self.given(args, arrays)
        (shape,) = (a.shape for a in arrays if a.name == name)
        key = (name, dim, shape, kind, tuple(given.values()))
        if key not in self._filled:
            if len(self._filled) >= _KEPT:
                self._filled.clear()
            self._filled[key] = fills(self.fn, self.collected, name, shape, dim, given, kind)
        return self._filled[key]

    def reach(
        self, name: str, kinds: Collection[Touch], dim: tuple[int, ...], args: bytes
    ) -> list[Box]:
        """Boxes that hold all elements of an array argument which a launch touches so."""
        from engine.ad.threads import reach

        arrays = self.arrays(args)
        (shape,) = (a.shape for a in arrays if a.name == name)
        return reach(self.collected, name, kinds, shape, dim, self.given(args, arrays))

    def given(self, args: bytes, arrays: list[Placed]) -> dict[Given, int]:
        """The integers and extents that decide anything, always in one order."""
        from engine.ad.threads import Given

        given = {Given(a.name, d): n for a in arrays for d, n in enumerate(a.shape)}
        for name, at, t in self._integers:
            (given[Given(name)],) = struct.unpack_from(_FORMATS[t.kind, t.bits], args, at)
        return {s: given[s] for s in self.collected.symbols if s in given}


def _relative(spans: list[tuple[int, int, int]], addresses: Sequence[int]) -> frozenset[object]:
    """Where arrays lie in the stretches of memory that they cover, by the first array of each.

    spans: begin, end and number of each array, sorted.
    """
    stretches: list[list[int]] = []
    last = 0
    for begin, end, k in spans:
        if begin >= last:
            stretches.append([])
        stretches[-1].append(k)
        last = max(last, end)
    return frozenset(
        (min(some), k, addresses[k] - addresses[min(some)])
        for some in stretches if len(some) > 1 for k in some
    )  # fmt: skip


def _addresses(types: Sequence[Type]) -> str:
    """Those of the arrays among the arguments, as `struct` reads them."""
    out, at = ["<"], 0
    for t, start in zip(types, arg_offsets(types), strict=False):
        if isinstance(t, ArrayType):
            out.append(f"{start - at}xq")
            at = start + 8
    return "".join(out)


def _layout(types: Sequence[Type]) -> str:
    """The arguments as `struct` reads them, without addresses and floats."""
    out, at = ["<"], 0
    for t, start in zip(types, arg_offsets(types), strict=False):
        out.append(f"{start - at}x")
        at = start
        if isinstance(t, ArrayType):
            out.append(f"8x{2 * t.ndim}q")
            at += 8 + 16 * t.ndim
        elif isinstance(t, ScalarType) and is_integer(t):
            out.append(_FORMATS[t.kind, t.bits][1])
            at += t.bits // 8
    return "".join(out)


_FORMATS = {
    ("i", 8): "<b", ("i", 16): "<h", ("i", 32): "<i", ("i", 64): "<q",
    ("u", 8): "<B", ("u", 16): "<H", ("u", 32): "<I", ("u", 64): "<Q",
}  # fmt: skip
