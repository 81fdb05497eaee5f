"""The frameworks that are measured, a file each: `rows()` says how it does which row.

A row that a file does not name, the framework cannot express. `engine` and Warp share programs.
Where one can compute on a GPU, `wait` in its file ends when what was launched there has ended.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.case import Ready
from benchmarks.machine import package
from benchmarks.targets import HAND, OURS

Rows = dict[str, Callable[[int], Ready]]

# By name: the file, the distribution.
FRAMEWORKS = {
    OURS: ("wp", ""),
    "warp": ("wp", "warp-lang"),
    "jax": ("with_jax", "jax"),
    "torch": ("with_torch", "torch"),
    "numba": ("with_numba", "numba"),
    "taichi": ("with_taichi", "taichi"),
    "cupy": ("with_cupy", "cupy"),
    HAND: ("by_hand", ""),
}
ON_CPU = tuple(n for n in FRAMEWORKS if n != "cupy")
ON_GPU = (OURS, "cupy", "torch", "jax", "warp")


def load(name: str) -> Rows:
    """Imports a framework and says what it can do. Raises ImportError where it is missing."""
    file, _ = FRAMEWORKS[name]
    module = importlib.import_module(f"benchmarks.frameworks.{file}")
    found: Rows = module.rows()
    return found


def waiter(name: str) -> Callable[[Any], object]:
    """Waits for what a call has launched on the GPU. It is given the call's result."""
    module = importlib.import_module(f"benchmarks.frameworks.{FRAMEWORKS[name][0]}")
    found: Callable[[Any], object] = module.wait
    return found


def version(name: str) -> str:
    """Version of the framework, or "not installed"; nothing for those that have none."""
    distribution = FRAMEWORKS[name][1]
    if name == "cupy":  # has a distribution for each version of CUDA
        return str(importlib.import_module(name).__version__)
    return package(distribution) if distribution else ""
