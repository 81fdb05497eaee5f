"""Finds the C++ compiler, and lists everything that its output depends on."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine import config
from engine.cached import cached_property
from engine.classes import dataclass
from engine.compile.cache import open_cache
from engine.diagnostics import CompilerError, Diagnostic
from engine.hashing import hashed
from engine.processes import output

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS = (
    "-std=c++17",
    "-march=native",
    # IEEE arithmetic: no contraction to fma, no fast-math. What is given up is errno and
    # floating-point traps, which kernels cannot see.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",  # integers wrap
    "-fno-strict-aliasing",  # arrays of different types may be views of one memory
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
)
# How much a compiler does for a kernel, by its length: each level bounds the time that it takes.
LEVELS = ("-O3", "-O2", "-O1")
_CANDIDATES = ("g++", "clang++", "c++")
_HELP = (
    "install a C++ compiler: the package g++ (Debian, Ubuntu), gcc-c++ (Fedora, RHEL), gcc (Arch, "
    "conda: gxx) or the Xcode command line tools (macOS); or, without a system package, `pip "
    "install ziglang`; or set the environment variable CXX to a compiler"
)


@dataclass(frozen=True)
class Toolchain:
    """A compiler that works.

    command: how it is called, without flags. version: its own words. cpu: the processor
    that `-march=native` compiles for. levels: of `LEVELS`, as far as the settings let it go.
    libraries: what comes after the source.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    cpu: str
    levels: tuple[str, ...] = LEVELS
    libraries: tuple[str, ...] = ("-lm",)

    @cached_property
    def key(self) -> str:
        """A hash of everything but the source text that the output depends on."""
        parts = (*self.command, self.version, *self.flags, *self.levels, *self.libraries, self.cpu)
        return hashed("\0".join(parts).encode()).hexdigest()

    @property
    def precompiles(self) -> bool:
        """Whether it is GCC itself, which keeps what it parsed, and takes up what fits alone."""
        return _plain_gcc(self.command, self.version)

    def compile_command(
        self,
        source: str,
        output: str,
        include: Sequence[Path],
        level: int = 0,
        before: Path | None = None,
    ) -> list[str]:
        """The command that makes a shared object of a source file.

        include: folders of headers, in the order of the search. level: of `LEVELS`. before: a
        header that is read before the file, which may be precompiled.
        """
        first = [] if before is None else ["-include", str(before)]
        return [*self.command, self.levels[level], *self.flags, *_folders(include), *first,
                "-o", output, source, *self.libraries]  # fmt: skip

    def header_command(self, source: str, output: str, include: Sequence[Path]) -> list[str]:
        """The command that precompiles a header, for sources at the first level."""
        flags = [f for f in self.flags if f != "-shared"]
        return [*self.command, self.levels[0], *flags, *_folders(include),
                "-x", "c++-header", "-o", output, source]  # fmt: skip


def _folders(include: Sequence[Path]) -> list[str]:
    return [word for folder in include for word in ("-iquote", str(folder))]


def _plain_gcc(command: tuple[str, ...], version: str) -> bool:
    """GCC without flags of the user's, on a system whose linker and libraries are known."""
    gcc = "Free Software Foundation" in version
    return gcc and len(command) == 1 and sys.platform.startswith("linux")


def find_toolchain() -> Toolchain:
    """The compiler to use under the present settings.

    Raises CompilerError (E301) where none is found, or where $CXX or `config.cxx` names one
    that does not run.
    """
    chosen = os.environ.get("CXX") or config.cxx or ""
    return _find(chosen, os.environ.get("PATH", ""), config.debug_info, _levels())


def _levels() -> tuple[str, ...]:
    """`LEVELS`, none of them above `config.optimization_level`."""
    most = config.optimization_level
    first = 0 if most is None else min(max(len(LEVELS) - most, 0), len(LEVELS) - 1)
    return tuple(LEVELS[max(i, first)] for i in range(len(LEVELS)))


@functools.lru_cache(maxsize=8)
def _find(chosen: str, path: str, debug: bool, levels: tuple[str, ...]) -> Toolchain:
    if chosen:
        import shlex  # late: most programs take what is there

        try:
            command = tuple(shlex.split(chosen))
        except ValueError:
            command = (chosen,)
        tried = _version(command)
        if isinstance(tried, str):
            return _toolchain(command, tried, debug, levels)
        raise CompilerError(
            Diagnostic(
                "E301",
                f"the C++ compiler {chosen!r}, named by CXX, does not run",
                help="set CXX to a C++ compiler that works, or unset CXX to search for a compiler",
                notes=(f"`{chosen} --version`: {tried}",),
            )
        )
    tries = []
    for command in _candidates(path):
        tried = _version(command)
        if isinstance(tried, str):
            return _toolchain(command, tried, debug, levels)
        import shlex

        tries.append(f"`{shlex.join(command)} --version`: {tried}")
    looked = f"looked for {', '.join(_CANDIDATES)} on PATH and for the Python package ziglang"
    raise CompilerError(
        Diagnostic("E301", "no C++ compiler found", help=_HELP, notes=(looked, *tries))
    )


def _candidates(path: str) -> Iterator[tuple[str, ...]]:
    for name in _CANDIDATES:
        found = _which(name, path)
        if found:
            yield (found,)
    zig = _zig()
    if zig:
        yield (zig, "c++")


def _zig() -> str:
    """The program in the package ziglang, empty where that is not installed.

    The package is not run by its name: `python -m` would take a `ziglang.py` of the current folder.
    """
    import importlib.util

    try:
        spec = importlib.util.find_spec("ziglang")
    except ValueError:  # a module of that name that some program made up
        return ""
    if spec is None or not spec.has_location or spec.submodule_search_locations is None:
        return ""
    name = "zig.exe" if sys.platform == "win32" else "zig"
    for folder in spec.submodule_search_locations:
        program = os.path.join(os.path.abspath(folder), name)
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return ""


def _version(command: tuple[str, ...]) -> str | Exception:
    """What the compiler says to --version, or why it says nothing."""
    key = _stamp(command)
    if key and (known := _remembered(key)):
        return known
    import subprocess

    try:
        words = output([*command, "--version"], 60.0).strip()
    except (OSError, ValueError, subprocess.SubprocessError) as e:
        return e
    if key and words:
        with contextlib.suppress(OSError, CompilerError):
            open_cache().note(key, words)
    return words


def _which(name: str, path: str) -> str:
    """The program of a name, empty for none. As `shutil.which`, which takes long to import."""
    if sys.platform == "win32" or not path:
        import shutil

        return shutil.which(name, path=path or None) or ""
    folders = [""] if os.path.dirname(name) else path.split(os.pathsep)
    for folder in folders:
        found = os.path.join(folder, name)
        if os.access(found, os.F_OK | os.X_OK) and not os.path.isdir(found):
            return found
    return ""


_COMPILER = re.compile(r"(.+-)?(g\+\+|gcc|clang|clang\+\+)(-[0-9.]+)?")


def _stamp(command: tuple[str, ...]) -> str:
    """What tells a compiler from all others, and from itself before and after it was replaced.

    Empty where that is not certain: a script, or a program that starts others, may say anything.
    """
    if len(command) != 1:
        return ""
    path = os.path.realpath(_which(command[0], os.environ.get("PATH", "")))
    if _COMPILER.fullmatch(os.path.basename(path)) is None:
        return ""
    try:
        info = os.stat(path)
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return ""
    except OSError:
        return ""
    parts = (*command, path, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns,
             info.st_ctime_ns)  # fmt: skip
    return hashed("\0".join(map(str, parts)).encode()).hexdigest()


def _remembered(key: str) -> str | None:
    """What the same compiler said to an earlier process."""
    try:
        return open_cache().noted(key)
    except CompilerError:  # an unsafe folder is told when something is to be loaded from it
        return None


_NUMBER = re.compile(r"(?:clang version|\)) (\d+)")


def _toolchain(
    command: tuple[str, ...], version: str, debug: bool, levels: tuple[str, ...]
) -> Toolchain:
    flags: tuple[str, ...] = _FLAGS
    clang = "clang" in version
    number = _NUMBER.search(version)
    if number and int(number[1]) >= (12 if clang else 10):
        flags += ("-fno-finite-loops",)  # C++ would let a kernel's endless loop be removed
    if not clang:
        # GCC 12 moves loads that it makes into vectors past the end of a variable's life, when
        # another one may have its place on the stack: products of matrices came out wrong.
        flags += ("-fstack-reuse=none",)
        if number and int(number[1]) >= 11:
            # GCC 12 believes of a function in pieces that a piece leaves the frame as it was, and
            # returns zero.
            flags += ("-fno-ipa-modref",)
    # Kernels need nothing of the C++ library (which zig would build first, for minutes).
    libraries: tuple[str, ...] = ("-lm",)
    if clang:
        flags += ("-nostdlib++",)
    elif _plain_gcc(command, version):  # to look into that library takes as long as to link
        libraries = ("-nodefaultlibs", "-Wl,--as-needed", "-lm", "-lc", "-lgcc")
    elif sys.platform.startswith("linux"):
        libraries = ("-Wl,--as-needed", "-lm")
    if debug:
        flags += ("-g",)
    return Toolchain(command, version, flags, cpu_features(), levels, libraries)


@functools.lru_cache(maxsize=1)
def cpu_features() -> str:
    """The processor's model and instruction sets, in the system's words."""
    base = f"{platform.system()} {platform.machine()}"
    try:
        with open("/proc/cpuinfo", errors="replace") as file:
            found = _features(file)
    except OSError:
        return f"{base} {platform.processor()} {_sysctl()}"
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags",
              "Features", "CPU implementer", "CPU part", "CPU variant", "isa")  # fmt: skip
    return "\n".join([base, *(f"{k}: {found[k]}" for k in wanted if k in found)])


def _features(lines: Iterable[str]) -> dict[str, str]:
    """What is said of the first processor: all of one machine run the same code."""
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if not name.strip() and found.keys() & {"flags", "Features", "isa"}:
            break  # there may be hundreds
        found.setdefault(name.strip(), value.strip())
    return found


def _sysctl() -> str:
    """What macOS knows of the processor; nothing elsewhere."""
    try:
        return output(["sysctl", "machdep.cpu", "hw.optional"], check=False)
    except OSError:
        return ""
