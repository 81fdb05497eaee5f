"""Compiled kernels of this process: each shared object is loaded once."""

from __future__ import annotations

import ctypes
import sys

from engine.compile.backend import Entry
from engine.compile.cache import Cache, open_cache
from engine.locks import Lock

if sys.platform == "win32":

    def dlopen(path: str) -> int:
        return ctypes.CDLL(path)._handle
else:
    from _ctypes import dlopen

# An entry point: its arguments, and the launch structure.
_Code = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


class Library:
    """A loaded shared object, for functions of a type that is known.

    `ctypes.CDLL` makes a type for each library, which takes as long as to load a small one.
    """

    __slots__ = ("_handle",)

    def __init__(self, path: str) -> None:
        self._handle = dlopen(path)


class Loader:
    """The kernels of this process, by what the cache finds them by."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.entries: dict[str, Entry] = {}
        self.libraries: dict[str, Library] = {}

    def load(self, cache: Cache, key: str) -> bool:
        """Loads a kernel from the cache; False where it is not there or cannot be used."""
        stored = cache.find(key, self.libraries)
        # An entry that names the code of another kernel was not written for this one.
        if stored is None or not stored.symbol.endswith(f"_{key[:16]}"):
            return False
        try:
            library = self.libraries.get(stored.path)
            if library is None:
                library = self.libraries[stored.path] = Library(stored.path)
            call = _Code((stored.symbol, library))  # type: ignore[arg-type]
        except (OSError, AttributeError, ValueError):
            cache.discard(stored.path)
            return False
        self.entries[key] = Entry(stored.symbol, call, key=key)
        return True

    def entry(self, key: str, symbol: str) -> Entry | None:
        """A kernel that an earlier process compiled, under its name; None where it is gone."""
        with self.lock:
            if key not in self.entries and not self.load(open_cache(), key):
                return None
            return named(self.entries[key], symbol)


def named(entry: Entry, symbol: str) -> Entry:
    """The entry under the name of the kernel that asks: kernels of one content share their code."""
    return entry if entry.symbol == symbol else Entry(symbol, entry.code, key=entry.key)


loader = Loader()
