"""Objects that Warp kernels refer to by number: meshes, grids, volumes.

A launch that is run again reads memory behind such a number. It is kept alive for that, where the
object behind it is known; a launch with another number is not run again if it may read behind it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from engine.foreign.warp_kernels import kind_of
from engine.foreign.warp_values import StructOf

CLASSES = ("Mesh", "HashGrid", "Bvh", "Volume")


class Handles:
    """The objects that were made while somebody watched, by their numbers."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Any]] = {}

    def making(self, call: Any) -> Any:
        """A class's `__init__` that notes what it has made."""

        def __init__(made: Any, *args: Any, **named: Any) -> None:
            call(made, *args, **named)
            self._known[int(getattr(made, "id", 0) or 0)] = weakref.ref(made)

        return __init__

    def kept(self, kernel: Any, trees: Sequence[Any]) -> list[Any] | None:
        """The objects behind the numbers of a launch, to be kept; None where one is not known."""
        out: list[Any] = []
        for number in _numbers(kernel, trees):
            known = self._known.get(number)
            found = None if known is None else known()
            if found is None and number:
                return None
            out.append(found)
        return out


def _numbers(kernel: Any, trees: Sequence[Any]) -> Iterator[int]:
    """Whatever may refer to something; -1 for arrays of such numbers."""
    for arg, tree in zip(kernel.adj.args, trees, strict=False):
        yield from _of(arg.type, tree)


def _of(t: Any, tree: Any) -> Iterator[int]:
    if isinstance(tree, StructOf):
        for name, field in tree.fields.items():
            yield from _of(tree.struct.vars[name].type, field)
    elif getattr(t, "__name__", "") == "uint64" and isinstance(tree, int):
        yield tree
    elif "array" in kind_of(t).lower() and _holds(t.dtype):
        yield -1


def _holds(dtype: Any) -> bool:
    if kind_of(dtype) == "Struct":
        return any(_holds(v.type) for v in dtype.vars.values())
    return getattr(dtype, "__name__", "") == "uint64" or "array" in kind_of(dtype).lower()


def links(dtype: Any) -> bool:
    """Whether elements of an array refer to other arrays."""
    if kind_of(dtype) == "Struct":
        return any(links(v.type) for v in dtype.vars.values())
    return "array" in kind_of(dtype).lower()
