"""From a Python function to typed IR: source, fence, desugar, scope, lower."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.ir.nodes import Function


def lower_kernel(func: Callable[..., Any]) -> Function:
    """The IR of a kernel. Raises KernelError with everything that is wrong with it."""
    from engine.frontend import lower  # late: programs that launch nothing never need it

    return lower.lower_kernel(func)


__all__ = ["lower_kernel"]
