"""The engine's own package; a checked program may have a module of that name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import FrameType, ModuleType
from typing import Any

ENGINE: ModuleType = sys.modules[__name__.partition(".")[0]]
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def load(name: str) -> Any:
    """The module of that name, as an `import` statement in the engine finds it."""
    return __import__(name, globals(), None, ("",))


def loaded(name: str) -> ModuleType | None:
    """A module of the engine by its whole name, if it has been loaded."""
    found = sys.modules.get(name)
    return found if found is not None and is_own_scope(vars(found)) else None


def is_own_scope(names: Mapping[str, Any]) -> bool:
    """Whether names, as of a frame or a function, are those of a module of the engine."""
    return str(names.get("__file__") or "").startswith(FOLDER)


def calling_frame() -> FrameType | None:
    """The innermost frame that is not of the engine; None where all are."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own_scope(frame.f_globals):
        frame = frame.f_back
    return frame


def is_of_engine(obj: object) -> bool:
    """Whether a function or class is the engine's, and not of a module with the same name."""
    name = getattr(obj, "__module__", None)
    if not isinstance(name, str) or name.partition(".")[0] != "engine":
        return False
    parts = vars(obj).values() if isinstance(obj, type) else (obj,)
    scopes = [s for p in parts if (s := getattr(p, "__globals__", None)) and "__file__" in s]
    return all(is_own_scope(s) for s in scopes)
