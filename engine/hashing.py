"""The hash by which the engine names what it keeps: BLAKE2b of 256 bits.

It is taken from where `hashlib` has it, which loads OpenSSL besides: that takes longer than all
that a start hashes.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from hashlib import blake2b


def _found() -> Callable[[bytes], Any]:
    for place in ("_blake2", "hashlib"):
        try:
            return partial(import_module(place).blake2b, digest_size=32)
        except (ImportError, AttributeError):  # no CPython, or one that was built without
            continue
    made: Callable[[bytes], Any] = import_module("hashlib").sha256
    return made


_hash = _found()


def hashed(data: bytes = b"") -> blake2b:
    """A hash of some bytes, which others may follow (`update`)."""
    found: blake2b = _hash(data)
    return found
