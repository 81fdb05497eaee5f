"""Builtins written in the kernel language. Importing this package registers them."""

from engine.builtins.library import (
    arithmetic,
    decompositions,
    hash_grid,
    noise,
    norms,
    quaternion,
    random,
    search,
    spatial,
    transform,
)

__all__ = [
    "arithmetic", "decompositions", "hash_grid", "noise", "norms", "quaternion",
    "random", "search", "spatial", "transform",
]  # fmt: skip
