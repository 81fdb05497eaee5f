"""Arrays in structs in arrays, where a kernel changes the field that holds one."""

from __future__ import annotations

from engine.classes import dataclass
from engine.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Links:
    """Of a function whose stores to tables of places say where other arrays lie.

    joined: pairs of pools, by an array parameter of each: a place in one is stored as one in the
    other, so that they have to be one memory. named: tables by which a field may hold an argument
    of the kernel, and the position of the parameter that this is (of its first leaf). Where it is
    in the pool, a table of the launch says at the entry's own number.
    """

    joined: tuple[tuple[str, str, Span], ...] = ()
    named: tuple[tuple[str, int], ...] = ()


NO_LINKS = Links()
