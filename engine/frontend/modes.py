"""How functions are lowered: settings of the kernel that is being made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asserts: ContextVar[bool] = ContextVar("_asserts", default=False)


@contextmanager
def asserting(on: bool) -> Iterator[None]:
    """Whether `assert` statements of what is lowered meanwhile mean anything."""
    token = _asserts.set(on)
    try:
        yield
    finally:
        _asserts.reset(token)


def asserts() -> bool:
    """Whether assertions are compiled now."""
    return _asserts.get()
