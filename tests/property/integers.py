"""Ranges over every integer type: near the ends of the type, with steps that overflow, empty."""

from __future__ import annotations

import random

from engine.lang.types import SCALARS, ScalarType

INTEGERS = tuple(t for t in SCALARS.values() if t.kind in "iu")


def drawn_range(r: random.Random, t: ScalarType) -> tuple[int, int, int]:
    """Start, stop and step, all of the type, with at most 4 values between."""
    low = -(1 << (t.bits - 1)) if t.kind == "i" else 0
    high = low + (1 << t.bits) - 1
    near = r.choice([low, high - 5, 0, max(low, -3), 7])
    far = min((high - low) // 3, high)  # three such steps take up nearly the whole type
    ways = [
        (near, near + r.randint(0, 4), 1),
        (near, min(high, near + 5), r.randint(2, 4)),
        (high - 5, high, 4),  # one more step would leave the type
        (high - 1, high, high),
        (low, high, far),
        (near + 4, near, 1),  # empty
        (near, near + 3, 0),  # as is a step of zero
    ]
    if t.kind == "i":
        ways += [
            (near + 4, near, -r.randint(1, 3)),
            (high, low, -far),
            (low + 5, low, -4),
            (low + 1, low, low),
            (near, near + 4, -1),  # empty
        ]
    return r.choice(ways)
