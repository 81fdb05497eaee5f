"""From a Python function to typed IR: source, fence, desugar, scope, lower."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.builtins import stubs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.builtins.composite import Composite
    from engine.ir.nodes import Function
    from engine.lang.structs import UserType
    from engine.lang.types import Type


def lower_kernel(func: Callable[..., Any], types: Mapping[str, UserType] | None = None) -> Function:
    """The IR of a kernel. Raises KernelError with everything that is wrong with it.

    types: of the parameters that have none of their own.
    """
    from engine.frontend import lower  # late: programs that launch nothing never need it

    return lower.lower_kernel(func, types)


def _instantiate(composite: Composite, types: Sequence[Type]) -> Function:
    from engine.frontend.composites import library_func

    return library_func(composite).instance(types)


stubs.instantiate = _instantiate

__all__ = ["lower_kernel"]
