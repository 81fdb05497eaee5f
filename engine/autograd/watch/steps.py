"""Whether an array was moved by its gradient: what a step of an optimizer looks like from outside.

Host code that reads a gradient and then writes the array may do so for another reason: a difference
quotient, another start. So the change itself is compared with the gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.tape.restoration import NumpyArray

ALONG = 0.999  # cosine between a change and a gradient from which on one was made of the other
SIGNS = 8  # numbers whose signs all agree, or all disagree, are no chance: steps of Adam


def along(change: NumpyArray, gradient: NumpyArray, there: Callable[[], bool]) -> bool:
    """Whether a change is a step along a gradient, up or down, or has all of its signs.

    Numbers whose gradient is zero tell nothing. Any change of a single number is along its
    gradient: it counts where the gradient is still `there`, so that it has not been cleared before.
    """
    some = (gradient != 0.0) & np.isfinite(gradient) & np.isfinite(change)
    change, gradient = change[some], gradient[some]
    if not change.any():
        return False
    if change.size == 1:
        return there()
    # Neither may overflow.
    change, gradient = (x / np.abs(x).max() for x in (change, gradient))
    cosine = float(change @ gradient) / float(np.linalg.norm(change) * np.linalg.norm(gradient))
    signs = np.sign(change * gradient)
    return abs(cosine) >= ALONG or (
        change.size >= SIGNS and signs[0] != 0.0 and bool((signs == signs[0]).all())
    )
