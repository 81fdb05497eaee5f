"""The operations of the language. Importing this package fills `engine.ir.ops.OPS`."""

from engine.builtins import linear, matrices, operators, scalars, structure

__all__ = ["linear", "matrices", "operators", "scalars", "structure"]
