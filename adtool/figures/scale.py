"""The range of a logarithmic axis: a few outliers must not press the rest into one line."""

from __future__ import annotations

import math
from collections.abc import Iterable

_WIDE = 6.0  # decades that are shown in any case
_ROOM = 2.0  # decades around the bulk of the values, at least


def log_limits(values: Iterable[float]) -> tuple[float, float]:
    """The decimal logarithms that an axis should show. What lies outside is to be marked.

    All of the values, unless a tenth at either end makes the range more than three times as wide
    as it is without. Zeros and what is not finite do not count. Without values it is (0, 0).
    """
    logs = sorted(math.log10(v) for v in values if math.isfinite(v) and v > 0)
    if not logs:
        return 0.0, 0.0
    low, high = logs[0], logs[-1]
    bulk = logs[len(logs) // 10], logs[-1 - len(logs) // 10]
    wide = bulk[1] - bulk[0]
    if len(logs) < 10 or high - low <= max(_WIDE, 3 * wide):
        return low, high
    room = max(_ROOM, wide / 2)
    return max(low, bulk[0] - room), min(high, bulk[1] + room)
