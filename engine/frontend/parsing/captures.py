"""Python values that lowering reads, and a test whether they have changed.

A function that several kernels call is lowered once for all of them as long as everything that
it captures stays as it was. So each reading is kept with the way to repeat it and with what had
been found: an object, or for values, which may change or be equal, their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from engine.classes import dataclass
from engine.lang.generics import pattern_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """Equal to another of the same object."""

    obj: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.obj is self.obj

    def __hash__(self) -> int:
        return id(self.obj)


def snapshot(obj: Any) -> object:
    """Equal as long as an object means the same in a kernel."""
    if isinstance(obj, (bool, int, float, str, np.generic)):
        return type(obj), repr(obj)  # NaN is itself, and -0.0 is not 0.0
    if isinstance(obj, tuple):
        return tuple(snapshot(item) for item in obj)
    if isinstance(obj, (type, ModuleType, FunctionType)):
        return _Identity(obj)
    try:
        if getattr(type(obj), "__ir_type__", None) is not None:  # a vector, perhaps
            return type(obj), repr(np.asarray(obj).tolist())
        # Annotations are made anew where they are kept as text.
        found = getattr(obj, "__ir_type__", None) or pattern_of(obj)
    except Exception:  # objects of other packages may do as they like
        found = None
    return _Identity(obj) if found is None else found


class Captures:
    """Readings, in order, each with what it found.

    owner: the function that they are for. text: that of its lines which were parsed; closed:
    whether all that its static expressions give was known before.
    """

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.text = ""
        self.closed = True
        self._readings: dict[Hashable, tuple[Callable[[], object], object]] = {}

    def read(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` finds. Readings of one key are one."""
        found = compute()
        self._readings.setdefault(key, (compute, snapshot(found)))
        return found

    @property
    def keys(self) -> Iterable[Hashable]:
        """What was read."""
        return self._readings.keys()

    def hold(self) -> bool:
        """Whether every reading would find the same now."""
        try:
            return all(snapshot(compute()) == seen for compute, seen in self._readings.values())
        except Exception:
            return False  # what cannot be read any more is told where it is read anew
