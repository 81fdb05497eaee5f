"""Forms of kernels for any arrays, compiled from the text that a kernel brings with it.

Most kernels never need theirs: `engine.codegen.cpp` writes one beside that for arrays which are
contiguous and share no memory.
"""

from __future__ import annotations

import ctypes

from engine.compile.cpu.compiler import compile_text
from engine.diagnostics import CompilerError, Diagnostic
from engine.locks import Lock


class _Form(ctypes.Structure):
    """`eng::form_t`. run: where the function is, once it is made."""

    _fields_ = (
        ("run", ctypes.c_void_p),
        ("kernel", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("precise", ctypes.c_bool),
        ("large", ctypes.c_bool),
    )


class _Forms:
    """Makes them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._failed: BaseException | None = None

    def ask(self, form: int) -> int | None:
        """The address of a form's function; None where it cannot be had: see `failure`."""
        try:
            return self._make(_Form.from_address(form))
        except BaseException as e:  # a kernel has called this, and cannot raise it
            self._failed = e
            return None

    def _make(self, form: _Form) -> int:
        with self._lock:
            if not form.run:
                name, text = form.kernel.decode().rpartition("_")[0], form.text.decode()
                entry = compile_text(name, text, form.precise, form.large)
                form.run = ctypes.cast(entry.code, ctypes.c_void_p).value
            made: int = form.run
            return made

    def failure(self) -> BaseException:
        """Why the last form could not be made."""
        problem = "the code for arrays that are not contiguous could not be made"
        return self._failed or CompilerError(Diagnostic("E302", problem))


forms = _Forms()
