"""Saves the end of a process the time to take apart what is in modules, object by object."""

import gc
from collections.abc import Iterable
from types import ModuleType
from typing import Any


def keep(modules: Iterable[ModuleType]) -> None:
    """Has Python end without taking apart what is in some modules.

    What was made before is looked through for garbage no more.
    """
    kept: list[Any] = [list(m.__dict__.values()) for m in modules if isinstance(m, ModuleType)]
    kept.append(kept)  # refers to itself: only a search for garbage would end it
    gc.freeze()
