"""Looks at what the tool needs on a machine, piece by piece, and returns it as data."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Literal

import engine
from adtool import __version__, endings, paths, temporary
from adtool.counts import counted
from adtool.exits import Exit
from adtool.memory import in_words
from adtool.report import SCHEMA
from adtool.sources import WARP_NAME
from engine.classes import dataclass
from engine.distributions import version_at

Status = Literal["ok", "missing", "problem"]

_PROBE = f"""import sys
root = sys.argv[1]
{paths.OWN_FIRST}
from adtool.probe import main
main(path)
"""
_LIMIT = 300.0  # seconds for the probe
VERSION = "adtool-probe-version: "  # begins the line in which the probe says a version


@dataclass(frozen=True, slots=True)
class Item:
    """One piece. needed: the CPU does not work without it. found: a version, a path, a size."""

    name: str
    status: Status
    found: str
    help: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All pieces. ok: kernels run on the CPU."""

    schema: int
    tool: str
    ok: bool
    exit_code: int
    items: tuple[Item, ...]


# Name, its distribution where that differs, what it is for, how to get it.
_PACKAGES = (
    ("numpy", "numpy", "pip install numpy", True),
    ("typer", "typer", "pip install typer", True),
    ("rich", "rich", "pip install rich", True),
    ("matplotlib", "matplotlib", "plots and pictures: pip install matplotlib", False),
    ("graphviz", "graphviz", "the dot text of `adtool graph`: pip install graphviz", False),
    ("jinja2", "jinja2", "the page of `adtool report`: pip install jinja2", False),
    ("cupy", "", "CUDA: pip install cupy-cuda12x, or 'cupy-cuda13x[ctk]'", False),
    ("torch", "torch", "to use engine from PyTorch: pip install torch", False),
    ("jax", "jax", "to use engine from JAX: pip install jax", False),
    ("paddle", "paddlepaddle", "to use engine from Paddle: pip install paddlepaddle", False),
    ("warp", "warp-lang", "to check tapes of Warp itself: pip install warp-lang", False),
    ("numba", "numba", "to share arrays with Numba: pip install numba", False),
)
# A program has the same name as this package, and adtool does not use the program.
_NAMES = {"graphviz": "graphviz (Python package)"}
_WATCHED = {"torch": "PyTorch", "jax": "JAX", "warp": WARP_NAME}


def examine() -> DoctorReport:
    """Looks at everything. Takes seconds: a kernel is compiled from nothing, and run."""
    items = tuple(_items())
    ok = all(i.status == "ok" for i in items if i.needed)
    code = Exit.CLEAN if ok else Exit.FAILURE
    return DoctorReport(SCHEMA, f"adtool {__version__}", ok, int(code), items)


def _items() -> Iterator[Item]:
    yield Item("python", "ok", f"{platform.python_version()} ({sys.executable})", needed=True)
    yield Item("system", "ok", f"{platform.system()} {platform.machine()}", needed=True)
    if there := _has_numpy():
        yield from _engine()
    else:
        yield Item("kernels on the CPU", "problem", "not tried, as NumPy is missing",
                   "first fix the row of numpy", needed=True)  # fmt: skip
    for name, distribution, help, needed in _PACKAGES:
        item = _package(name, distribution, help, needed)
        watched = there and item.status == "ok" and name in _WATCHED
        yield _framework(item) if watched else replace(item, name=_NAMES.get(name, name))


def _has_numpy() -> bool:
    """Whether the engine can be used at all."""
    with suppress(ImportError):
        importlib.import_module("numpy")
        return True
    return False


def _engine() -> Iterator[Item]:
    """What the engine sees of the machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cache: it has a piece of its own
        found = engine.environment()
    if found.compiler:
        yield Item("compiler", "ok", f"{found.version} ({found.compiler})", needed=True)
    else:
        problem, help = found.compiler_problem
        yield Item("compiler", "missing", problem, help, needed=True)
    yield _cache(found)
    yield _kernel() if found.compiler and found.cache else Item(
        "kernels on the CPU", "problem", "not tried", "first fix the problems above", needed=True
    )  # fmt: skip
    yield Item("threads", "ok", f"{found.threads} of {os.cpu_count()} for a launch")
    yield _cuda()


def _cache(found: engine.Environment) -> Item:
    problem, help = found.cache_problem
    if not found.cache:
        return Item("cache", "problem", problem, help, needed=True)
    limit = f" of {in_words(found.cache_limit)}" if found.cache_limit > 0 else ""
    private = "private"
    with suppress(OSError):
        if os.stat(found.cache).st_mode & 0o077:
            private = "readable by others"
    kernels = counted(found.cache_kernels, "kernel")
    what = f"{found.cache}: {kernels}, {in_words(found.cache_bytes)}{limit}"
    if problem:
        return Item("cache", "problem", problem, help)
    return Item("cache", "ok", f"{what}, {private}")


def _kernel() -> Item:
    """Whether a kernel and its gradient compile, load and run, from an empty cache."""
    name = "kernels on the CPU"
    said, why = _tried()
    if said == "ok":
        return Item(name, "ok", "compiled and run, with a gradient", needed=True)
    return Item(name, "problem", why or said,
                "check that the compiler can make shared objects, or set CXX to another compiler",
                needed=True)  # fmt: skip


def _framework(item: Item) -> Item:
    """Whether all of a framework that `adtool check` watches can be watched in this version."""
    said, why = _tried(item.name)
    # The metadata of the package may be of another installation than what programs import.
    version, _, rest = said.partition("\n")
    if version.startswith(VERSION):
        item, said = replace(item, found=version.removeprefix(VERSION)), rest
    if said == "ok":
        return replace(item, found=f"{item.found}, all that adtool watches there was tested")
    if why:
        return replace(item, status="problem", found=f"{item.found}: {why}",
                       help=f"see that `python -c 'import {item.name}'` runs")  # fmt: skip
    seams = "; ".join(said.splitlines())
    return replace(
        item, status="problem", found=f"{item.found} cannot be watched: {seams}",
        help=endings.unwatched_help(_WATCHED[item.name]),
    )  # fmt: skip


def _tried(*what: str) -> tuple[str, str]:
    """What the probe printed in a process of its own; and why it did not come to its end."""
    with temporary.folder("adtool-doctor-") as folder:
        own = {"ENGINE_CACHE_DIR": folder, "TMPDIR": folder, "WARP_CACHE_PATH": folder}
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PROBE, paths.ROOT, *what], capture_output=True, text=True,
                errors="replace", timeout=_LIMIT, stdin=subprocess.DEVNULL, check=False,
                env=os.environ | {k: str(v) for k, v in own.items()},
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            return "", f"the trial did not run: {error}"
    out = done.stdout.strip()
    if done.returncode == 0 and out:
        return out, ""
    said = (done.stderr.strip() or out).splitlines()
    return "", f"the trial failed: {said[-1] if said else f'status {done.returncode}'}"


def _cuda() -> Item:
    """The devices that the driver sees. The engine's own kernels run on the CPU so far."""
    library = ctypes.util.find_library("cuda")
    if library is None:
        return Item("CUDA", "missing", "no driver", "install NVIDIA's driver to use a GPU")
    try:
        driver = ctypes.CDLL(library)
        count = ctypes.c_int(0)
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
        if failed:
            return Item("CUDA", "problem", f"the driver answers with error {failed}",
                        "check that `nvidia-smi` runs")  # fmt: skip
        names = []
        for number in range(count.value):
            text = ctypes.create_string_buffer(100)
            device = ctypes.c_int(0)
            driver.cuDeviceGet(ctypes.byref(device), number)
            driver.cuDeviceGetName(text, 100, device)
            names.append(text.value.decode(errors="replace"))
    except (OSError, AttributeError) as error:
        return Item("CUDA", "problem", f"the driver cannot be used: {error}")
    used = "" if engine.is_cuda_available() else "; this version runs kernels on the CPU"
    return Item("CUDA", "ok", (", ".join(names) or "a driver but no device") + used)


def _package(name: str, distribution: str, help: str, needed: bool) -> Item:
    """Whether a package is there; it is not imported."""
    spec = None
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(name)
    if spec is None:
        return Item(name, "missing", "not installed", help, needed)
    names = [distribution] if distribution else [
        d for d in importlib.metadata.packages_distributions().get(name, ()) if d
    ]  # fmt: skip
    versions = (version_at(candidate, spec.origin, name) for candidate in names)
    return Item(name, "ok", next(filter(None, versions), "of unknown version"), needed=needed)
