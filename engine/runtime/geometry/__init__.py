"""Geometry that kernels query: hash grids, meshes, bounding volume hierarchies."""
