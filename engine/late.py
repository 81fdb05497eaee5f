"""Packages whose names are loaded on first use."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from engine.itself import load

STARTED = time.time()  # when the engine began to be loaded: the first of its modules does this


def late(package: str, modules: Mapping[str, str]) -> None:
    """Gives a package names of modules. modules: their names, and what a package takes of each.

    `name=other` takes `other` as `name`. What a module has of its own name hides the module,
    as it would where the package imported all.
    """
    places = {}
    for module, names in modules.items():
        for name in names.split():
            shown, _, own = name.partition("=")
            places[shown] = module, own or shown
    here: Any = sys.modules[package]

    def of_module(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = places[name]
        found = getattr(load(module), own)
        setattr(here, name, found)
        return found

    class Package(ModuleType):
        """A package of which functions are found where modules have their names."""

        def __setattr__(self, name: str, value: object) -> None:
            """Imports make a module an attribute of its package."""
            module, own = places.get(name, ("", ""))
            if isinstance(value, ModuleType) and module == f"{package}.{name}":
                value = getattr(value, own)
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *places})

    here.__class__ = Package
    here.__getattr__ = of_module
