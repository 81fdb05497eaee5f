"""Builtins written in the kernel language. Importing this package registers them."""

from engine.builtins.library import arithmetic, decompositions, noise, norms, random, search

__all__ = ["arithmetic", "decompositions", "noise", "norms", "random", "search"]
