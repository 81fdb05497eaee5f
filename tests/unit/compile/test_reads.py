"""Files are opened in one way where they were kept by an earlier run: `engine.private`.

All that opens files in the engine by other means is in a table, with what it opens.
"""

from __future__ import annotations

import ast
from pathlib import Path

import engine

ROOT = Path(engine.__file__).parent
OWN = "the engine's own files"
SYSTEM = "files of the system"
BUILD = "a build under way, in a folder made for it"

# By module: what it opens. What is in a cache may be nowhere here but with the loaders, which open
# by its path what `Cache.find` has read.
OPENS = {
    "private": "the one way; and /proc",
    "reading": "sources, in one way",
    "codegen/headers": OWN,
    "compile/sources": OWN,
    "compile/cache": "words that are written; a build",
    "compile/cpu/build": BUILD,
    "compile/cpu/compiler": BUILD,
    "compile/cpu/precompiled": BUILD,
    "compile/cpu/libraries": "an object that was read and hashed",
    "compile/cpu/shared": "that, too; the engine's own files",
    "compile/cpu/pool": SYSTEM,
    "compile/cpu/runner": SYSTEM,
    "compile/cpu/toolchain": "the compiler; files of the system",
    "compile/cuda/gpu": "libraries of CUDA",
    "interop/ffi/library": "headers of JAX",
    "tape/graph/visualize": "the file of a picture, to be written",
}
_OPENING = {
    "open", "fdopen", "read_bytes", "read_text", "CDLL", "PyDLL", "dlopen", "LoadLibrary",
    "fromfile", "memmap", "mmap",
}  # fmt: skip


def _opens(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            f = node.func
            name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
            if name in _OPENING:
                return True
    return False


def test_all_that_opens_files_is_in_the_table() -> None:
    found = {
        path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__")
        for path in ROOT.rglob("*.py")
        if _opens(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(OPENS), "a file that was kept is read by `engine.private`"
