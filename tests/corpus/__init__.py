"""Kernels of every construct, made for each float type, with the shapes to run them at."""
