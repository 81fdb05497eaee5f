"""The tolerance: when two derivatives count as equal."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span

Array = NDArray[Any]

AUTO_RTOL = 1e-5
AUTO_FLOOR = 1e-8
# The same as multiples of the relative rounding of values that are no float64.
COARSE_RTOL = 1e4
COARSE_FLOOR = 1e3
TINY = 1e-30
# Of iterations that end when floats are small enough; all are relative.
ITERATION_MOST = 1e-2  # a constant up to this is a tolerance; and no larger error is allowed for
ITERATION_GROWTH = 100.0  # an error may be that much larger than the last step of a slow iteration
ITERATION_UNKNOWN = 1e-3  # the error where the tolerance is no constant


def whole(value: Any, name: str, help: str = "0 or less means all") -> int:
    """An option that counts something. Raises LaunchError (E405) for what is no whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise _misfit(f"{name} must be a whole number", value, help) from None


def flags(**given: Any) -> None:
    """Raises LaunchError (E405) for options that are neither true nor false, such as arrays."""
    for name, value in given.items():
        try:
            bool(value)
        except (TypeError, ValueError):
            raise _misfit(f"{name} is True or False", value, "") from None


def _misfit(wanted: str, value: Any, help: str) -> LaunchError:
    return LaunchError(Diagnostic("E405", f"{wanted}, got {value!r:.80}", call_span(), help))


def _fits(value: Any) -> bool:
    try:
        return math.isfinite(value) and bool(value >= 0)
    except (TypeError, ValueError, OverflowError):  # no number, or one that no float is
        return False


@dataclass(frozen=True, slots=True)
class Tolerance:
    """eps, atol and rtol as the user gave them; None means automatic.

    The adjoint of the lifted kernel is compared with differences by |ad - fd| <= atol +
    rtol |fd|. Left out, rtol is AUTO_RTOL, and atol is AUTO_FLOOR of the largest
    derivative near by. The differences have the absolute step eps, extrapolated unless
    a tolerance is given too; without eps the step is searched for. Where values are
    coarser than float64 (`epsilon`), rtol and atol are at least what they can tell.

    Raises LaunchError (E405) for a step that is not positive, or a negative tolerance.
    """

    eps: float | None = None
    atol: float | None = None
    rtol: float | None = None
    # Relative rounding of the values that are compared, where that is no float64's.
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        for name in ("eps", "atol", "rtol"):
            value = getattr(self, name)
            if value is None:
                continue
            if not _fits(value) or (name == "eps" and value == 0):
                wanted = "a positive number" if name == "eps" else "0 or a positive number"
                help = "leave it out to have it chosen by scale"
                raise _misfit(f"{name} must be {wanted}", value, help)

    @property
    def literal(self) -> bool:
        """True where the user asks for the formula itself, with plain central differences."""
        return self.eps is not None and (self.atol is not None or self.rtol is not None)

    @property
    def auto(self) -> bool:
        """True where nothing was given."""
        return self.eps is None and self.atol is None and self.rtol is None

    @property
    def relative(self) -> float | None:
        """The relative error that is allowed; None where an absolute one is asked for, too."""
        if self.atol is not None:
            return None
        return max(AUTO_RTOL, COARSE_RTOL * self.epsilon) if self.rtol is None else self.rtol

    @property
    def floor(self) -> float:
        """Entries this small beside the largest near them are rounding of sums, not slopes."""
        return max(AUTO_FLOOR, COARSE_FLOOR * self.epsilon)

    def of(self, reference: Array, scale: Array | float, weight: float = 1.0) -> Array:
        """The largest error allowed at each entry.

        scale: the largest derivative near by. weight: what atol counts for, where
        the derivative is a weighted sum of entries.
        """
        rtol = max(AUTO_RTOL, COARSE_RTOL * self.epsilon) if self.rtol is None else self.rtol
        atol = self.floor * scale + TINY if self.atol is None else self.atol * weight
        return np.asarray(atol + rtol * np.abs(reference))


def left_by_iteration(constants: Iterable[float]) -> float:
    """The relative error that an iteration leaves in the derivative of its result.

    constants: what the condition of its loop reads. The largest that may be a tolerance counts.
    """
    found = [x for x in constants if 0.0 < x <= ITERATION_MOST]
    return min(ITERATION_GROWTH * max(found), ITERATION_MOST) if found else ITERATION_UNKNOWN


def relative_error(
    error: Array | float, reference: Array | float, allowed: Array | float, rtol: float | None
) -> Array:
    """Errors relative to their references; 0 where a reference is no larger than what is allowed.

    rtol: of errors that are allowed, the part of the reference that was: `allowed / rtol` is the
    reference and, beside larger derivatives, some of these. What passes is relative to that, and
    so is at most rtol.
    """
    with np.errstate(all="ignore"):
        out = np.divide(error, np.abs(reference))
        out = np.where(np.abs(reference) > allowed, out, 0.0)
        if rtol is not None:
            out = np.where(error <= allowed, np.minimum(out, np.divide(rtol * error, allowed)), out)
    return out


def relative_to(
    error: float, reference: float, allowed: float, rtol: float | None, size: float = 0.0
) -> float | None:
    """One error relative to its reference; None where that is zero as far as can be told.

    That is: where it is no larger than the error that is allowed there. size: of the parts of a
    sum, which the error is relative to if they are larger than the sum.
    """
    if not abs(reference) > allowed or not math.isfinite(error):
        return None
    return float(relative_error(error, max(abs(reference), size), allowed, rtol))


def largest(x: Array) -> float:
    """The largest finite magnitude, 0 if there is none."""
    finite = np.abs(x[np.isfinite(x)])
    return float(finite.max(initial=0.0))


def median(x: Array) -> float:
    """The median; NaN where a number is, or there is none. `np.median` would import `numpy.ma`."""
    ordered = np.sort(x, axis=None)
    middle = len(ordered) // 2
    if not len(ordered) or np.isnan(ordered[-1]):
        return float("nan")
    return float(ordered[middle] if len(ordered) % 2 else ordered[middle - 1 : middle + 1].mean())
