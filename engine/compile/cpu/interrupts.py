"""Delays signals while the parts of a launch run, until their results are merged."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

# Those of `signal` without names for numbers, which take most of the time; where they are.
_plain = sys.modules.get("_signal", signal)
_handler_of, _handle = _plain.getsignal, _plain.signal
# Whose handlers may raise: Ctrl-C, and what limits the time of things.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2",
          "SIGBREAK")  # fmt: skip
_NUMBERS = tuple(int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name))

Handlers = dict[int, Any]
T = TypeVar("T")


def uninterrupted(run: Callable[..., T], *args: Any) -> T:
    """What a function gives; handlers of signals that come meanwhile are called after it.

    A launch that is a single call of compiled code behaves so by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        return run(*args)  # handlers run in the main thread
    handlers = {k: h for k in _NUMBERS if callable(h := _handler_of(k))}
    came: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))

    try:
        for k in handlers:
            handlers[k] = _handle(k, note)  # another one may have been set just now
        return run(*args)
    finally:
        try:
            try:
                _put_back(handlers, note)
            except BaseException:  # of a handler that is there again
                _put_back(handlers, note)
                raise
        finally:
            _deliver(handlers, came)


def _put_back(handlers: Handlers, note: object) -> None:
    for k, handler in handlers.items():
        if _handler_of(k) is note:  # else somebody has set another one
            _handle(k, handler)


def _deliver(handlers: Handlers, came: list[tuple[int, FrameType | None]]) -> None:
    """Calls the handlers of all signals that came, also where some raise."""
    if came:
        (number, frame), *rest = came
        try:
            if callable(handlers[number]):
                handlers[number](number, frame)
        finally:
            _deliver(handlers, rest)
