"""A lock for the watcher: programs may have several threads, the watcher has one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from engine.locks import Lock

P = ParamSpec("P")
R = TypeVar("R")

lock = Lock()


def alone(method: Callable[P, R]) -> Callable[P, R]:
    """A method of what watches a program, which no two threads are in."""

    @functools.wraps(method)
    def call(*args: P.args, **named: P.kwargs) -> R:
        with lock:
            return method(*args, **named)

    return call
