"""Memory, and arrays over it, that are known again after the engine's own objects are gone.

A launch that gets a tensor makes an array over its memory, and the next launch makes another. What
lives as long as the memory is the framework's block. It is compared by identity, so that a later
block at the same address is another one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast
from weakref import ref

from engine.classes import Protocol
from engine.runtime.adopted import adopt
from engine.runtime.array import array
from engine.runtime.storage import Storage


class _Block(Protocol):
    """A block of memory of another framework, as `torch.UntypedStorage`."""

    def data_ptr(self) -> int:
        """The address."""

    def nbytes(self) -> int:
        """The size: `resize_` may change it, and move the memory."""


def block(memory: Storage) -> object:
    """What lives as long as some memory, and is the same for all that show it."""
    kind: Any = type(memory.owner)
    return memory.owner if memory.external and _is_block(kind) else memory


@lru_cache(maxsize=1024)
def _is_block(kind: type) -> bool:
    """Whether objects of a type are such blocks, and tell where they are."""
    weak = getattr(kind, "__weakrefoffset__", 0) != 0
    return weak and hasattr(kind, "data_ptr") and callable(getattr(kind, "nbytes", None))


class LastingMemory:
    """A weak reference to memory. It gives it as long as its block lives and stays there."""

    __slots__ = ("_block", "_device", "_lo", "_nbytes", "_writable")

    def __init__(self, memory: Storage) -> None:
        self._block = ref(block(memory))
        self._lo, self._nbytes = memory.lo, memory.nbytes
        self._writable, self._device = memory.writable, memory.device

    def __call__(self) -> Storage | None:
        """The memory; None where it is gone."""
        found = self._block()
        if found is None or isinstance(found, Storage):
            return found
        held = cast("_Block", found)
        if (held.data_ptr(), held.nbytes()) != (self._lo, self._nbytes):
            return None
        return adopt(found, self._lo, self._nbytes, self._writable, device=self._device)

    def is_of(self, memory: Storage) -> bool:
        """Whether it is this one."""
        return self._block() is block(memory)


class LastingArray:
    """A weak reference to an array. After the array is gone it gives another over its memory.

    That needs a block of another framework; else the reference is an ordinary one.
    """

    __slots__ = ("_array", "_memory", "_place")

    def __init__(self, a: array) -> None:
        self._array = ref(a)
        self._memory = LastingMemory(a.storage) if block(a.storage) is not a.storage else None
        self._place = a.ptr, a.shape, a.strides, a._ir.element

    def __call__(self) -> array | None:
        """The array; None where it is gone."""
        found = self._array()
        memory = None if found is not None or self._memory is None else self._memory()
        if memory is None:
            return found
        made: array = array._make(memory, *self._place)
        return made
