"""Features of Warp that this engine does not have (yet), recognised by name. A flat table."""

from __future__ import annotations

# (name prefixes or whole names, the feature, what to write instead). A prefix ends in "*".
_FEATURES: tuple[tuple[str, str, str], ...] = (
    ("tile tile_*", "tiles", "loop over the elements with one thread for each result"),
    ("HashGrid* hash_grid_*", "hash grids",
     "build neighbour lists on the host and pass them as integer arrays"),
    ("Mesh* mesh_*", "meshes", "pass vertices and indices as arrays and loop over the triangles"),
    ("Bvh* bvh_*", "bounding volume hierarchies", "loop over candidates kept in an integer array"),
    ("Volume* volume_*", "volumes", "pass the grid as a 3-D array and interpolate by hand"),
    ("Texture* texture_*", "textures", "pass the image as an array and interpolate by hand"),
    ("fixedarray", "this name of local arrays", "write `zeros(shape=(4,), dtype=float)`"),
    ("spatial_mass spatial_jacobian", "matrices of whole mechanisms",
     "loop over the joints and add up `spatial_adjoint(...)` products"),
    ("dense_*", "dense solvers in kernels", "use numpy.linalg on the host"),
    ("bfloat16", "bfloat16 numbers", "use `float16` or `float32`"),
    ("fabricarray* indexedfabricarray*", "arrays of the Fabric",
     "pass an ordinary array"),
    ("array_store array_load address_of", "addresses", "index the array: `a[i]`"),
    ("block_dim tile_dim", "thread blocks", "use `tid()`: every thread works alone"),
)  # fmt: skip


def _table() -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    exact: dict[str, tuple[str, str]] = {}
    prefixes: dict[str, tuple[str, str]] = {}
    for names, feature, help_text in _FEATURES:
        for name in names.split():
            if name.endswith("*"):
                prefixes[name[:-1]] = (feature, help_text)
            else:
                exact[name] = (feature, help_text)
    return exact, prefixes


_EXACT, _PREFIXES = _table()


def missing_feature(name: str) -> tuple[str, str] | None:
    """The feature that a name of Warp belongs to, with what to write instead."""
    if name in _EXACT:
        return _EXACT[name]
    for prefix, found in _PREFIXES.items():
        if name.startswith(prefix):
            return found
    return None


def plural(feature: str) -> str:
    """The feature with its verb: "tiles are", "printing from a kernel is"."""
    one = feature.startswith("this")
    return f"{feature} {'is' if one else 'are'}"
