"""Memory of other frameworks that is known again after all arrays over it are gone."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.autograd.watch.lasting import LastingArray, LastingMemory, block
from engine.lang.types import BY_NAME
from engine.runtime.adopted import adopt
from engine.runtime.array import array

SIZE = 4


class Block:
    """A block of memory as PyTorch has it."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def data_ptr(self) -> int:
        return int(self.data.__array_interface__["data"][0])

    def nbytes(self) -> int:
        return int(self.data.nbytes)


def made(owner: Block) -> Any:
    """A new array over a block."""
    memory = adopt(owner, owner.data_ptr(), owner.nbytes())
    return array._make(memory, owner.data_ptr(), (SIZE,), (4,), BY_NAME["float32"])


def numbers() -> Any:
    return np.arange(SIZE, dtype=np.float32)


def test_an_array_is_made_again_over_its_block() -> None:
    owner = Block(numbers())
    a = made(owner)
    assert block(a.storage) is owner
    memory, lasting = LastingMemory(a.storage), LastingArray(a)
    assert lasting() is a
    first = a.storage
    assert memory.is_of(first)
    del a, first
    again = lasting()
    assert again is not None and again.list() == [0, 1, 2, 3]
    assert memory.is_of(again.storage) and memory() is again.storage
    owner.data[0] = 7.0
    assert again.list()[0] == 7.0


def test_another_block_at_the_address_is_other_memory() -> None:
    data = numbers()
    one = Block(data)
    lasting, memory = LastingArray(made(one)), LastingMemory(made(one).storage)
    del one
    assert lasting() is None and memory() is None
    two = Block(data)
    assert not memory.is_of(made(two).storage)


def test_a_block_that_moved_is_not_read() -> None:
    owner = Block(numbers())
    kept = owner.data
    lasting = LastingArray(made(owner))
    owner.data = np.zeros(2 * SIZE, np.float32)  # as `resize_` on a GPU
    assert lasting() is None
    owner.data = kept
    assert lasting() is not None


def test_memory_of_the_engine_is_its_own_block() -> None:
    a = array(numbers(), dtype=float)
    assert block(a.storage) is a.storage
    lasting, memory = LastingArray(a), LastingMemory(a.storage)
    assert memory() is a.storage
    del a
    assert lasting() is None and memory() is None
