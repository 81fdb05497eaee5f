"""Random numbers: NumPy's generator as it was when this was loaded.

A program that is checked may have put another in its place by the time that directions are drawn.
"""

from numpy.random import Generator, default_rng

__all__ = ["Generator", "default_rng"]
