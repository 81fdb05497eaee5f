"""Functions of higher layers that lower layers call; `engine` sets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# product(a, b): of two quaternions or transforms on the host, as kernels compute it.
product: Callable[[Any, Any], Any] | None = None
# instantiate(composite, types): the IR of a builtin that is written in the kernel language.
instantiate: Callable[[Any, Any], Any] | None = None


def prepare() -> None:
    """Loads what launches need: the first kernel asks, since the next step is to run it.

    `engine` puts it here; it is done once.
    """


def prepare_gradients() -> None:
    """The same for tapes: the first array with a gradient asks, and waits for the first kernel.

    Programs that have both are about to record launches, and those without need no tapes.
    """


def adapter(cls: type) -> Any:
    """The adapter of the framework whose arrays a type is for, None for all other types.

    An `engine.interop.base.Adapter`; `engine` puts the function here that finds it.
    """
    del cls
