"""Delays forks while a thread holds state that a child could never finish: imports, starts.

A child has one thread. A module that another one was importing stays locked in it, for ever; and
the pipe of a program that another one was starting stays open in it, for which its parent waits.
Both are over soon, so a fork waits for them. Locks of the engine need no wait (`engine.locks`).
"""

from __future__ import annotations

import _imp
import _thread
import os
import sys
import time
from typing import Any

_PATIENCE = 10.0  # seconds; whoever waits for the one that forks must not be waited for
_PAUSE = 0.001

# What the engine imports late, here and there. Not all: a program may run all its life in an
# import of its own.
_AWAITED = frozenset({"engine", "numpy", "ml_dtypes", *sys.stdlib_module_names})

# The modules that are being imported, and the locks of these: what `importlib` itself has. Where
# another Python has it in another way, nothing is waited for.
_locks: dict[str, Any] = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})


class _NoFork:
    """Held while a program is started: until nothing of its pipes is open here any more."""

    def __init__(self) -> None:
        self.lock = _thread.RLock()

    @property
    def __enter__(self) -> Any:
        return self.lock.acquire

    @property
    def __exit__(self) -> Any:
        return self.lock.__exit__


no_fork = _NoFork()
_held: list[bool] = []  # whether the lock is, by the thread that forks


def _importing() -> bool:
    """Whether another thread imports something that a child may want, or is about to."""
    me = _thread.get_ident()
    for name, found in tuple(_locks.items()):
        lock = found()
        if lock is not None and getattr(lock, "owner", None) != me:
            if name.partition(".")[0] in _AWAITED:
                return True
    return False


def _before() -> None:
    end = time.monotonic() + _PATIENCE
    held = no_fork.lock.acquire(timeout=_PATIENCE)
    while True:
        # With it no import begins, here or in the time until the system forks.
        _imp.acquire_lock()
        if not _importing() or time.monotonic() > end:
            break
        _imp.release_lock()
        time.sleep(_PAUSE)
    _held.append(held)


def _after_in_parent() -> None:
    if _held:
        _imp.release_lock()
        if _held.pop():
            no_fork.lock.release()


def _after_in_child() -> None:
    if _held:
        _imp.release_lock()
        _held.clear()
    no_fork.lock = _thread.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
