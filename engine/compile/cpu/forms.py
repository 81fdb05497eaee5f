"""Forms of kernels for any arrays, compiled from text that the kernel carries.

Most kernels never need theirs: `engine.codegen.cpp` writes one beside that for arrays which are
contiguous and share no memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from engine.codegen.spelling import name_of
from engine.compile.cpu.compiler import compile_text
from engine.diagnostics.site import call_span

Code = Callable[[bytes, object], None]


class _Form(ctypes.Structure):
    """`eng::form_t`. run: where the function is, once it is made."""

    _fields_ = (
        ("run", ctypes.c_void_p),
        ("entry", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)),
        ("name", ctypes.c_char_p),
        ("text", ctypes.c_char_p),
        ("precise", ctypes.c_bool),
        ("large", ctypes.c_bool),
    )


def made(address: int) -> Code:
    """Makes the form that a launch needs. The entry point of its kernel, to run it by.

    Raises CompilerError as `compile_functions` does; the launch has changed nothing then.
    """
    form = _Form.from_address(address)
    if not form.run:
        name, text = name_of(form.name.decode().rpartition("_")[0]), form.text.decode()
        entry = compile_text(name, text, form.precise, form.large, call_span())
        form.run = ctypes.cast(entry.code, ctypes.c_void_p).value
    code: Code = form.entry
    return code
