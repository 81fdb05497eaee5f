"""When two derivatives count as equal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.diagnostics import Diagnostic, LaunchError

Array = NDArray[Any]

AUTO_RTOL = 1e-5
# Entries this small beside the largest near them are rounding of sums, not slopes.
AUTO_FLOOR = 1e-8
TINY = 1e-30


@dataclass(frozen=True, slots=True)
class Tolerance:
    """eps, atol and rtol as the user gave them; None means automatic.

    The adjoint of the lifted kernel is compared with differences by |ad - fd| <= atol +
    rtol |fd|. Left out, rtol is AUTO_RTOL, and atol is AUTO_FLOOR of the largest
    derivative near by. The differences have the absolute step eps, extrapolated unless
    a tolerance is given too; without eps the step is searched for.

    Raises LaunchError (E405) for a step that is not positive, or a negative tolerance.
    """

    eps: float | None = None
    atol: float | None = None
    rtol: float | None = None

    def __post_init__(self) -> None:
        for name in ("eps", "atol", "rtol"):
            value = getattr(self, name)
            if value is None:
                continue
            if not math.isfinite(value) or value < 0 or (name == "eps" and value == 0):
                wanted = "a positive number" if name == "eps" else "0 or a positive number"
                raise LaunchError(
                    Diagnostic(
                        "E405",
                        f"{name} must be {wanted}, got {value}",
                        help="leave it out to have it chosen by scale",
                    )
                )

    @property
    def literal(self) -> bool:
        """True where the user asks for the formula itself, with plain central differences."""
        return self.eps is not None and (self.atol is not None or self.rtol is not None)

    def of(self, reference: Array, scale: Array | float, weight: float = 1.0) -> Array:
        """The largest error allowed at each entry.

        scale: the largest derivative near by. weight: what atol counts for, where
        the derivative is a weighted sum of entries.
        """
        rtol = AUTO_RTOL if self.rtol is None else self.rtol
        atol = AUTO_FLOOR * scale + TINY if self.atol is None else self.atol * weight
        return np.asarray(atol + rtol * np.abs(reference))
