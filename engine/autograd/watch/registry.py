"""The registry of detectors and of the facts that they find: the modules of one folder."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.autograd.facts import FACTS, Fact
from engine.autograd.watch import detectors as folder
from engine.itself import load

if TYPE_CHECKING:
    from engine.autograd.watch.detector import Detector


def detectors() -> list[type[Detector]]:
    """All detectors, in the order of the names of their modules, which is that of their events.

    `overwrites` has to come after `aliasing`, which puts arrays back.
    """
    from engine.autograd.watch.detector import Detector

    return [
        found
        for module in _modules() for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Detector)
        and found.__module__ == module.__name__
    ]  # fmt: skip


def fact_named(name: str) -> type[Fact] | None:
    """The class of facts of that name; None where there is none.

    Detectors are loaded only for a name that no loaded module has: reading results rarely needs
    the modules that found them.
    """
    if name not in FACTS:
        list(_modules())
    return FACTS.get(name)


def _modules() -> Iterator[Any]:
    for name in sorted(module.name for module in pkgutil.iter_modules(folder.__path__)):
        yield load(f"{folder.__name__}.{name}")
