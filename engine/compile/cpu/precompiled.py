"""Precompiled headers of kernels: headers are a third of a small kernel's compile time.

What is kept is checked by its hash before it is used, in each process once. Where it cannot be
made or used, kernels are compiled as without.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.codegen import headers, loans
from engine.compile.cache import Cache
from engine.compile.cpu.build import Job, Outcome
from engine.compile.cpu.toolchain import Toolchain
from engine.diagnostics import CompilerError
from engine.hashing import hashed
from engine.private import is_own

_INCLUDED = (headers.COMMON, loans.HEADER)
_WORTH = 8  # entry points in a cache that will see more of them


class _Parsed:
    """What this process knows of headers: which it found whole, and which are of no use to it."""

    def __init__(self) -> None:
        self.whole: set[Path] = set()
        self.given_up: set[Path] = set()


_parsed = _Parsed()


def find(cache: Cache, toolchain: Toolchain) -> Path | None:
    """A file to include before a kernel that has no settings; None where there is none."""
    if not toolchain.precompiles:
        return None
    header = _header(cache, toolchain)
    if header in _parsed.given_up:
        return None
    if header not in _parsed.whole:
        if not _is_whole(cache, header):
            return None
        _parsed.whole.add(header)
    # The compiler opens them by their paths, in a folder where only the user can exchange them.
    own = is_own(f"{header}.gch") and is_own(str(header))
    return header if own else None


def job(cache: Cache, toolchain: Toolchain, folder: Path) -> Job | None:
    """What makes it in a build's folder; None where it cannot be, or is not worth it.

    A script of few kernels would have to wait for what it does not use.
    """
    if not toolchain.precompiles or _header(cache, toolchain) in _parsed.given_up:
        return None
    if len(os.listdir(f"{cache.folder}/index")) < _WORTH:
        return None
    source = folder / "kernels.h"
    source.write_text(_text(), encoding="utf-8")
    output = Path(f"{source}.gch")
    return Job(source, output, toolchain.header_command(source.name, output.name, headers.CPU))


def keep(cache: Cache, toolchain: Toolchain, made: Outcome) -> None:
    """Puts what a job made where `find` looks."""
    header = _header(cache, toolchain)
    if made.problem:
        _parsed.given_up.add(header)
        return
    with contextlib.suppress(OSError, CompilerError):
        digest = hashed(made.output.read_bytes()).hexdigest()
        for file in (made.source, made.output):
            os.chmod(file, 0o600)  # whatever the umask: see `engine.private`
        os.replace(made.source, header)
        os.replace(made.output, f"{header}.gch")
        cache.note(header.stem, digest)


def give_up(cache: Cache, toolchain: Toolchain) -> None:
    """The compiler fails with it: no more of it in this process, and none for others."""
    header = _header(cache, toolchain)
    _parsed.given_up.add(header)
    cache.discard(f"{header}.gch")


def _is_whole(cache: Cache, header: Path) -> bool:
    try:
        digest = hashed(cache.read(f"{header}.gch", touch=True)).hexdigest()
        if cache.noted(header.stem) != digest:
            cache.discard(f"{header}.gch")
            return False
        return cache.read(str(header)).decode() == _text()
    except (OSError, ValueError):
        return False


def _header(cache: Cache, toolchain: Toolchain) -> Path:
    parts = (toolchain.key, headers.hash_of(headers.CPU), _text())
    name = hashed("\0".join(parts).encode()).hexdigest()
    return cache.root / "headers" / f"{name}.h"


def _text() -> str:
    return "".join(f'#include "{name}"\n' for name in _INCLUDED)
