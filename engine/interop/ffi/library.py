"""The handler that XLA calls: compiled, registered, and given a way into Python.

The only module of `engine.interop` that knows `ctypes`: memory and functions of XLA come as
addresses. It runs no kernel; programs do, by the one driver.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engine.compile.cpu.shared import load
from engine.diagnostics import CompilerError, Diagnostic, LaunchError
from engine.locks import Lock

_SOURCE = Path(__file__).parent / "native" / "handler.cpp"
_CALL = "eng_ffi_call"
_HEADER = Path("xla") / "ffi" / "api" / "c_api.h"
TARGET = "engine_kernel"  # as XLA knows the handler
_ENTER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Program(Protocol):
    """What a call of the handler runs."""

    def run(self, pointers: tuple[int, ...]) -> None:
        """Runs it on the addresses of all operands, then of all results."""


_UNKNOWN = Diagnostic(
    "E201", "a compiled JAX function calls a kernel that this process has not traced",
    help="before you run exported or stored functions, make or trace the same call in this process",
)  # fmt: skip

# By the numbers that compiled JAX functions know them by, which may be called until the process
# ends.
_programs: dict[int, Program] = {}


def publish(number: int, program: Program) -> None:
    """Makes a program known to the handler."""
    _programs.setdefault(number, program)


def published(number: int) -> Program | None:
    """The program of a number."""
    return _programs.get(number)


def message_of(e: BaseException) -> str:
    """What a JAX program is told of an error in what it called."""
    from engine.diagnostics import EngineError

    return str(e) if isinstance(e, EngineError) else f"{type(e).__name__}: {e}"


def _entered(call: int, pointers: int, count: int, words: int, room: int) -> int:
    try:
        addresses = struct.unpack(f"{count}Q", ctypes.string_at(pointers, 8 * count))
        program = _programs.get(call)
        if program is None:
            raise LaunchError(_UNKNOWN)
        program.run(addresses)
    except BaseException as e:  # nothing may pass through XLA
        said = message_of(e).encode("utf-8", "replace")[: room - 1]
        ctypes.memmove(words, said + b"\0", len(said) + 1)
        return 2 if isinstance(e, KeyboardInterrupt) else 1  # which goes on after XLA has returned
    return 0


class _Library:
    """The handler in this process."""

    def __init__(self) -> None:
        import jax

        include = Path(jax.ffi.include_dir())
        try:
            depends = (include / _HEADER).read_text(encoding="utf-8")
        except OSError as e:
            raise CompilerError(
                Diagnostic("E302", "kernels cannot be called from JAX: the headers of XLA's "
                           "foreign function interface are missing", notes=(str(e),),
                           help="install jaxlib from its wheel, which has them")
            ) from None  # fmt: skip
        try:
            self.code = load(_SOURCE, _CALL, "the handler for JAX", (include,), depends)
        except OSError as e:
            raise CompilerError(
                Diagnostic("E302", "the handler for JAX cannot be loaded", notes=(str(e),))
            ) from None
        self.enter = _ENTER(_entered)
        set_enter = self.code.eng_ffi_enter
        set_enter.argtypes, set_enter.restype = (ctypes.c_void_p, ctypes.c_void_p), None
        interrupt = ctypes.cast(ctypes.pythonapi.PyErr_SetInterrupt, ctypes.c_void_p)
        set_enter(ctypes.cast(self.enter, ctypes.c_void_p), interrupt)
        atexit.register(set_enter, None, None)  # XLA's threads may outlive Python
        self.asked = self.code.eng_ffi_asked
        self.asked.argtypes, self.asked.restype = (ctypes.c_void_p,), ctypes.c_int
        self.error = self.code.eng_ffi_error
        self.error.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
        self.error.restype = ctypes.c_void_p
        self.look = self.code.eng_ffi_look
        self.look.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self.look.restype = ctypes.c_int64
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(self.code[_CALL]), platform="cpu")


_lock = Lock()
_library: _Library | None = None


def library() -> _Library:
    """The handler, compiled and registered when first asked for.

    Raises CompilerError: E301 (no compiler), E302 (no headers, or it failed), E303.
    """
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _Library()
    return _library


# ---- handlers that are Python functions

# Functions that XLA knows the addresses of, until the process ends.
_kept: list[Any] = []


def register(name: str, function: Callable[[list[int]], None]) -> None:
    """Registers a Python function as a target of its own, for the CPU.

    function: gets a call as words (see `eng_ffi_look`); what it raises fails the call.
    """
    import jax

    found = library()

    def handler(frame: int) -> int | None:
        if found.asked(frame):
            return None
        try:
            room = 256
            while True:
                words = (ctypes.c_int64 * room)()
                needed = found.look(frame, ctypes.addressof(words), room)
                if needed <= room:
                    break
                room = needed
            function(list(words)[:needed])
        except BaseException as e:  # nothing may pass through XLA
            if isinstance(e, KeyboardInterrupt):  # once XLA has returned
                threading.Timer(0.05, _thread.interrupt_main).start()
            return found.error(frame, message_of(e).encode("utf-8", "replace"))  # type: ignore[no-any-return]
        return None

    made = _HANDLER(handler)
    _kept.append(made)
    address = ctypes.cast(made, ctypes.c_void_p).value
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(address), platform="cpu")


def text_at(address: int, length: int) -> bytes:
    """A copy of bytes."""
    return ctypes.string_at(address, length)


def numbers_at(address: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    """A copy of numbers."""
    kind = np.dtype(dtype)
    return np.frombuffer(ctypes.string_at(address, count * kind.itemsize), kind)
