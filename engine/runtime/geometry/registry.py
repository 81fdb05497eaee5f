"""The live geometry objects, by the numbers that kernels use for them.

A launch gets tables of what its arguments name. What a table holds never changes: an object that is
built anew has new contents, and launches that were recorded before keep those that they had.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.lang.structs import Argument, StructType
from engine.lang.types import INT64, UINT64
from engine.locks import Lock
from engine.runtime.array import array
from engine.runtime.launch_errors import fail

# Numbers that programs do not come by otherwise.
_numbers = itertools.count((0x47E0 << 32) + 1)
_alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_gone: dict[int, str] = {}
_lock = Lock()
# What makes the table of each kind: of the objects in it, its value for a launch.
MAKERS: dict[StructType, tuple[tuple[type, ...], Callable[[Sequence[Any]], Any]]] = {}


class GeometryError(LaunchError, TypeError, RuntimeError):
    """Geometry was made of what does not fit. Programs written for Warp catch it by its bases."""


def refuse(message: str, *notes: str, help: str = "") -> GeometryError:
    """The error (E202) for the caller to raise."""
    return GeometryError(Diagnostic("E202", message, call_span(), help, notes))


def number() -> int:
    """A number that nothing else has."""
    with _lock:
        return next(_numbers)


class Geometry:
    """Base of what kernels query. id: its number, once it is complete."""

    id = 0

    def register(self) -> None:
        """Gives it a number. The registry does not keep it alive."""
        made = number()
        with _lock:
            _alive[made] = self
        self.id = made

    def __del__(self) -> None:
        if self.id:
            _gone[self.id] = type(self).__name__


def tables(kernel: str, wanted: Sequence[Argument], values: Iterable[Any]) -> list[Any]:
    """The tables for a launch, of the objects that its arguments name; of all where none does.

    values: the arguments, taken apart. Raises LaunchError (E212) for the number of an object that
    is not there any more.
    """
    from engine.runtime.geometry import hash_grid, mesh

    del hash_grid, mesh  # which say how tables are made
    named: set[int] = set()
    for v in values:
        if isinstance(v, array):
            if v._ir.element in (UINT64, INT64):
                named.update(np.unique(v._parts).tolist())
        elif isinstance(v, (int, np.integer)):
            named.add(int(v))
    for number in named:
        if number in _gone:
            raise fail(
                "E212", f"kernel {kernel!r}: the {_gone[number]} that it queries no longer exists",
                f"its id is {number}",
                help="keep the object in a variable as long as launches use its id",
            )  # fmt: skip
    with _lock:
        alive = [(k, x) for k, x in list(_alive.items())]
    out = []
    for t in wanted:
        assert isinstance(t.type, StructType)
        kinds, make = MAKERS[t.type]
        every = [(k, x) for k, x in alive if isinstance(x, kinds)]
        chosen = [x for k, x in every if k in named] or [x for _, x in every]
        out.append(make(chosen))
    return out
