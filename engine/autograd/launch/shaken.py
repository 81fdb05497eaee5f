"""Estimates the effect of rounding inside a kernel on its derivatives in forward mode.

As it shows where each number that the launch reads is a little larger or smaller: of a smooth
function, fourth differences over such steps are rounding alone (More and Wild, Estimating
Computational Noise, SIAM J. Sci. Comput. 33, 2011). Where nearly equal numbers are subtracted, that
is far more than the last digits of a result; and only a step that changes the larger numbers, which
are rounded most, shows it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.autograd.launch.displaced import DisplacedLaunch
from engine.autograd.reference.noise import fourth_differences
from engine.draws import default_rng

Array = NDArray[np.float64]

# Steps, as a part of each number, by which the farthest is off.
STEPS = (2.0**-48, 2.0**-40, 2.0**-32, 2.0**-24)


def forward_noise(displaced: DisplacedLaunch, a: str, v: Array) -> Array:
    """What the derivative of each output along a direction in an input is uncertain by.

    Flat, as `DisplacedLaunch.forward_along` is; zero where there is no float64 form.
    """
    exact = displaced.exact
    if displaced.precision.coarse:
        return np.zeros(len(displaced.live_rows))
    rng = default_rng(0x5AA)
    signs = {name: rng.choice([-1.0, -0.7, 0.6, 0.9], exact.initial[name].shape)
             for name in displaced.evaluations.readable}  # fmt: skip

    def beside(part: float) -> Array:
        moved = {name: exact.initial[name] * (1.0 + part * s) for name, s in signs.items()}
        with exact.at(moved):
            return displaced.forward_along(a, v)

    with np.errstate(all="ignore"):
        found = [fourth_differences(beside, 16.0 * step) for step in STEPS]
    return np.asarray(np.max(found, axis=0))
