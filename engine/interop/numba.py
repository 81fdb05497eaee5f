"""Numba: arrays of its CUDA target. What it compiles for the CPU takes NumPy's: `a.numpy()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.interop.base import Adapter
from engine.lang.foreign import Memory
from engine.lang.types import BY_NAME
from engine.runtime.cuda_interface import NAME, described
from engine.runtime.mismatch import Mismatch


class Numba(Adapter):
    """Device arrays: of a GPU, or of the simulator (NUMBA_ENABLE_CUDASIM), which are NumPy's."""

    package = "numba"
    title = "Numba"
    thing = "device array"

    def memory(self, value: Any) -> Memory | None:
        if ".simulator." in type(value).__module__:
            return _simulated(value)
        return described(value) if hasattr(value, NAME) else None

    def numpy(self, value: Any) -> Any:
        """As above; what is no array (a typed list) is what NumPy makes of it."""
        if ".simulator." in type(value).__module__ or hasattr(value, NAME):
            return super().numpy(value)
        return np.asarray(value)


def _simulated(value: Any) -> Memory | None:
    """The memory of an array of the simulator, which is on the host."""
    if not hasattr(value, "__array_interface__"):
        return None
    seen = np.asarray(value)
    scalar = BY_NAME.get(seen.dtype.name)
    if scalar is None or not seen.dtype.isnative:
        raise Mismatch("E202", f"a Numba device array of {seen.dtype}",
                       "convert it to a type that arrays have")  # fmt: skip
    found = seen.__array_interface__
    root = seen
    while isinstance(root.base, np.ndarray):
        root = root.base
    whole = root.__array_interface__["data"][0] if root.flags.c_contiguous else 0
    return Memory(found["data"][0], seen.shape, seen.strides, scalar, seen, not found["data"][1],
                  "cpu", whole, root.nbytes if whole else 0)  # fmt: skip


ADAPTER = Numba()
