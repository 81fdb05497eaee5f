"""Taylor remainders of a function along a line, after its derivative is subtracted.

With J the function and h the step, |J(h) - J(0)| shrinks as h, and |J(h) - J(0) - h dJ| as h^2
where dJ is the derivative; where it is not, that shrinks as h, too. So the rate tells, and no
tolerance is needed. Steps are halved. The smallest ones whose remainder stands clear of rounding
are taken: larger ones say more of the function than of its derivative.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.autograd.reference.noise import Array, fourth_differences
from engine.classes import dataclass

STEPS = 2.0 ** -np.arange(37.0)
# Over these the noise is measured: so near that nothing else is seen, and far enough to be seen.
SPACINGS = (2.0**-44, 2.0**-36)
WINDOW = 6  # steps that are taken
SHOWN_BELOW = 2  # further ones, to show where rounding begins
CLEAR = 100.0  # a remainder this many times the floor has a rate that rounding does not touch
SLACK = 0.1  # of a rate
BENDING = 1e-11  # relative error of a second derivative, which is differences of the adjoint


@dataclass(frozen=True)
class Taken:
    """Remainders of orders 0, 1 and 2 by step (largest first), and the rates between steps.

    remainders, rates: one row for each order, NaN for an order that was not asked for, and for
    the rate of the first step. clear: how many of the steps stand clear of the floor; the others
    follow. floor: what rounding makes of the function. rate: the median of the highest order;
    NaN where the function is that polynomial, as far as can be told.
    """

    steps: Array
    remainders: Array
    rates: Array
    clear: int
    floor: float
    rate: float


def remainders(
    value: Callable[[float], Array], derivative: float, curvature: float | None = None
) -> Taken:
    """The remainders of a function of one number, the size of whose argument is 1.

    curvature: the second derivative, for remainders of order 2.
    """
    with np.errstate(all="ignore"):
        here = float(value(0.0)[0])
        change = np.array([float(value(float(h))[0]) for h in STEPS]) - here
        found = np.full((3, len(STEPS)), np.nan)
        found[0], found[1] = np.abs(change), np.abs(change - STEPS * derivative)
        if curvature is not None:
            found[2] = np.abs(change - STEPS * derivative - STEPS**2 / 2.0 * curvature)
        noise = max(float(fourth_differences(value, 64.0 * s)[0]) for s in SPACINGS)
        floor = max(noise, float(np.finfo(np.float64).eps) * abs(here))
        order = 1 if curvature is None else 2
        eps = float(np.finfo(np.float64).eps)
        unsure = floor + 4.0 * eps * (np.abs(change) + np.abs(STEPS * derivative))
        unsure += BENDING * STEPS**2 * abs(curvature or 0.0)
        clear = found[order] > CLEAR * unsure
        last = _last_of_run(clear & np.isfinite(found[order]))
        if last < 0:
            return Taken(STEPS[:0], found[:, :0], found[:, :0], 0, floor, float("nan"))
        first = max(0, last + 1 - WINDOW)
        while not clear[first : last + 1].all():
            first += 1
        rates = np.full_like(found, np.nan)
        rates[:, 1:] = np.log2(found[:, :-1] / found[:, 1:])
        rates[:, first] = np.nan
        shown = slice(first, last + 1 + SHOWN_BELOW)
        inner = rates[order, first + 1 : last + 1]
        rate = float(np.median(inner)) if inner.size else float("nan")
        return Taken(STEPS[shown], found[:, shown], rates[:, shown], last + 1 - first, floor, rate)


def _last_of_run(clear: Array) -> int:
    """The smallest step of the last run of three clear ones; -1 where there is none."""
    for k in range(len(clear) - 1, 1, -1):
        if clear[k - 2 : k + 1].all():
            return k
    return -1
