"""The frameworks that are measured, a file each: `rows()` says how it does which row.

A row that a file does not name, the framework cannot express. `engine` and Warp share programs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

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
    HAND: ("by_hand", ""),
}


def load(name: str) -> Rows:
    """Imports a framework and says what it can do. Raises ImportError where it is missing."""
    file, _ = FRAMEWORKS[name]
    module = importlib.import_module(f"benchmarks.frameworks.{file}")
    found: Rows = module.rows()
    return found


def version(name: str) -> str:
    """Version of the framework, or "not installed"; nothing for those that have none."""
    distribution = FRAMEWORKS[name][1]
    return package(distribution) if distribution else ""
