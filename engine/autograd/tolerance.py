"""When two derivatives count as equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

AUTO_RTOL = 1e-5
# Entries this small beside the largest of their block are rounding of sums, not slopes.
AUTO_FLOOR = 1e-8
TINY = 1e-30


@dataclass(frozen=True, slots=True)
class Tolerance:
    """eps, atol and rtol as the user gave them; None means automatic.

    With all three None the adjoint of the lifted kernel is compared at AUTO_RTOL
    with extrapolated differences. As soon as one is given, the launch's own adjoint
    is compared by |ad - fd| <= atol + rtol |fd|, with central differences of step
    eps if that is given.
    """

    eps: float | None = None
    atol: float | None = None
    rtol: float | None = None

    @property
    def auto(self) -> bool:
        return self.eps is None and self.atol is None and self.rtol is None

    def of(self, reference: Array, scale: float) -> Array:
        """The largest error allowed at each entry; `scale` is the block's largest entry."""
        if self.auto:
            allowed = AUTO_RTOL * np.abs(reference) + AUTO_FLOOR * scale + TINY
        else:
            atol = 1e-3 if self.atol is None else self.atol
            rtol = 1e-2 if self.rtol is None else self.rtol
            allowed = atol + rtol * np.abs(reference)
        return np.asarray(allowed)
