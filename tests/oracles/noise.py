"""Gradient noise by its definition: a weighted sum over the corners of a cell."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.oracles import Oracle
from tests.oracles.random import MASK, pcg

SPECIAL = "whole coordinates beyond 64 bits have no lattice point"


PRIMES = (73856093, 19349663, 53471161, 10000019)


def lattice_vector(at: Any, state: int) -> Any:
    """Uniform in a square or cube around the origin, then of length 1; on a line, uniform."""
    *first, (x, prime) = zip(at, PRIMES, strict=False)
    h = (x * prime + state) & MASK
    for x, prime in first:
        h ^= (x * prime) & MASK
    drawn = []
    for _ in at:
        h = pcg(h)
        drawn.append((h >> 8) / 2**24 - 0.5)
    return np.array(drawn) / np.linalg.norm(drawn) if len(at) > 1 else 2 * np.array(drawn)


def noise(state: int, p: Any, *periods: int) -> Any:
    return field(state, np.atleast_1d(p), periods)[0]


def field(state: int, p: Any, periods: Any = ()) -> tuple[Any, Any]:
    """The noise at a point, and its gradient by the product rule."""
    n = len(p)
    cell = np.floor(p).astype(int)
    t = p - cell
    value, gradient = 0.0, np.zeros(n)
    for corner in itertools.product((0, 1), repeat=n):
        at = [int(c) + k for c, k in zip(cell, corner, strict=True)]
        at = [x % m if m > 0 else x for x, m in itertools.zip_longest(at, periods, fillvalue=0)]
        g = lattice_vector(at, state)
        fade = t**3 * (6 * t**2 - 15 * t + 10)
        slope = 30 * t**2 * (t - 1) ** 2
        weights = np.where(corner, fade, 1 - fade)
        slopes = np.where(corner, slope, -slope)
        here = np.dot(g, t - np.array(corner))
        value += np.prod(weights) * here
        gradient += np.prod(weights) * g
        for k in range(n):
            others = np.prod(np.delete(weights, k))
            gradient[k] += slopes[k] * others * here
    return value, gradient


def curl(state: int, p: Any, octaves: int, lacunarity: float, gain: float) -> Any:
    total = np.zeros(min(len(p), 3))
    for k in range(octaves):
        q = p * lacunarity**k
        if len(p) == 2:
            g = field(state, q)[1]
            total += gain**k * np.array([-g[1], g[0]])
            continue
        a = [field(state, q)[1]]
        for offset in (10019689, 13112221):
            state = pcg((state + pcg(offset)) & MASK)
            a.append(field(state, q)[1])
        total += gain**k * np.array([a[2][1] - a[1][2], a[0][2] - a[2][0], a[1][0] - a[0][1]])
    return total


OPERATIONS: dict[str, Any] = {}
COMPOSED = {
    "noise": Oracle(noise, degree=0, units=256, special=SPECIAL),
    "pnoise": Oracle(noise, degree=0, units=256, special=SPECIAL),
    "curlnoise": Oracle(curl, degree=0, units=2048, special=SPECIAL),
}
