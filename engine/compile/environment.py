"""Describes the compiler and the cache on this machine, and their problems."""

from __future__ import annotations

import platform
import shlex
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from engine import config
from engine.classes import dataclass
from engine.compile.cache import chosen_root, files_of, open_cache
from engine.compile.cpu.pool import processors as processors  # for users, too
from engine.compile.cpu.toolchain import find_toolchain
from engine.diagnostics import CompilerError


@dataclass(frozen=True, slots=True)
class Environment:
    """The compiler, the cache and the processors of the CPU.

    compiler: its command, empty where none works; version: its own words, first line.
    cache: the folder of compiled kernels, empty where it cannot be used; cache_chosen: the one
    that was asked for; cache_bytes, cache_kernels: what it holds; cache_limit: bytes, 0 for none.
    compiler_problem, cache_problem: what is wrong, empty where nothing is, and what to do.
    threads: how many a launch may use.
    """

    compiler: str
    version: str
    compiler_problem: tuple[str, str]
    cache: str
    cache_chosen: str
    cache_bytes: int
    cache_kernels: int
    cache_limit: int
    cache_problem: tuple[str, str]
    threads: int


def environment() -> Environment:
    """Looks for the compiler and the cache under the present settings. Compiles nothing."""
    compiler = said = ""
    compiler_problem = cache_problem = ("", "")
    try:
        found = find_toolchain()
        compiler, said = shlex.join(found.command), found.version.splitlines()[0]
    except CompilerError as error:
        compiler_problem = _said(error)
    cache, total, kernels = "", 0, 0
    try:
        used = open_cache()
        cache, cache_problem = used.folder, used.problem
        total = sum(info.st_size for _, info in files_of(used.root / "objects"))
        kernels = len(files_of(used.root / "index"))
    except CompilerError as error:
        cache_problem = _said(error)
    return Environment(
        compiler, said, compiler_problem, cache, str(chosen_root() or ""), total, kernels,
        config.cache_limit_bytes, cache_problem, processors(),
    )  # fmt: skip


def print_diagnostics() -> None:
    """Prints versions, the platform, the compiler, the cache and the processors.

    What is asked for in a report of a fault. Compiles nothing; raises nothing where the compiler
    or the cache is missing: what is wrong with it is printed.
    """
    found = environment()
    rows = [("Software", "")]
    for package in ("engine", "numpy", "cupy", "torch", "jax", "paddlepaddle", "numba"):
        with suppress(PackageNotFoundError):
            rows.append((package, version("adtool" if package == "engine" else package)))
    rows += [("python", sys.version.replace("\n", " ")), ("platform", platform.platform())]
    rows += [("CPU", ""), ("processors", str(found.threads))]
    rows.append(("compiler", found.compiler or "; ".join(found.compiler_problem)))
    rows.append(("its version", found.version))
    rows += [("Cache", ""), ("folder", found.cache or found.cache_chosen)]
    rows.append(("kernels", f"{found.cache_kernels:,} in {found.cache_bytes:,} bytes"))
    rows.append(("problem", "; ".join(filter(None, found.cache_problem))))
    for name, value in rows:
        head = name[0].isupper() and not value
        if head or value:
            print(name if head else f"  {name + ':':<14}{value}")


def _said(error: CompilerError) -> tuple[str, str]:
    first = error.diagnostics[0]
    return "; ".join((first.message, *first.notes)), first.help
