"""Compiles kernels for the CPU, from IR functions to callable entry points.

`compile_functions` looks each function up by the hash of what its machine code depends
on, and compiles those that are missing together, into one shared object or a few.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from engine import config
from engine.codegen import headers, late
from engine.codegen.outline import LARGE, expanded_of, weight_of
from engine.codegen.spelling import identifier
from engine.compile.backend import Entry
from engine.compile.cache import Cache, in_cache, open_cache
from engine.compile.cpu import precompiled
from engine.compile.cpu.build import Outcome, build, shared_object
from engine.compile.cpu.libraries import loader, named
from engine.compile.cpu.loops import text
from engine.compile.cpu.pool import processors
from engine.compile.cpu.toolchain import LEVELS, Toolchain, find_toolchain
from engine.compile.failure import failure
from engine.diagnostics import UNKNOWN, CompilerError, Diagnostic, Span
from engine.hashing import hashed, is_whole
from engine.ir.nodes import Function, callees

# What stands for the entry point's name in hashed text: the name itself has the hash in it.
_SYMBOL = "ENGINE_ENTRY"
# Text for one compiler run; more is shared by several at once.
_BATCH_CHARS = 5_000
# The most for one run: the time limit holds for each, however many kernels a module has.
_MOST_CHARS = 300_000
# Scalar operations of a kernel from which on the compiler may do as little as it can.
HUGE = 5_000
# The same where every call is what it calls: clang would inline all of them, and not end.
DEEP = 100_000


def compile_functions(fns: Sequence[Function]) -> list[Entry]:
    """The entry points of kernels, in order; from memory, from the cache, or compiled.

    Raises CompilerError: E301 (no compiler), E302 (it failed), E303 (unsafe cache folder).
    """
    toolchain = find_toolchain()
    units = [_unit(f, toolchain) for f in fns]
    with loader.lock:
        todo = {u.key: u for u in units if u.key not in loader.entries}
        if todo:
            _load_all(list(todo.values()), toolchain)
        return [named(loader.entries[u.key], u.symbol) for u in units]


def compile_text(
    name: str, text: str, precise: bool, large: bool, span: Span | None = None
) -> Entry:
    """An entry point for a text that a kernel brings with it, in which `late.SYMBOL` is its name.

    name: of the kernel. precise, large: the settings that the kernel was compiled with. span: of
    what needs it.
    Raises CompilerError as `compile_functions` does.
    """
    toolchain = find_toolchain()
    fn = Function(name, (), (), (), span=span or UNKNOWN)
    unit = _Unit(fn, toolchain, (text, precise, large))
    with loader.lock:
        if unit.key not in loader.entries:
            _load_all([unit], toolchain)
        return named(loader.entries[unit.key], unit.symbol)


def is_cached(fn: Function) -> bool:
    """Whether a kernel's entry point can be had without a compiler run."""
    unit = _last.unit = _Unit(fn, find_toolchain())
    with loader.lock:
        return unit.key in loader.entries or _load(open_cache(), unit)


class _Last:
    """What was asked for last."""

    unit: _Unit | None = None


_last = _Last()


class _Unit:
    """One kernel on its way. given: its text and settings, where they are not its own."""

    def __init__(
        self, fn: Function, toolchain: Toolchain, given: tuple[str, bool, bool] | None = None
    ) -> None:
        self.fn = fn
        self.precise = bool(config.precise_math)
        self.made_for = (toolchain, self.precise)
        self.given = given is not None
        if given is None:
            self.text = text(fn, _SYMBOL)
            size = weight_of(fn)
            self.level = (size > LARGE or expanded_of(fn) > DEEP) + (size > HUGE)
        else:
            text_, self.precise, large = given
            self.text, self.level = text_.replace(late.SYMBOL, _SYMBOL), int(large)
        precise = "precise" if self.precise else ""
        snippets = [f.native.text for f in (fn, *callees(fn)) if f.native is not None]
        # What names files is compiled anew: they may be others now.
        once = "" if all(map(is_whole, snippets)) else os.urandom(16).hex()
        how = f"{self.level}{precise}{once}"
        parts = (self.text, headers.hash_of(headers.CPU), toolchain.key, how)
        self.key = hashed("\0".join(parts).encode()).hexdigest()
        self.symbol = f"{identifier(fn.name)}_{self.key[:16]}"

    def source(self) -> str:
        if config.debug_info and not self.given:
            return text(self.fn, self.symbol, lines=True)
        return self.text.replace(_SYMBOL, self.symbol)


def _unit(fn: Function, toolchain: Toolchain) -> _Unit:
    """What is to be loaded of a function: that which was just asked for need not be made again."""
    asked, _last.unit = _last.unit, None
    if asked is not None and asked.fn is fn:
        if asked.made_for == (toolchain, bool(config.precise_math)):
            return asked
    return _Unit(fn, toolchain)


def _load_all(units: list[_Unit], toolchain: Toolchain) -> None:
    in_cache(lambda cache: _load_from(cache, units, toolchain))


def _load_from(cache: Cache, units: list[_Unit], toolchain: Toolchain) -> None:
    missing = [u for u in units if not _load(cache, u)]
    if not missing:
        return
    batch = hashed("".join(sorted(u.key for u in missing)).encode()).hexdigest()
    with cache.lock(batch, config.compile_timeout):
        # Another process may have built them in the meantime.
        missing = [u for u in missing if not _load(cache, u)]
        if missing:
            _compile(cache, missing, toolchain)
    for u in missing:
        if not _load(cache, u):
            problem = f"the compiled kernel {u.fn.name!r} cannot be loaded"
            note = f"it was kept in {cache.root}"
            raise CompilerError(Diagnostic("E302", problem, span=u.fn.span, notes=(note,)))


def _load(cache: Cache, u: _Unit) -> bool:
    return loader.load(cache, u.key)


def _compile(cache: Cache, units: list[_Unit], toolchain: Toolchain) -> None:
    parts = _split(units)
    with cache.workspace() as folder:
        sources = [_write(part, folder / f"kernels{i}.cpp") for i, part in enumerate(parts)]
        outcomes = [*zip(parts, _build(cache, parts, sources, toolchain), strict=True)]
        for part, outcome in outcomes:  # what can be kept is not compiled again
            if not outcome.problem:
                cache.add(outcome.output, {u.key: u.symbol for u in part})
        for part, outcome in outcomes:
            if outcome.problem:
                raise _failure(cache, part, outcome)
    cache.trim()


def _write(part: list[_Unit], source: Path) -> Path:
    """One text of some kernels."""
    text = [*_settings(part), f'#include "{headers.COMMON}"', *(u.source() for u in part)]
    source.write_text("\n".join(text), encoding="utf-8")
    return source


def _settings(part: list[_Unit]) -> list[str]:
    unit = part[0]
    names = ["ENG_LARGE", "ENG_HUGE"][: unit.level] + ["ENG_PRECISE"] * unit.precise
    return [f"#define {name}" for name in names]


def _build(
    cache: Cache, parts: list[list[_Unit]], sources: list[Path], toolchain: Toolchain
) -> list[Outcome]:
    """Runs the compiler, for the headers, too, where that is not done yet."""
    ready = precompiled.find(cache, toolchain)
    first = [None if _settings(part) else ready for part in parts]
    levels = [part[0].level for part in parts]
    jobs = [shared_object(toolchain, source, headers.CPU, level, before)
            for source, level, before in zip(sources, levels, first, strict=True)]  # fmt: skip
    extra = None if ready else precompiled.job(cache, toolchain, sources[0].parent)
    every = jobs if extra is None else [*jobs, extra]
    outcomes = build(every, config.compile_timeout, processors())
    if extra is not None:
        precompiled.keep(cache, toolchain, outcomes.pop())
    for i, before in enumerate(first):
        if before is not None and outcomes[i].refused:  # its fault, perhaps
            plain = shared_object(toolchain, sources[i], headers.CPU, levels[i])
            (outcomes[i],) = build([plain], config.compile_timeout)
            if not outcomes[i].problem:
                precompiled.give_up(cache, toolchain)
    return outcomes


def _split(units: list[_Unit]) -> list[list[_Unit]]:
    """Batches of one level and of about the same length, the large ones first."""
    levels = [[u for u in units if u.level == level] for level in reversed(range(len(LEVELS)))]
    return [part for some in levels if some for part in _evenly(some)]


def _evenly(units: list[_Unit]) -> list[list[_Unit]]:
    total = sum(len(u.text) for u in units)
    count = min(processors(), total // _BATCH_CHARS)
    count = max(1, min(len(units), max(count, -(-total // _MOST_CHARS))))
    parts: list[list[_Unit]] = [[] for _ in range(count)]
    sizes = [0] * count
    for u in sorted(units, key=lambda u: (-len(u.text), u.key)):
        i = sizes.index(min(sizes))
        parts[i].append(u)
        sizes[i] += len(u.text)
    return parts


def _failure(cache: Cache, part: list[_Unit], outcome: Outcome) -> CompilerError:
    text = outcome.source.read_text(encoding="utf-8", errors="replace")
    parts = (f"$ {outcome.command}", f"The compiler {outcome.problem}.", outcome.said, text)
    fns = [u.fn for u in part]
    log = cache.log(part[0].key, "\n\n".join(parts))
    return failure(
        f"the C++ compiler {outcome.problem}", fns, outcome.said, outcome.source.name, text, log,
        help="check that the compiler can make shared objects, or set CXX to another compiler",
    )  # fmt: skip
