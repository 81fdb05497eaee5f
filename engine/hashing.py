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


def is_whole(text: str) -> bool:
    """Whether C++ text depends on nothing but itself and a compiler: it names no file of a user."""
    return all(name.startswith("<") and name[1:2] not in ("/", ".") for name in _named(text))


def _named(text: str) -> list[str]:
    """What follows each `#include` and its like."""
    import re  # late: few kernels have such text

    text = text.replace("\\\n", "")
    if "include" not in text and "import" not in text and "embed" not in text:
        return []
    command = r"(?:#|%:|\?\?=)[ \t]*(?:include|include_next|import|embed)\b[ \t]*(.?.?)"
    return re.findall(command, text)
