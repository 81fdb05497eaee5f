"""Ctrl-C while the parts of a launch run: it waits until their results are one."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

# Those of `signal` without names for numbers, which take most of the time; where they are.
_plain = sys.modules.get("_signal", signal)
_handler_of, _handle = _plain.getsignal, _plain.signal


class Uninterrupted:
    """What runs inside is not interrupted by SIGINT: its handler is called afterwards.

    A launch that is a single call of compiled code behaves so by itself.
    """

    __slots__ = ("_came", "_handler")

    def __enter__(self) -> None:
        handler = _handler_of(signal.SIGINT)
        self._handler = None
        if callable(handler) and threading.current_thread() is threading.main_thread():
            self._came: list[tuple[int, FrameType | None]] = []
            _handle(signal.SIGINT, self._note)
            self._handler = handler

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))

    def __exit__(self, *error: object) -> None:
        handler = self._handler
        if handler is not None:
            _handle(signal.SIGINT, handler)
            if self._came:
                handler(*self._came[0])
