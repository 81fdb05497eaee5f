"""Python's share of small launches, in C++: made once many were run, where that can be.

`native/launcher.cpp` is compiled and kept like kernels are, by a thread of its own, so that nobody
waits for it; its functions become Python's by the stable part of Python's interface, of which it
gets the addresses. Where any of that is missing, launches run as they did.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from engine.compile.cpu import CPU
from engine.diagnostics import EngineError
from engine.lang.types import FLOAT32, FLOAT64, INT32, INT64, Type

_ENTRY = "eng_launcher"
# In the order of `python_t`.
_CALLS = (
    "PyList_Size", "PyList_GetItem", "PyObject_GetAttr", "PyObject_SetAttr", "PyObject_Type",
    "PyBytes_FromStringAndSize", "PyBytes_AsString", "PyBytes_Size", "PyLong_AsLongLong",
    "PyLong_FromLongLong", "PyFloat_AsDouble", "PyObject_CallFunctionObjArgs", "Py_IncRef",
    "Py_DecRef", "PyErr_Occurred", "PyErr_Clear", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyErr_CheckSignals",
)  # fmt: skip
_NAMES = ("_ir", "_packed", "storage", "is_contiguous", "writable", "guard", "_hold", "version",
          "before_write", "lo", "hi", "_grad")  # fmt: skip
_CODES: dict[Type, int] = {FLOAT32: 1, FLOAT64: 2, INT32: 3, INT64: 4}
MOST = 16  # arrays that a launch marks
_FASTCALL = 0x0080


class _Method(ctypes.Structure):
    """`PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


class Functions(NamedTuple):
    """Each gives None where it has not run, and Python has to look at the arguments.

    pack(kinds, values): the arguments as bytes. launch(run, values, args): announces the writes,
    runs the kernel; True where that left nothing, else its launch structure. back(run, values,
    args): the same for an adjoint, which adds to the arrays' gradients. clear(array): announces
    zeros for all of a contiguous array, and writes them; True. many(steps, first, end): runs
    launches whose writes are announced, one after another; True where they left nothing, else the
    number of the first that did, and its launch structure. backs(jobs, first): the same as `back`
    for many, each a run, values and arguments; the number of one that has not run where Python has
    to look at it. fill, copy: addresses of steps that are no kernels.
    """

    pack: Callable[[int, list[Any]], bytes | None]
    launch: Callable[[int, list[Any], bytes], bytes | bool | None]
    back: Callable[[int, list[Any], bytes], bytes | bool | None]
    clear: Callable[[Any], bool | None]
    many: Callable[[int, int, int], bytes | bool]
    backs: Callable[[list[Any], int], bytes | bool | int]
    fill: int
    copy: int


class _Maker:
    """Makes the functions, once."""

    def __init__(self) -> None:
        self.functions: Functions | None = None
        self.asked = False
        self.array: type | None = None  # whose objects are arrays, for the runtime to say
        self._kept: list[Any] = []  # what the functions need as long as the process lives
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._again)

    def _again(self) -> None:
        self.asked = self.functions is not None  # its thread is not here

    def ask(self, size: int) -> None:
        """Has them made in a while. size: bytes of a launch structure."""
        if not self.asked and self.array is not None:
            self.asked = True
            if _fits():
                with contextlib.suppress(RuntimeError):  # Python is about to end
                    threading.Thread(target=self.make, args=(size,), daemon=True).start()

    def make(self, size: int) -> None:
        """Makes them, if that can be."""
        from pathlib import Path

        from engine.compile.cpu.shared import load

        try:
            source = Path(__file__).parent / "native" / "launcher.cpp"
            library = load(source, _ENTRY, "the engine's launcher")
            self.functions = self._made(library, size)
            if self.functions is not None:
                CPU.functions = self.functions
        except (EngineError, OSError, AttributeError):
            return  # all goes on as it did

    def _made(self, library: ctypes.CDLL, size: int) -> Functions | None:
        names = [sys.intern(name) for name in _NAMES]
        objects = [None, True, self.array, float, int, *names]
        calls = [ctypes.cast(getattr(ctypes.pythonapi, c), ctypes.c_void_p).value for c in _CALLS]
        words = [*calls, *map(id, objects)]
        table = struct.pack(f"<{len(words)}Q", *words)
        found = (ctypes.c_void_p * (len(Functions._fields) + 1))()
        entry = library[_ENTRY]
        entry.argtypes = (ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
        entry.restype = None
        entry(table, len(table), ctypes.addressof(found))
        if not all(found) or found[-1] != size:
            return None
        new = ctypes.pythonapi["PyCFunction_NewEx"]
        new.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        new.restype = ctypes.py_object
        methods = [
            _Method(name.encode(), address, _FASTCALL, None)
            for name, address in zip(Functions._fields[:6], found, strict=False)
        ]
        self._kept += [library, objects, methods]
        made = [new(ctypes.addressof(m), None, None) for m in methods]
        return Functions(*made, *found[6:8])


def _fits() -> bool:
    """Whether this is a Python for which it is written."""
    return (
        sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.byteorder == "little" and "t" not in getattr(sys, "abiflags", "t")
        and os.environ.get("ENGINE_LAUNCHER", "") != "0"
    )  # fmt: skip


maker = _Maker()


class Words:
    """What a function is told, at an address, which lives as long as this."""

    __slots__ = ("_kept", "at")

    def __init__(self, words: Sequence[int], *kept: object) -> None:
        memory = (ctypes.c_int64 * len(words))(*words)
        self._kept = memory, kept
        self.at = ctypes.addressof(memory)


def kinds_words(kinds: Sequence[tuple[Any, Type]]) -> Words | None:
    """What `pack` is told of parameters; None where it cannot pack them.

    kinds: for each, the type of arrays that it takes (None for none), and its own.
    """
    words = [len(kinds)]
    for array, kind in kinds:
        code = 0 if array is not None else _CODES.get(kind)
        if code is None:
            return None
        words += [0 if array is None else id(array), code]
    return Words(words, kinds)


def run_words(entry: int, template: bytes, bound: bytes, marked: Sequence[int]) -> Words | None:
    """What `launch` and `back` are told; None where there are too many arrays.

    entry: the kernel's address. template: its launch structure. marked: positions of the arrays
    that are written, or whose gradients follow the arguments.
    """
    if len(marked) > MOST:
        return None
    begin = ctypes.create_string_buffer(template, len(template))
    more = ctypes.create_string_buffer(bound, max(len(bound), 1))
    first = [entry, ctypes.addressof(begin), ctypes.addressof(more), len(bound), len(marked)]
    return Words([*first, *marked], begin, more)
