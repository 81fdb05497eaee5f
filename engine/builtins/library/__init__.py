"""Builtins written in the kernel language. Importing this package registers them."""

from engine.builtins.library import arithmetic, decompositions, norms

__all__ = ["arithmetic", "decompositions", "norms"]
