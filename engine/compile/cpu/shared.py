"""Shared objects of the engine's own C++, compiled on first use and cached like kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from engine import config
from engine.codegen import headers
from engine.compile.cache import Cache, in_cache
from engine.compile.cpu.build import build, shared_object
from engine.compile.cpu.toolchain import Toolchain, find_toolchain
from engine.diagnostics import CompilerError, Diagnostic
from engine.hashing import hashed


def headers_in(folder: Path) -> str:
    """The texts of a folder's headers, on which what includes them depends: see `load`."""
    return "".join(p.read_text(encoding="utf-8") for p in sorted(folder.glob("*.h")))


def load(
    source: Path, symbol: str, what: str, include: Sequence[Path] = (), depends: str = ""
) -> ctypes.CDLL:
    """The library made of a source file.

    symbol: one of its entry points. what: it in words, for errors. include: further folders of
    headers; depends: what of them the result depends on, in any words.
    Raises CompilerError (E301, E302, E303), OSError where what was made cannot be loaded.
    """
    toolchain = find_toolchain()
    text = source.read_text(encoding="utf-8")
    parts = (text, headers.hash_of(headers.CPU), toolchain.key, *filter(None, [depends]))
    key = hashed("\0".join(parts).encode()).hexdigest()

    def find(cache: Cache) -> ctypes.CDLL | None:
        found = _stored(cache, key)
        if found is not None:
            return found
        with cache.lock(key, config.compile_timeout):
            found = _stored(cache, key)
            if found is None:
                _compile(cache, key, source, text, (symbol, what), toolchain, include)
        return found or _stored(cache, key)

    found = in_cache(find)
    if found is None:
        raise OSError("the compiled library cannot be loaded")
    return found


def _stored(cache: Cache, key: str) -> ctypes.CDLL | None:
    """The library from the cache; None where it is not there or cannot be used."""
    stored = cache.find(key)
    if stored is None:
        return None
    try:
        return ctypes.CDLL(str(stored.path))
    except OSError:
        cache.discard(stored.path)
        return None


def _compile(
    cache: Cache, key: str, source: Path, text: str, names: tuple[str, str],
    toolchain: Toolchain, include: Sequence[Path],
) -> None:  # fmt: skip
    with cache.workspace() as folder:
        copy = folder / source.name
        copy.write_text(text, encoding="utf-8")
        job = shared_object(toolchain, copy, [*headers.CPU, *include])
        (made,) = build([job], config.compile_timeout)
        if made.problem:
            log = cache.log(key, made.said)
            problem = f"the C++ compiler {made.problem} on {names[1]}"
            raise CompilerError(Diagnostic("E302", problem, notes=(f"its output is in {log}",)))
        cache.add(made.output, {key: names[0]})
