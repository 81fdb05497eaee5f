"""Executors of tasks (`adtool.executors.base`), one file each, found by name.

A file NAME.py has `make(jobs, root)`, which gives an `Executor` of that many workers at once; 0
leaves the number to it. root: the folder that workers import adtool from.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from adtool import paths
from adtool.executors.base import Executor

_NONE = ("base", "remote", "worker")


def names() -> tuple[str, ...]:
    """The executors there are."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NONE))


def executor(name: str, jobs: int = 0) -> Executor:
    """The executor of this name. Raises ToolError where what it needs is not installed."""
    found: Executor = import_module(f"{__name__}.{name}").make(jobs, paths.ROOT)
    return found
