"""CUDA: text and machine code by NVRTC, memory and launches by CuPy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import config
from engine.classes import dataclass
from engine.codegen import cuda, headers
from engine.codegen.apart import Apart, pointed
from engine.codegen.facts import LINEAR, Facts, facts_of
from engine.codegen.frames import Frames, frames_of
from engine.codegen.layout import watch_words
from engine.codegen.spelling import identifier
from engine.codegen.winners import Fights, fights_of
from engine.compile.backend import (
    Backend,
    CachedLaunch,
    Entry,
    Journal,
    Limits,
    Marks,
    Outcome,
    Properties,
    Restless,
    Streams,
)
from engine.compile.cache import open_cache
from engine.compile.cuda import apart, memory, nvrtc
from engine.compile.cuda.gpu import Gpu
from engine.compile.cuda.pinned import Pinned
from engine.compile.cuda.view import View, geometry
from engine.compile.failure import failure
from engine.diagnostics import Diagnostic, LaunchError
from engine.hashing import hashed
from engine.ir.nodes import Function
from engine.ir.sites import places
from engine.locks import Lock

# What stands for the entry point's name in hashed text: the name itself has the hash in it.
_SYMBOL = "ENGINE_ENTRY"


@dataclass(frozen=True, eq=False)
class Code:
    """What runs a kernel. module: machine code or PTX, which may hold other kernels, too.

    notes: bytes of what a watched one notes, whose address ends its arguments.
    """

    module: bytes
    symbol: str
    facts: Facts
    frames: Frames
    is_adjoint: bool
    apart: Apart
    fights: Fights
    pointers: tuple[int, ...]  # places of what its form for such launches gets beside
    notes: int = 0
    # Which form launches with certain arguments take: see `engine.compile.cuda.apart`.
    forms: dict[object, int] = field(default_factory=dict)

    @property
    def linear(self) -> bool:
        """Whether it asks for the thread's number in the whole grid."""
        return LINEAR in self.facts.tids


def _kept(key: str) -> tuple[bytes, str] | None:
    """Machine code of the cache, and the symbol that a key has in it."""
    cache = open_cache()
    stored = cache.find(key)
    with contextlib.suppress(OSError):  # gone since
        if stored is not None:
            return cache.read(stored.path), stored.symbol
    return None


def _keep(code: bytes, symbols: dict[str, str]) -> None:
    """Puts machine code into the cache, and what is in it by keys."""
    cache = open_cache()
    with contextlib.suppress(OSError), cache.workspace() as folder:
        built = folder / "kernels.cubin"
        built.write_bytes(code)
        cache.add(built, symbols)


class Cuda(Backend):
    """One GPU, or an architecture to compile for.

    arch: `sm_90` for machine code, `compute_90` for PTX; that of the GPU where left out.
    """

    kind = "cuda"
    keeps = True  # whether machine code goes to the cache, for other processes

    def __init__(self, arch: str = "", gpu: Gpu | None = None) -> None:
        self._arch = arch
        self._gpu = gpu
        self._lock = Lock()
        self._entries: dict[str, Entry] = {}
        self._modules: dict[bytes, Any] = {}
        self._functions: dict[tuple[bytes, str], Any] = {}
        self._helpers: dict[str, Any] = {}
        self._scratch: tuple[Any, int] | None = None
        # Bytes of journal frames that were enough for kernels whose text does not tell.
        self.guesses: dict[str, int] = {}

    @property
    def gpu(self) -> Gpu:
        """What runs there. Raises LaunchError (E208) where there is none."""
        if self._gpu is None:
            raise LaunchError(
                Diagnostic("E208", "this is an architecture, not a GPU", help='use device="cpu"')
            )
        return self._gpu

    @property
    def properties(self) -> Properties | None:
        return None if self._gpu is None else self._gpu.properties

    @property
    def free_memory(self) -> int | None:
        return None if self._gpu is None else self._gpu.free_memory

    @property
    def stream(self) -> int:
        return self.gpu.stream

    @property
    def streams(self) -> Streams | None:
        return self._gpu

    def wait(self, stream: int) -> None:
        self.gpu.wait(stream)

    def device_of(self, address: int) -> int:
        return self.gpu.device_of(address)

    def synchronize(self) -> None:
        self.gpu.synchronize()

    @property
    def arch(self) -> str:
        """The architecture that kernels are compiled for."""
        if not self._arch:
            self._arch = "sm_90" if self._gpu is None else self._known(self.gpu.properties.arch)
        return self._arch

    # ---- code

    def emit(self, fn: Function, symbol: str) -> str:
        return cuda.emit(fn, symbol, known=apart.known_of(fn, self.arch))

    def compile(self, fns: Sequence[Function]) -> list[Entry]:
        version = self._version()
        texts = [self.emit(f, _SYMBOL) for f in fns]
        keys = [self._key(text, version) for text in texts]
        with self._lock:
            todo = {
                key: (fn, text)
                for key, fn, text in zip(keys, fns, texts, strict=True)
                if key not in self._entries
            }
            if todo:
                self._build(todo)
            return [self._entries[key] for key in keys]

    def is_cached(self, fn: Function) -> bool:
        key = self._key(self.emit(fn, _SYMBOL), self._version())
        return key in self._entries or (self.keeps and open_cache().find(key) is not None)

    def _key(self, text: str, version: tuple[int, int]) -> str:
        parts = (text, headers.hash_of(headers.CUDA), self.arch, *nvrtc.FLAGS, str(version))
        return hashed("\0".join(parts).encode()).hexdigest()

    def _build(self, todo: dict[str, tuple[Function, str]]) -> None:
        """Finds kernels in the cache, and compiles the others together."""
        if not self.keeps:
            self._run_compiler(todo)
            return
        cache = open_cache()
        with cache.lock(next(iter(todo)), config.compile_timeout):
            for key in list(todo):
                kept = _kept(key)
                if kept is not None:
                    self._entries[key] = self._entry(todo[key][0], *kept)
                    del todo[key]
            if not todo:
                return
            symbols = {key: self._symbol(key, fn) for key, (fn, _) in todo.items()}
            _keep(self._run_compiler(todo), symbols)

    def _run_compiler(self, todo: dict[str, tuple[Function, str]]) -> bytes:
        symbols = {key: self._symbol(key, fn) for key, (fn, _) in todo.items()}
        parts = [text.replace(_SYMBOL, symbols[key]) for key, (_, text) in todo.items()]
        fns = [f for f, _ in todo.values()]
        text = "\n".join([cuda.preamble(fns), *parts])
        code, said = self._compiled(text)
        if not code:
            log = open_cache().log(next(iter(todo)), f"{said}\n\n{text}")
            raise failure("the CUDA compiler failed", fns, said, nvrtc.FILE, text, log,
                          help="report this, with the file that the notes name")  # fmt: skip
        for key, (fn, _) in todo.items():
            self._entries[key] = self._entry(fn, code, symbols[key])
        return code

    def _symbol(self, key: str, fn: Function) -> str:
        return f"{identifier(fn.name)}_{key[:16]}"

    def _entry(self, fn: Function, code: bytes, symbol: str) -> Entry:
        pointers = tuple(at for _, at in pointed(fn))
        notes = 8 * watch_words(len(places(fn)[1])) if fn.watch == "bounds" else 0
        made = Code(code, symbol, facts_of(fn)[id(fn)], frames_of(fn), bool(fn.adjoints),
                    apart.known_of(fn, self.arch), fights_of(fn), pointers, notes)  # fmt: skip
        return Entry(symbol, made)

    # What tests put others in place of: the compiler.

    def _version(self) -> tuple[int, int]:
        return nvrtc.version()

    def _known(self, arch: str) -> str:
        return nvrtc.known(arch)

    def _compiled(self, text: str) -> tuple[bytes, str]:
        return nvrtc.compile_program(text, self.arch)

    # ---- loaded code

    def function(self, code: Code, suffix: str = "") -> Any:
        """A kernel on the device; an entry point of it."""
        key = (code.module, code.symbol + suffix)
        found = self._functions.get(key)
        if found is None:
            with self._lock:
                module = self._modules.get(code.module)
                if module is None:
                    module = self._modules[code.module] = self.gpu.load(code.module)
                found = self._functions[key] = self.gpu.function(module, key[1])
        return found

    def helper(self, header: str, symbol: str) -> Any:
        """A kernel of the package's own."""
        found = self._helpers.get(symbol)
        if found is None:
            code = self._helpers_code(header)
            with self._lock:
                module = self._modules[code] = self._modules.get(code) or self.gpu.load(code)
                found = self._helpers[symbol] = self.gpu.function(module, symbol)
        return found

    def _helpers_code(self, header: str) -> bytes:
        """Machine code of a header's kernels, which other processes find."""
        text = headers.in_one(headers.CUDA, header)
        key = self._key(text, self._version())
        kept = _kept(key) if self.keeps else None
        if kept is not None:
            return kept[0]
        code, said = self._compiled(text)
        assert code, said
        if self.keeps:
            _keep(code, {key: header})
        return code

    # ---- memory

    @property
    def scratch(self) -> int:
        """Where launches write errors that they cannot have."""
        if self._scratch is None:
            self._scratch = self.allocate(0, 64, True)
        return self._scratch[1]

    def allocate(self, ordinal: int, nbytes: int, zero: bool) -> tuple[Any, int]:
        del ordinal
        made = self.gpu.allocate(nbytes)
        if zero:
            self.gpu.clear(made[1], nbytes)
        return made

    def view(
        self, owner: object, address: int, shape: Sequence[int],
        strides: Sequence[int] | None,
        dtype: Any, writable: bool,
    ) -> Any:  # fmt: skip
        return View(self, owner, geometry(address, shape, strides, dtype, writable))

    def geometry(
        self, owner: object, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any
    ) -> NDArray[Any]:
        del owner
        return geometry(address, shape, strides, dtype, True)

    def export(
        self, owner: object, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any
    ) -> Any:
        return self.gpu.array(owner, address, shape, strides, dtype)

    def taken(self, source: Any) -> Any:
        return self.gpu.taken(source)

    def owner_of(self, view: Any) -> object | None:
        return view.owner if isinstance(view, View) else None

    def to_host(self, view: Any) -> NDArray[Any]:
        return memory.to_host(view) if isinstance(view, View) else np.asarray(view)

    def reader(self, owner: object, lo: int, hi: int) -> Callable[[int, int], bytes]:
        # The copy is made now, on the device, and nobody waits for it.
        del owner
        kept, address = self.allocate(0, hi - lo, False)
        self.gpu.move(address, lo, hi - lo)

        def read(at: int, size: int, kept: object = kept) -> bytes:
            del kept  # which has to stay
            return self.gpu.read(address + at - lo, size).tobytes()

        return read

    def put(self, view: Any, values: Any) -> None:
        memory.put(view, values)

    def put_later(self, view: Any, values: Any, pinned: object) -> None:
        memory.put(view, values, pinned if isinstance(pinned, Pinned) else None)

    def allocate_pinned(self, nbytes: int, zero: bool) -> tuple[Any, int]:
        return self.gpu.allocate_pinned(nbytes, zero)

    # ---- runs

    def run(
        self,
        entry: Entry,
        dim: tuple[int, ...],
        args: bytes,
        limits: Limits,
        threads: tuple[int, int] | None = None,
        journal: Journal | None = None,
        spare: Callable[[], Entry] | None = None,
    ) -> Outcome:
        from engine.compile.cuda import runner

        return runner.run(self, entry, dim, args, limits, threads, journal, spare)

    def restless(
        self, entry: Entry, dim: tuple[int, ...], args: bytes, journal: Journal | None = None
    ) -> Restless | None:
        from engine.compile.cuda import runner

        return runner.restless_of(entry, dim, args + entry.bound, journal)

    def cached_launch(
        self, entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits,
        marks: Marks | None = None,
    ) -> CachedLaunch | None:  # fmt: skip
        del args, marks
        from engine.compile.cuda import cached_launch

        return cached_launch.cached_launch(self, entry, dim, limits)
