"""Builtins that are written in the kernel language, as functions that kernels can call."""

from __future__ import annotations

from functools import cache

from engine.builtins.composite import Composite
from engine.frontend.functions.user_function import UserFunc


class LibraryFunc(UserFunc):
    """A function of the library. Its code has no place: problems belong to its caller."""

    library = True


@cache
def library_func(composite: Composite) -> LibraryFunc:
    """The one function of a composite builtin."""
    return LibraryFunc(composite.func)
