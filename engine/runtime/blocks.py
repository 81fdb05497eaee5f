"""`with` blocks whose exit runs in every case.

A signal's handler may raise as a block ends (Ctrl-C does): in `__exit__`, before its first
statement. Python does not call it again, and what the block began would go on for good.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref


class Block:
    """What is entered by `with`, and left by a method that is a `Leave`."""

    # Tells when a block is over that was not left; None where none is watched.
    _watch: ref[Any] | None = None
    _token: Any = None  # while a block runs, what ends it

    def _end(self) -> None:
        """Ends what a block began, also where that has happened in part."""
        raise NotImplementedError

    def _lost(self, watch: ref[Any]) -> None:
        if self._watch is watch:
            self._watch = None
            self._end()


class Leave:
    """An `__exit__`. While a block runs, Python holds what it will call; then the block is over.

    The method sets `_watch` to None where all is done.
    """

    def __init__(self, leave: Callable[..., None]) -> None:
        self._leave = leave

    def __get__(self, of: Block | None, cls: Any = None) -> Callable[..., None]:
        if of is None:
            return self._leave
        # No bound method, which is gone before the call begins; nor does a traceback keep this.
        call = partial(self._leave, of)
        if of._token is None:
            of._watch = ref(call, of._lost)
        return call
