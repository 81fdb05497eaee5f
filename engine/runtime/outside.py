"""Decides which NumPy memory an array can share; other memory is copied or refused.

One rule for all: memory is shared where it is exactly the elements: numbers of the element's type
in the machine's order of bytes, at addresses that are multiples of their size, the components of
one element side by side. Order, steps and direction of the axes are free. It is copied only where
the program asks for a copy. What is left is refused.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

NumpyArray = np.ndarray[Any, Any]


def is_masked(data: object) -> bool:
    """Whether it is an array with a mask, which the elements alone say nothing of."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and isinstance(data, ma.MaskedArray)


MASKED = ("a masked NumPy array", "its mask would be ignored: fill it, x.filled(0), or pass x.data")


def misfit(found: NumpyArray, wanted: np.dtype[Any]) -> tuple[str, str] | None:
    """Why elements cannot be shown as they are, and what to do; None where they can.

    wanted: the type of an element's numbers, or of a struct's records.
    """
    if type(found) is not np.ndarray and is_masked(found):
        return MASKED
    if found.dtype != wanted:
        if found.dtype.newbyteorder("=") == wanted:
            return (f"a NumPy array of {wanted} in another order of bytes",
                    "convert it first: x.astype(x.dtype.newbyteorder('='))")  # fmt: skip
        return f"a NumPy array of {found.dtype}", "convert it with astype first"
    if not found.flags.aligned:
        return ("a NumPy array whose numbers are not at multiples of their size",
                "pass a copy: x.copy()")  # fmt: skip
    return None
