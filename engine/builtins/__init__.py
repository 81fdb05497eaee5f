"""The operations of the language. Importing this package fills `engine.ir.ops.OPS`."""

from engine.builtins import library, linear, matrices, operators, scalars, structure

__all__ = ["library", "linear", "matrices", "operators", "scalars", "structure"]
