"""Builtins written in the kernel language. Importing this package registers them."""

from engine.builtins.library import norms

__all__ = ["norms"]
