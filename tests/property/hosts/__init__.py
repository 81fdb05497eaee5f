"""Random host programs: what a user's Python does around a few kernels, against dual numbers."""
