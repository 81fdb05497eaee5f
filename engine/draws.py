"""Random numbers from NumPy's generator, kept from before a program could change it.

A program that is checked may have put another in its place by the time that directions are drawn.
"""

from numpy.random import Generator, default_rng

__all__ = ["Generator", "default_rng"]
