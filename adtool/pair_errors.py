"""The errors of a pair of arrays; an error that was not measured is not a zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.autograd import PairResult


def known_errors(p: PairResult) -> tuple[float | None, float | None]:
    """The largest absolute and relative error of a pair.

    None where nothing was compared, and for a relative error where no reference is large enough;
    NaN where the adjoint is not finite, as the engine's errors leave out such entries.
    """
    if p.checked + p.directional == 0:
        return None, None
    absolute, relative = p.max_abs_error, p.max_rel_error
    if p.verdict == "nan":
        absolute = math.inf if absolute == math.inf else math.nan
        return absolute, math.inf if relative == math.inf else math.nan
    if relative == 0.0 < absolute:
        return absolute, None
    return absolute, relative
