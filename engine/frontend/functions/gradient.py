"""`grad(f)`: the derivative of a function as a function that kernels can call."""

from __future__ import annotations

from typing import Any

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, EngineError


@dataclass(frozen=True)
class Gradient:
    """What `grad(target)` is. target: made by `@func`, a builtin, or a Gradient itself."""

    target: Any

    @property
    def __name__(self) -> str:
        return f"grad({getattr(self.target, '__name__', self.target)})"

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Raises EngineError E106: derivatives are made where a kernel calls them."""
        raise EngineError(
            Diagnostic(
                "E106",
                f"`{self.__name__}` was called outside a kernel",
                help="call it in a function decorated with @kernel or @func",
            )
        )


def grad(func: Any) -> Gradient:
    """The derivative of a function, for calls in kernels: `grad(f)(x, y)`.

    It takes the arguments of `func` and returns, for each that is no array, the derivative
    of the result by it: of the argument's type, and zero where that has no floats. Of several
    results, or a vector, it is the derivative of their sum. Kernels that use it can be
    differentiated again. The function may read arrays but not write them. Where it has loops, it is
    found by forward mode: gradients of the user's own in it are asked as by `autograd.jvp`.

    Args:
        func: a function made by `@func`, a builtin, or what `grad` returned.
    """
    if not callable(func):
        raise EngineError(Diagnostic("E103", f"grad(f) takes a function, got {func!r}"))
    return Gradient(func)


grad.__builtin_name__ = "grad"  # type: ignore[attr-defined]
