"""Dense matrices under construction: NaN marks unknown entries."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.variables.roles import Pair
from engine.autograd.variables.variable import Variable
from engine.lang.types import FLOAT32, FLOAT64, ScalarType, ValueType, scalar_of, shape_of
from engine.lang.values import to_value_type, value_class
from engine.runtime.array import array
from engine.runtime.device import HOST, Device
from engine.runtime.launch_errors import fail, size_text

Array = NDArray[Any]


def element_type(v: Variable, wide: bool) -> ValueType:
    """The element type of a matrix by an input: the input's own, or its float64 form."""
    t = FLOAT32 if v.element is None else v.element
    if not wide or scalar_of(t) == FLOAT64:
        return FLOAT64 if v.element is None and wide else t
    return widened(t)


def widened(t: ValueType) -> ValueType:
    """A type with float64 components."""
    if isinstance(t, ScalarType):
        return FLOAT64
    return to_value_type(value_class(replace(t, scalar=FLOAT64)))


class Dense:
    """One matrix for each pair, scalars of the output down, scalars of the input across.

    entries: the matrices under construction, on the host.
    """

    def __init__(self, pairs: list[Pair], wide: bool) -> None:
        """wide: whether entries are float64, whatever the input is."""
        self.pairs = pairs
        self._arrays: dict[tuple[int, int], array] = {}
        self.entries: dict[tuple[int, int], Array] = {}
        self._check_size(pairs, wide)
        for p in pairs:
            t = element_type(p.input, wide)
            inner = int(np.prod(shape_of(t), dtype=np.int64))
            made = array._allocate((p.output.size, p.input.size // inner), t, False, HOST)
            made._parts[...] = np.nan
            self._arrays[p.key] = made
            self.entries[p.key] = made._parts.reshape(p.output.size, p.input.size)

    def on(self, device: Device) -> dict[tuple[int, int], array]:
        """The matrices as arrays of a device, by (input index, output index)."""
        return {key: a.to(device) for key, a in self._arrays.items()}

    def _check_size(self, pairs: list[Pair], wide: bool) -> None:
        need = sum(p.input.size * p.output.size * (8 if wide else 4) for p in pairs)
        have = _memory()
        if need > have // 2:
            p = max(pairs, key=lambda p: p.input.size * p.output.size)
            raise fail(
                "E209", f"the Jacobian of {p.output.label!r} by {p.input.label!r} has "
                f"{p.output.size} x {p.input.size} entries: {size_text(need)} in all",
                help="sparse=True keeps only the entries that can differ from zero; "
                "input_output_mask leaves pairs out",
            )  # fmt: skip


def _memory() -> int:
    """Bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 1 << 40
