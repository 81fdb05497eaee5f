"""The hash by which the engine names what it keeps: BLAKE2b of 256 bits.

`hashlib` loads OpenSSL, which takes longer than all that a start hashes; it has this one from the
same module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hashlib import blake2b

try:
    _blake2b: Any = import_module("_blake2").blake2b
except ImportError:  # no CPython
    _blake2b = import_module("hashlib").blake2b


def hashed(data: bytes = b"") -> blake2b:
    """A hash of some bytes, which others may follow (`update`)."""
    found: blake2b = _blake2b(data, digest_size=32)
    return found
