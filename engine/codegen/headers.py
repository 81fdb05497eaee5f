"""The native headers: their folder, and all of them as one text.

Shared headers stand in `native`, those of one backend alone in a folder of it, which is searched
first. What every backend has to bring: `platform.h` (integers, qualifiers, the functions of a
device's library), `floats.h` (functions of real numbers), `libm.h` (their names in snippets),
`block.h` (the launch structure), `context.h` (memory of a thread), `launch.h` (threads),
`atomic.h`, `note.h` (what watched threads note).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from engine.hashing import hashed

_NATIVE = Path(__file__).parent / "native"
CPU = (_NATIVE / "cpu", _NATIVE)
CUDA = (_NATIVE / "cuda", _NATIVE)
ENGINE = "engine.h"  # all that kernels use
# What every kernel needs, and what few do: it takes a third of the time that reading all takes.
COMMON, DECOMPOSE = "common.h", "decompose.h"
WATCH = "watch.h"  # what watched kernels need
RACES = "races.h"  # the same of those that are watched for races, on the CPU alone
TRIG = "trig_{}.h"  # what kernels need that call sin, cos or tan, on the CPU alone
SNIPPET = "snippet.h"  # what native functions see; has the other in it

_INCLUDE = re.compile(r'#include "(.+)"')


@functools.lru_cache(maxsize=4)
def hash_of(folders: Sequence[Path]) -> str:
    """A hash of the text of all headers in some folders."""
    digest = hashed()
    for path in sorted(p for folder in folders for p in folder.glob("*.h")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.lru_cache(maxsize=8)
def in_one(folders: Sequence[Path], *names: str) -> str:
    """Headers with all that they include, each once, for compilers that read no files."""
    out: list[str] = []
    seen: set[str] = set()
    for name in names:
        _append(folders, name, out, seen)
    return "\n".join(out) + "\n"


def _append(folders: Sequence[Path], name: str, out: list[str], seen: set[str]) -> None:
    if name in seen:
        return
    seen.add(name)
    path = next(p for folder in folders if (p := folder / name).is_file())
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := _INCLUDE.fullmatch(line):
            _append(folders, found[1], out, seen)
        elif line != "#pragma once":
            out.append(line)
