"""A right kernel with arguments to check it at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.classes import dataclass

Values = Any  # nested lists or a NumPy array


@dataclass(frozen=True, slots=True)
class Arr:
    """An array argument. dtype: its name in the language (`float`, `vec3`, `int`)."""

    values: Values
    dtype: str = "float"


@dataclass(frozen=True, slots=True)
class Case:
    """What is launched: `inputs` are read, `outputs` written. kind: why it is hard to check."""

    kernel: Any
    kind: str
    dim: int | tuple[int, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    launches: int = 1


def spread(lo: float, hi: float, n: int = 12, seed: int = 0) -> Any:
    """Values between two bounds, not on any grid."""
    return np.random.default_rng(seed).uniform(lo, hi, n)


def normal(*shape: int, scale: float = 1.0, seed: int = 0) -> Any:
    """Normally distributed values."""
    return np.random.default_rng(seed).normal(size=shape, scale=scale)


def elementwise(kind: str, kernels: Sequence[tuple[Callable[..., Any], Values]]) -> list[Case]:
    """Cases of kernels `(x, y)` with a thread for each value."""
    return [
        Case(k, kind, len(x), (Arr(x),), (Arr(np.zeros(len(x))),)) for k, x in kernels
    ]  # fmt: skip
