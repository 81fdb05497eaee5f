"""Memory with the layout of a tape's arrays, in their precision or in float64.

Arrays that share or overlap in memory share or overlap here too: an element's place follows
from its address. In lifted memory every float has eight bytes, so that addresses within a
block of float32 count double; floats of different widths, and integers, lie in planes of
their own.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.tape.planes import Block, Planes, block_of
from engine.cached import cached_property
from engine.classes import dataclass
from engine.lang.strided import byte_range
from engine.lang.structs import StructType, value_leaves
from engine.lang.types import FLOAT64, ArrayType, with_scalar
from engine.runtime.annotation import ElementInfo, element_info
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.device import HOST
from engine.runtime.pack import pack_numpy
from engine.runtime.storage import Storage

Array = NDArray[Any]
Span = tuple[int, int]

NO_BLOCK = Block({})
FEW = 8  # arrays in one stretch that are compared one by one


@dataclass(frozen=True)
class Placement:
    """Where the elements of an array of scalars, vectors or matrices are, and their gradients.

    root: names the gradient's memory (see `engine.tape.outline.root_of`). source: the array,
    or its outline.
    """

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    info: ElementInfo
    root: int
    source: Any

    @property
    def lo(self) -> int:
        """The lowest address."""
        return self._ends[0]

    @property
    def hi(self) -> int:
        """One past the highest address; the lowest for empty arrays."""
        return self._ends[1]

    @cached_property
    def _ends(self) -> Span:
        lo = hi = self.ptr
        if not self.size:
            return lo, lo
        for n, step in zip(self.shape, self.strides, strict=True):
            if step < 0:
                lo += (n - 1) * step
            else:
                hi += (n - 1) * step
        return lo, hi + self.info.size

    @property
    def _info(self) -> ElementInfo:
        return self.info

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for parts with the same elements."""
        return self.ptr, self.shape, self.strides, id(self.info)

    @property
    def float(self) -> bool:
        """Whether its elements can move."""
        return self.info.floating

    @property
    def wants(self) -> bool:
        """Whether a gradient flows to it."""
        return self.float and bool(self.source.requires_grad)

    @cached_property
    def size(self) -> int:
        """Scalars."""
        return math.prod(self.shape) * math.prod(self.info.inner)


def placements(a: Any, root: int) -> list[Placement]:
    """An array, or the outline of one: itself, or its leaf fields."""
    kind = a._info.kind
    if not isinstance(kind, StructType):
        return [Placement(a.ptr, tuple(a.shape), tuple(a.strides), a._info, root, a)]
    out = []
    for leaf in value_leaves(kind):
        assert not isinstance(leaf.type, ArrayType)
        info = element_info(leaf.type)
        out.append(Placement(a.ptr + leaf.offset, tuple(a.shape), tuple(a.strides), info, root, a))
    return out


def stretches(extents: Iterable[Span]) -> list[Span]:
    """The address ranges, those that overlap made one, in order."""
    out: list[list[int]] = []
    for lo, hi in sorted(e for e in extents if e[0] < e[1]):
        if out and lo < out[-1][1]:
            out[-1][1] = max(hi, out[-1][1])
        else:
            out.append([lo, hi])
    return [(lo, hi) for lo, hi in out]


class Region:
    """Elements of some arrays, to be asked whether an array has any of them.

    Few arrays in one stretch are compared one by one; where there are many, as rows of a
    trajectory, each byte of the stretch is marked, so that asking does not take longer and longer.
    """

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._starts = [lo for lo, _ in spans]
        self._parts: dict[int, dict[Any, Placement]] = {}
        self._marks: dict[int, Array] = {}

    def add(self, p: Placement) -> None:
        """Adds the elements of an array."""
        if not p.size:
            return
        k = bisect_right(self._starts, p.lo)
        known = self._parts.setdefault(k, {})
        if p.key in known:
            return
        known[p.key] = p
        if k in self._marks:
            self._bytes(k, p)[...] = 1
        elif len(known) > FEW:
            lo, hi = self._spans[k - 1]
            self._marks[k] = np.zeros(hi - lo, np.uint8)
            for q in known.values():
                self._bytes(k, q)[...] = 1

    def meets(self, p: Placement) -> bool:
        """Whether the array may have some of them; False is certain."""
        if not p.size:
            return False
        k = bisect_right(self._starts, p.lo)
        known = self._parts.get(k, {})
        if p.key in known:
            return True
        if k in self._marks:
            return bool(self._bytes(k, p).any())
        return any(may_meet(p, q) for q in known.values())

    def _bytes(self, k: int, p: Placement) -> Array:
        return bytes_of(p, self._marks[k], self._spans[k - 1][0])


def bytes_of(p: Placement, plane: Array, lo: int) -> Array:
    """The bytes that an array's elements take up in a plane that begins at an address."""
    shape = p.shape + p.info.inner + (np.dtype(p.info.numpy).itemsize,)
    view: Array = np.ndarray(shape, np.uint8, plane, p.ptr - lo, p.strides + p.info.steps + (1,))
    return view


class Memory:
    """Zeroed memory for everything that lies in some stretches of addresses, made when needed."""

    def __init__(
        self, spans: Sequence[Span], lifted: bool, starts: Sequence[int] | None = None,
        block: Block = NO_BLOCK,
    ) -> None:  # fmt: skip
        """starts: of the stretches, where there is a list of them already.

        block: which planes are parts of one block; others are by themselves.
        """
        self._spans = spans
        self._starts = [lo for lo, _ in spans] if starts is None else starts
        self._lifted = lifted
        self._block = block
        self.planes = Planes(block)
        # By identity: the arrays of a tape are met again and again.
        self._views: dict[int, tuple[Placement, Array]] = {}
        self._packed: dict[tuple[int, int], bytes] = {}

    def view(self, p: Placement) -> Array:
        """The elements of an array, components last. Empty arrays lie nowhere."""
        known = self._views.get(id(p))
        if known is None:
            known = self._views[id(p)] = p, self._view(p)
        return known[1]

    def packed(self, p: Placement, ndim: int) -> bytes:
        """An array as an argument of kernels, of so many dimensions."""
        known = self._packed.get((id(p), ndim))
        if known is None:
            known = self._packed[id(p), ndim] = pack_numpy(self.view(p), ndim)
        return known

    def _view(self, p: Placement) -> Array:
        info = p.info
        factor = _factor(p, self._lifted)
        dtype = np.dtype(np.float64) if self._lifted and p.float else np.dtype(info.numpy)
        if not p.size:
            return np.zeros(p.shape + info.inner, dtype)
        k = bisect_right(self._starts, p.lo) - 1
        lo, hi = self._spans[k]
        plane = self.planes.get((k, factor), (hi - lo) * factor)
        strides = tuple(s * factor for s in p.strides + info.steps)
        at = (p.ptr - lo) * factor
        view: Array = np.ndarray(p.shape + info.inner, dtype, plane, at, strides)
        return view

    def take(self, other: Memory) -> None:
        """Becomes a copy of memory of the same layout."""
        self.planes.take(other.planes)

    def copy(self) -> Memory:
        """A copy of its own."""
        out = self.like()
        out.take(self)
        return out

    def like(self) -> Memory:
        """Memory of the same layout, of which nothing is made yet."""
        return Memory(self._spans, self._lifted, self._starts, self._block)

    def zeros(self) -> Memory:
        """The same, with as many planes made."""
        out = self.like()
        out.planes = self.planes.zeros()
        return out

    def clear(self) -> None:
        """Sets all to zero."""
        self.planes.clear()

    def dot(self, other: Memory) -> float:
        """The inner product of two lifted memories that hold nothing but floats."""
        return self.planes.dot(other.planes)


def _factor(p: Placement, lifted: bool) -> int:
    """Bytes per byte of an array."""
    return 8 // int(p.info.numpy.itemsize) if lifted and p.float else 1


def _block(placed: Iterable[tuple[int, Placement]], spans: Sequence[Span], lifted: bool) -> Block:
    """For all planes of some arrays, given with the numbers of their stretches, in this order."""
    keys = ((k, _factor(p, lifted)) for k, p in placed)
    return block_of(((k, f), (spans[k][1] - spans[k][0]) * f) for k, f in keys)


class Gradients:
    """Lifted gradients of all arrays, each in the memory of the gradient that it is a view of."""

    def __init__(self, spans: Sequence[Span], block: Block = NO_BLOCK) -> None:
        """block: of the tangents that they are multiplied with."""
        self._spans = spans
        self._starts = [lo for lo, _ in spans]
        # Most stretches belong to one root. Its gradient is in this, those of others in theirs.
        self._main = Memory(spans, True, self._starts, block)
        self._first: dict[int, int] = {}
        self._others: dict[int, Memory] = {}
        # Which of the others have something in a stretch.
        self._within: dict[int, dict[int, Memory]] = {}

    @property
    def memories(self) -> list[Memory]:
        """All memories that gradients are in."""
        return [self._main, *self._others.values()]

    def view(self, p: Placement) -> Array:
        """The gradient of an array."""
        return self._of(p).view(p)

    def _of(self, p: Placement) -> Memory:
        if not p.size:
            return self._main
        k = bisect_right(self._starts, p.lo)
        if self._first.setdefault(k, p.root) == p.root:
            return self._main
        memory = self._others.get(p.root)
        if memory is None:
            memory = self._others[p.root] = Memory(self._spans, True, self._starts)
        self._within.setdefault(k, {})[p.root] = memory
        return memory

    def packed(self, p: Placement, ndim: int) -> bytes:
        """The gradient of an array as an argument of kernels, of so many dimensions."""
        return self._of(p).packed(p, ndim)

    def total(self, p: Placement) -> Array:
        """The sum over all gradients of an array's memory."""
        out = np.zeros(p.shape + p.info.inner)
        k = bisect_right(self._starts, p.lo)
        if p.size and k in self._first:
            out += self._main.view(p)
        for memory in self._within.get(k, {}).values():
            out += memory.view(p)
        return out

    def clear(self) -> None:
        """Sets all to zero."""
        for memory in self.memories:
            memory.clear()

    def dot(self, tangents: Memory) -> float:
        """What the gradients say of a displacement of the memory."""
        return sum(memory.dot(tangents) for memory in self.memories)


class Memories:
    """The memories that a tape's operations work on.

    own: in the arrays' own precision. main: lifted. tangents, grads: of main.
    """

    def __init__(self, spans: Sequence[Span], parts: Sequence[Placement]) -> None:
        """parts: all arrays that the operations touch."""
        starts = [lo for lo, _ in spans]
        placed = [(bisect_right(starts, p.lo) - 1, p) for p in parts if p.size]
        # What gradients flow to is side by side: see `Planes.dot`.
        placed.sort(key=lambda x: not x[1].wants)
        moving = _block([(k, p) for k, p in placed if p.float], spans, True)
        self.spans = spans
        self.own = Memory(spans, False, block=_block(placed, spans, False))
        self.main = Memory(spans, True, block=_block(placed, spans, True))
        self.tangents = Memory(spans, True, block=moving)
        self.grads = Gradients(spans, moving)

    def array(self, p: Placement) -> array:
        """An array in the lifted memory, with its gradient there."""
        out = _over(self.main.view(p), p)
        if p.wants:
            out.requires_grad = True
            out._grad = _over(self.grads.view(p), p)
        return out


def _over(view: Array, p: Placement) -> array:
    """An array over lifted memory."""
    kind = p.info.kind
    assert not isinstance(kind, (StructType, ArrayType))
    own: int = view.__array_interface__["data"][0]
    strides = view.strides[: len(p.shape)]
    element = with_scalar(kind, FLOAT64) if p.float else kind
    lo, hi = byte_range(own, p.shape, strides, element.size)
    return array._make(Storage(view, lo, hi - lo, HOST), own, p.shape, strides, element)


def mixed(parts: Iterable[Placement], spans: Sequence[Span]) -> bool:
    """Whether some bytes belong to elements of two types, as where memory is reinterpreted."""
    kinds: dict[int, dict[str, list[Placement]]] = {}
    starts = [lo for lo, _ in spans]
    for p in parts:
        if p.size:
            k = bisect_right(starts, p.lo) - 1
            kinds.setdefault(k, {}).setdefault(np.dtype(p.info.numpy).str, []).append(p)
    for k, by_type in kinds.items():
        if len(by_type) < 2:
            continue
        lo, hi = spans[k]
        seen = np.zeros(hi - lo, np.uint8)
        for number, group in enumerate(by_type.values()):
            mine = np.zeros(hi - lo, np.uint8)
            for p in group:
                bytes_of(p, mine, lo)[...] = 1
            if number and np.any(seen & mine):
                return True
            seen |= mine
    return False
