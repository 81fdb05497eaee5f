"""The registry of detectors and of the facts that they find: the modules of one folder."""

from __future__ import annotations

import pkgutil

from engine.autograd.facts import FACTS, Fact
from engine.autograd.watch import detectors
from engine.itself import load


def load_detectors() -> None:
    """Loads all detectors, in the order of their names."""
    for name in sorted(module.name for module in pkgutil.iter_modules(detectors.__path__)):
        load(f"{detectors.__name__}.{name}")


def fact_named(name: str) -> type[Fact] | None:
    """The class of facts of that name; None where there is none.

    Detectors are only loaded for a name that no loaded module has: who reads results rarely needs
    what finds them.
    """
    if name not in FACTS:
        load_detectors()
    return FACTS.get(name)
