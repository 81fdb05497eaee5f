"""What kernels query: hash grids, meshes, bounding volume hierarchies."""
