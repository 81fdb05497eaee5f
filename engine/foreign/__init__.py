"""Finds and checks handwritten gradients of other frameworks while a program runs.

`watching` looks on: it imports no framework, and installs something only where the program does.
`Operation` is what a framework's file makes of each call, and `check_operation` compares its
gradient with differences, as launches of kernels are compared, with the same verdicts.
"""

from engine.foreign.check import Seen, check_operation
from engine.foreign.operation import Operation, OperationFailed, Value, Variation
from engine.foreign.seams import version_of
from engine.foreign.watched import FRAMEWORKS, Watched, examined, watching

__all__ = [
    "FRAMEWORKS", "Operation", "OperationFailed", "Seen", "Value", "Variation", "Watched",
    "check_operation", "examined", "version_of", "watching",
]  # fmt: skip
