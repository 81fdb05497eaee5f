"""Plain numbers in vectors and matrices, where C converts them as NumPy does."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import Any

import numpy as np

from engine.lang import types as t
from engine.lang.scalars import SCALAR_CLASSES

item: Any = ctypes.Array.__getitem__
put_item: Any = ctypes.Array.__setitem__
_REALS, _WHOLE = frozenset({float, np.float32, np.float64}), frozenset({int})
_CODES = {"bool": "?", "float32": "f", "float64": "d", "int8": "b", "int16": "h", "int32": "i",
          "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"}  # fmt: skip
_EXACT = 1 << 53  # integers up to it go into floats by way of doubles


class Layout:
    """The memory of a class. real: of one axis, of floats, which C rounds as NumPy does.

    one: what a component is, of what `ctypes` gives; None where that is no number. at: the same of
    a matrix, named by row and column. takes: classes of numbers that `pack` puts there as they are.
    """

    __slots__ = ("at", "count", "one", "pack", "real", "takes")

    def __init__(self, kind: t.VectorType | t.MatrixType) -> None:
        scalar = kind.scalar
        self.count = math.prod(t.shape_of(kind))
        self.pack = struct.Struct(f"{self.count}{_CODES[scalar.name]}").pack_into
        vector = isinstance(kind, t.VectorType)
        self.real = vector and scalar.kind == "f"
        plain = scalar in (t.FLOAT32, t.INT32, t.BOOL)
        number: Any = _same if plain else SCALAR_CLASSES[scalar]
        self.one = number if vector else None
        self.at = None if vector else number
        self.takes = {"f": _REALS, "b": frozenset[type]()}.get(scalar.kind, _WHOLE)


def _same(x: Any) -> Any:
    return x


def put_plain(out: Any, args: tuple[Any, ...]) -> bool:
    """Sets all components of a vector or matrix where they are plain numbers that fit, or one is.

    False where somebody has to look: nothing is set then that is not set again.
    """
    layout: Layout | None = out._layout
    if layout is None or not (len(args) == layout.count or len(args) == 1):
        return False
    for a in args:
        if a.__class__ not in layout.takes and not (
            a.__class__ is int and layout.takes is _REALS and -_EXACT <= a <= _EXACT
        ):
            return False
    try:
        layout.pack(out, 0, *(args if len(args) == layout.count else args * layout.count))
    except (struct.error, OverflowError):
        return False
    return True


def is_plain_real(value: object) -> bool:
    """Whether C makes of a value the float that NumPy makes of it."""
    return value.__class__ is float or (value.__class__ is int and -_EXACT <= value <= _EXACT)
