"""The memory of an array that another library owns: address, shape, strides."""

from __future__ import annotations

from engine.classes import NamedTuple
from engine.lang.types import ScalarType


class Memory(NamedTuple):
    """Where the elements of another library's array lie, and what they are.

    address: of the first element. shape, strides: of all axes, components included; strides in
    bytes. owner: what keeps the memory alive as long as it lives itself. lo, nbytes: the block that
    the library allocated, where it tells; the elements themselves where it is left out, so that two
    arrays that show the same block should both have it. device: its name, "cpu" or "cuda:0".
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    scalar: ScalarType
    owner: object
    writable: bool = True
    device: str = "cpu"
    lo: int = 0
    nbytes: int = 0
