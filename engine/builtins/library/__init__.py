"""Builtins written in the kernel language. Importing this package registers them."""

from engine.builtins.library import (
    arithmetic,
    decompositions,
    hash_grid,
    mesh,
    mesh_points,
    mesh_rays,
    noise,
    norms,
    quaternion,
    random,
    search,
    segments,
    spatial,
    transform,
    trees,
    triangles,
)

__all__ = [
    "arithmetic", "decompositions", "hash_grid", "mesh", "mesh_points", "mesh_rays", "noise",
    "norms", "quaternion", "random", "search", "segments", "spatial", "transform", "trees",
    "triangles",
]  # fmt: skip
