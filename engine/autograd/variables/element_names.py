"""Names of single scalars of arrays, as the user would write them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def element_name(array: str, scalar: int, shape: Sequence[int]) -> str:
    """`u[2, 3]` for the scalar of that number in row-major order.

    shape: of the array's scalars; components of vectors and matrices come last. Numbers
    that it has not are written as they are.
    """
    shape = tuple(int(n) for n in shape)
    if not shape or not 0 <= scalar < int(np.prod(shape, dtype=np.int64)):
        return f"{array}[{scalar}]"
    index = np.unravel_index(scalar, shape)
    return f"{array}[{', '.join(str(int(i)) for i in index)}]"
