"""The headers of kernels, parsed by the compiler once: a third of a small kernel's time is theirs.

What is kept is checked by its hash before it is used, in each process once. Where it cannot be
made or used, kernels are compiled as without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

from engine.codegen import headers, loans
from engine.compile.cache import Cache
from engine.compile.cpu.build import Job, Outcome
from engine.compile.cpu.toolchain import Toolchain
from engine.diagnostics import CompilerError

_INCLUDED = (headers.COMMON, loans.HEADER)
_WORTH = 8  # entry points in a cache that will see more of them


class _Parsed:
    """What this process knows: by the place, the header that was found whole there."""

    def __init__(self) -> None:
        self.whole: dict[str, Path] = {}
        self.given_up: set[str] = set()


_parsed = _Parsed()


def find(cache: Cache, toolchain: Toolchain) -> Path | None:
    """A file to include before a kernel that has no settings; None where there is none."""
    if not toolchain.precompiles:
        return None
    name = _name(toolchain)
    place = f"{cache.folder}/{name}"
    if place in _parsed.given_up:
        return None
    found = _parsed.whole.get(place)
    if found is None:
        found = _whole(cache, name)
        if found is None:
            return None
        _parsed.whole[place] = found
    return found if os.path.isfile(f"{found}.gch") and found.is_file() else None


def job(cache: Cache, toolchain: Toolchain, folder: Path) -> Job | None:
    """What makes it in a build's folder; None where it cannot be, or is not worth it.

    A script of few kernels would have to wait for what it does not use.
    """
    if not toolchain.precompiles or f"{cache.folder}/{_name(toolchain)}" in _parsed.given_up:
        return None
    if len(os.listdir(f"{cache.folder}/index")) < _WORTH:
        return None
    source = folder / "kernels.h"
    source.write_text(_text(), encoding="utf-8")
    output = Path(f"{source}.gch")
    return Job(source, output, toolchain.header_command(source.name, output.name, headers.CPU))


def keep(cache: Cache, toolchain: Toolchain, made: Outcome) -> None:
    """Puts what a job made where `find` looks."""
    name = _name(toolchain)
    if made.problem:
        _parsed.given_up.add(f"{cache.folder}/{name}")
        return
    header = _header(cache, name)
    with contextlib.suppress(OSError, CompilerError):
        digest = hashlib.sha256(made.output.read_bytes()).hexdigest()
        shutil.copyfile(made.source, made.source.with_name("copy.h"))
        os.replace(made.source.with_name("copy.h"), header)
        os.replace(made.output, f"{header}.gch")
        cache.note(name, digest)


def give_up(cache: Cache, toolchain: Toolchain) -> None:
    """The compiler fails with it: no more of it in this process, and none for others."""
    name = _name(toolchain)
    _parsed.given_up.add(f"{cache.folder}/{name}")
    cache.discard(f"{_header(cache, name)}.gch")


def _whole(cache: Cache, name: str) -> Path | None:
    header = _header(cache, name)
    try:
        with open(f"{header}.gch", "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        if cache.noted(name) != digest:
            cache.discard(f"{header}.gch")
            return None
        if header.read_text(encoding="utf-8") != _text():
            return None
        os.utime(f"{header}.gch")  # for `Cache.trim`
    except (OSError, ValueError):
        return None
    return header


def _header(cache: Cache, name: str) -> Path:
    return cache.root / "headers" / f"{name}.h"


def _name(toolchain: Toolchain) -> str:
    parts = (toolchain.key, headers.hash_of(headers.CPU), _text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _text() -> str:
    return "".join(f'#include "{name}"\n' for name in _INCLUDED)
