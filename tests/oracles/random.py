"""Random numbers: the published hash on Python integers, and the textbook's formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.oracles import Oracle

MASK = 2**32 - 1
WHOLE = "its arguments are integers"


def pcg(n: int) -> int:
    state = (n * 747796405 + 2891336453) & MASK
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737 & MASK
    return (word >> 22) ^ word


class Draws:
    """A sequence from a state on."""

    def __init__(self, state: int) -> None:
        self.state = state

    def bits(self) -> int:
        self.state = pcg(self.state)
        return self.state

    def unit(self) -> float:
        return (self.bits() >> 8) * 2.0**-24


def drawn(f: Any) -> Any:
    """A function of draws and arguments; the last result is the state after it."""

    def apply(state: int, *args: Any) -> Any:
        draws = Draws(state)
        return f(draws, *args), draws.state

    return apply


def between(draws: Draws, low: int | None = None, high: int | None = None) -> int:
    bits = draws.bits()
    if low is None or high is None:
        return bits
    return bits % ((high - low) & MASK) + low if high != low else low


def normal(draws: Draws) -> float:
    u, v = draws.unit() + 2.0**-24, draws.unit()
    return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


def poisson(draws: Draws, lam: float) -> int:
    if lam <= 0:
        return 0
    if lam < 10:
        product, count = draws.unit(), 0
        while product > math.exp(-lam):
            product *= draws.unit()
            count += 1
        return count
    b = 0.931 + 2.53 * math.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    limit = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = draws.unit() - 0.5, draws.unit()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + lam + 0.43) if us else -1
        if us >= 0.07 and v <= limit:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = math.log(v * inverse_alpha / (a / us**2 + b)) if v else -math.inf
        if left <= k * math.log(lam) - lam - math.lgamma(k + 1):
            return k


def turn(angle: float) -> Any:
    return np.array([math.cos(2 * math.pi * angle), math.sin(2 * math.pi * angle)])


def triangle(d: Draws) -> Any:
    root = math.sqrt(d.unit())
    return np.array([1 - root, root * d.unit()])


def disk(d: Draws) -> Any:
    radius = math.sqrt(d.unit())
    return radius * turn(d.unit())


def on_sphere(d: Draws, low: float = -1.0) -> Any:
    """The height is uniform from 1 down to `low`."""
    z = 1 - (1 - low) * d.unit()
    return np.array([*(math.sqrt(1 - z * z) * turn(d.unit())), z])


def in_sphere(d: Draws, low: float = -1.0) -> Any:
    point = on_sphere(d, low)
    return point * d.unit() ** (1 / 3)


def cube(n: int) -> Any:
    return lambda d: np.array([d.unit() - 0.5 for _ in range(n)])


def bound(a: Any, *rest: Any) -> int:
    low, high, value = rest if len(rest) == 3 else (0, len(a), *rest)
    inside = [k for k in range(low, high) if a[k] >= value]
    return inside[0] if inside else max(high - 1, low)


OPERATIONS: dict[str, Any] = {}
COMPOSED = {
    name: Oracle(drawn(f), special=WHOLE, degree=0, units=32)
    for name, f in {
        "randi": between,
        "randu": between,
        "randf": lambda d, low=0.0, high=1.0: low + (high - low) * d.unit(),
        "randn": normal,
        "poisson": poisson,
        "sample_cdf": lambda d, cdf: bound(cdf, d.unit()),
        "sample_triangle": triangle,
        "sample_unit_ring": lambda d: turn(d.unit()),
        "sample_unit_disk": disk,
        "sample_unit_sphere_surface": on_sphere,
        "sample_unit_sphere": in_sphere,
        "sample_unit_hemisphere_surface": lambda d: on_sphere(d, 0.0),
        "sample_unit_hemisphere": lambda d: in_sphere(d, 0.0),
        "sample_unit_square": cube(2),
        "sample_unit_cube": cube(3),
    }.items()
} | {
    "rand_init": Oracle(
        lambda seed, offset=None: pcg(seed & MASK) if offset is None
        else pcg((seed + pcg(offset & MASK)) & MASK), special=WHOLE),
    "lower_bound": Oracle(bound, special="NaN has no place in a sorted array"),
}  # fmt: skip
