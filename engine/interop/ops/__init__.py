"""Kernels as operators of other frameworks, and stretches of other frameworks on a tape."""
