"""Higher-order functions of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.frontend import UserFunc
from engine.runtime.generated import named_function
from engine.runtime.modules import Module, get_module


def create_warp_function(func: Callable[..., Any]) -> tuple[UserFunc, Module]:
    """Makes a function that kernels can call of a Python function or a lambda, as `func` does.

    What it captures is taken as it is now. A lambda is called `func_` and a number that depends
    on its text alone. Returns the function, and the module of what it was made from.

    Raises KernelError (E103) for what is no such function; what it does is looked at when a kernel
    that calls it is launched.
    """
    made = named_function(func)
    return made, get_module(getattr(func, "__module__", None) or made.func.__module__)
