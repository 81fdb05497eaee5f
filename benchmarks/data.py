"""The data of the rows: the same numbers for every framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int32]]
Springs = Callable[[int], tuple[int, Ints, Ints]]  # see `springs`
DRAWN = 1 << 22  # random numbers; what is longer repeats them

# Of the small iteration and of the roll-out: elements, and launches of the latter.
SMALL = 1000
STEPS = 1000
CAPTURED = 100  # launches in a captured sequence
PARTICLES = 64


def values(size: int, seed: int = 1) -> Floats:
    """Numbers between -1 and 1."""
    drawn = np.random.default_rng(seed).uniform(-1.0, 1.0, size=min(size, DRAWN))
    return np.resize(drawn.astype(np.float32), size)


def springs(size: int) -> tuple[int, Ints, Ints]:
    """How many particles that many springs tie, and both ends of each, which lie close by."""
    particles = size // 2
    rng = np.random.default_rng(3)
    first = rng.integers(0, particles, size=size).astype(np.int32)
    second = ((first + rng.integers(1, 1000, size=size)) % particles).astype(np.int32)
    return particles, first, second


def random_springs(size: int) -> tuple[int, Ints, Ints]:
    """As many particles as springs, and both ends of each, which are anywhere."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, size, size=size).astype(np.int32)
    second = ((first + rng.integers(1, size, size=size)) % size).astype(np.int32)
    return size, first, second


def edges(size: int) -> tuple[Floats, Floats]:
    """Two vectors of three numbers for each element, as rows, which are never parallel."""
    a = values(3 * size).reshape(-1, 3).copy()
    b = values(3 * size, 2).reshape(-1, 3).copy()
    a[:, 0] += 2.0
    b[:, 1] += 2.0
    return a, b


def systems(size: int) -> tuple[Floats, Floats]:
    """Symmetric positive definite matrices of 6 rows, and right-hand sides."""
    half = values(36 * size, 6).reshape(-1, 6, 6)
    a = half @ half.transpose(0, 2, 1) + 3.0 * np.eye(6, dtype=np.float32)
    return a, values(6 * size, 7).reshape(-1, 6)
