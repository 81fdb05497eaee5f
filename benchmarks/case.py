"""A row of the table as data. No framework is imported here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.targets import Target

Array = Any  # an array of the framework that is measured
Call = Callable[[], Any]


@dataclass
class Ready:
    """A case with its arrays made: call `forward` or `backward` and time it.

    `outputs` and `gradients` are read once, to compare the frameworks' results: arrays, or
    functions that give one.
    """

    forward: Call
    backward: Call | None
    outputs: list[Array] = field(default_factory=list)
    gradients: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """One row of the table: a name, which every framework that can express it knows.

    `make` is how `engine` and Warp do it, whose programs are the same. `moved` is the memory that
    forward and backward must at least move, in arrays of `size` float32 values (None: the row is
    not bound by memory); `flops` the operations of the forward pass by size. `inner` calls are at
    least timed together, where one is too short for the clock; `per` is how many things a call
    does, of which the figures are (0: `size`). `passes` are the names of the two passes. `alone`:
    only `engine` runs it, in a process of its own whose memory is measured too; what the peer would
    need is in `note`.
    """

    name: str
    title: str
    size: int
    quick: int
    make: Callable[[Any, Any, int], Ready]
    moved: tuple[float, float] | None = None
    inner: int = 1
    note: str = ""
    alone: bool = False
    flops: Callable[[int], float] | None = None
    per: int = 1
    passes: tuple[str, str] = ("forward", "backward")
    targets: tuple[tuple[Target, ...], tuple[Target, ...]] = ((), ())
    group: str = "kernels"
