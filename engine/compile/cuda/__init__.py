"""CUDA: text and machine code. Devices come later: nothing can be allocated or run yet.

No device of this kind is registered, so that users meet none of this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from engine.codegen import cuda, headers
from engine.codegen.spelling import identifier
from engine.compile.backend import Backend, Entry, Journal, Limits, Outcome
from engine.compile.cache import open_cache
from engine.compile.cuda import nvrtc
from engine.compile.failure import failure
from engine.diagnostics import Diagnostic, LaunchError
from engine.ir.nodes import Function
from engine.locks import Lock

# What stands for the entry point's name in hashed text: the name itself has the hash in it.
_SYMBOL = "ENGINE_ENTRY"


class Cuda(Backend):
    """GPUs of one architecture.

    An entry's code is that of a module (bytes), which holds the entry point `symbol` and those of
    kernels that were compiled with it. It is kept in memory alone. arch: `sm_90` for machine code,
    `compute_90` for PTX.
    """

    kind = "cuda"

    def __init__(self, arch: str = "sm_90") -> None:
        self.arch = arch
        self._lock = Lock()
        self._entries: dict[str, Entry] = {}

    # ---- code

    def emit(self, fn: Function, symbol: str) -> str:
        return cuda.emit(fn, symbol)

    def compile(self, fns: Sequence[Function]) -> list[Entry]:
        version = nvrtc.version()
        texts = [cuda.emit(f, _SYMBOL) for f in fns]
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
        return self._key(cuda.emit(fn, _SYMBOL), nvrtc.version()) in self._entries

    def _key(self, text: str, version: tuple[int, int]) -> str:
        parts = (text, headers.hash_of(headers.CUDA), self.arch, *nvrtc.FLAGS, str(version))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _build(self, todo: dict[str, tuple[Function, str]]) -> None:
        symbols = {key: f"{identifier(f.name)}_{key[:16]}" for key, (f, _) in todo.items()}
        parts = [text.replace(_SYMBOL, symbols[key]) for key, (_, text) in todo.items()]
        fns = [f for f, _ in todo.values()]
        text = "\n".join([cuda.preamble(fns), *parts])
        code, said = nvrtc.compile_program(text, self.arch)
        if not code:
            log = open_cache().log(next(iter(todo)), f"{said}\n\n{text}")
            raise failure("the CUDA compiler gave up", fns, said, nvrtc.FILE, text, log,
                          help="report this, with the file that the notes name")  # fmt: skip
        for key, symbol in symbols.items():
            self._entries[key] = Entry(symbol, code)

    # ---- memory and runs

    def allocate(self, ordinal: int, nbytes: int, zero: bool) -> tuple[Any, int]:
        _not_yet()

    def view(
        self, owner: object, address: int, shape: Sequence[int],
        strides: Sequence[int] | None,
        dtype: Any, writable: bool,
    ) -> Any:  # fmt: skip
        _not_yet()

    def owner_of(self, view: Any) -> object | None:
        _not_yet()

    def to_host(self, view: Any) -> Any:
        _not_yet()

    def put(self, view: Any, values: Any) -> None:
        _not_yet()

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
        _not_yet()


def _not_yet() -> NoReturn:
    raise LaunchError(Diagnostic("E208", "kernels do not run on CUDA yet", help='use device="cpu"'))
