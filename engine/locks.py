"""Locks that are open in a forked child, whatever the parent's threads held."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Lock:
    """A re-entrant lock, to be made once for a module or for an object that lives for ever.

    In a forked child no thread is left that could release what another one had taken: there
    the lock is a new one. So what it guards must be whole or absent at any time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        owned: bool = self._lock._is_owned()  # type: ignore[attr-defined]
        if not owned:  # else the thread that forked holds it, and lives on
            self._lock = threading.RLock()

    # `with` calls these of the lock itself, which are no Python: a signal's handler that raises
    # finds it either taken, with its block to be left, or free.
    @property
    def __enter__(self) -> Callable[[], object]:
        return self._lock.acquire

    @property
    def __exit__(self) -> Callable[..., object]:
        return self._lock.__exit__

    def taken_at_once(self) -> bool:
        """Takes it unless another thread has it; who got it must `leave`."""
        return self._lock.acquire(blocking=False)

    def leave(self) -> None:
        """Gives it back."""
        self._lock.release()
