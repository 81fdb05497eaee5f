"""The names of the language, for functions of `engine.builtins.library` to import.

Any name can be imported from here; it stands for the builtin of that name when the
function is compiled. Names that begin with an underscore are for the library alone.
"""

from __future__ import annotations

from typing import Any

from engine.classes import dataclass


@dataclass(frozen=True)
class Name:
    """A builtin, by name."""

    __builtin_name__: str

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"{self.__builtin_name__} is a name of the kernel language")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Name(name)
