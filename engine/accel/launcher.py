"""A C++ version of Python's part of small launches, made after many have run.

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
from typing import Any

from engine import config
from engine.accel import slots
from engine.accelerator import Accelerator, accelerator
from engine.classes import NamedTuple
from engine.compile.cpu.runner import LaunchState
from engine.diagnostics import EngineError
from engine.lang.types import FLOAT32, FLOAT64, INT32, INT64, Type

_ENTRY = "eng_launcher"
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

    many(steps, first, end, progress): runs launches whose writes are announced, one after another;
    True where they left nothing, else the number of the first that did, and its launch structure.
    fill, copy: addresses of steps that are no kernels.

    try_run(kernel, dim, inputs, outputs, device, stream, record): a launch that a user asked for;
    True. Where it left something, `recipes.finish` was told of that.

    ready(records): whether `back_all` runs all of them. back_all(records, from): their adjoints,
    down to the first; True, the number of one that Python has to run, or that of one that left
    something, with its launch structure. seeded(array, cotangent): writes an array or bytes over a
    gradient, which it makes; True. zeros(models, shape, device, requires_grad): an array of zeros
    like one of the models, which have shapes. quiet(): True where nobody listens to launches and
    writes, but for tapes.

    Those of captured graphs, of words of `row_words`: announce_all(writes): announces writes to
    storages, each with how many there are, unless anything holds their contents; True.
    ask_same(flags): True where arrays require gradients as they did. have_same(gradients): True
    where they have those that they had.
    """

    many: Callable[[int, int, int, int], bytes | bool]
    ready: Callable[[list[Any]], bool | None]
    back_all: Callable[..., bytes | bool | int | None]
    seeded: Callable[[Any, Any], bool | None]
    zeros: Callable[[dict[tuple[int, ...], Any], Any, Any, bool], Any]
    quiet: Callable[[], bool | None]
    announce_all: Callable[[int], bool | None]
    ask_same: Callable[[int], bool | None]
    have_same: Callable[[int], bool | None]
    try_run: Callable[..., bool | None]
    fill: int
    copy: int


_CALLED = len(Functions._fields) - 2


class Maker:
    """Makes the functions, once. door: where launches ask for them."""

    def __init__(self, door: Accelerator) -> None:
        self.asked = False
        self._door = door
        self._made: Functions | None = None
        self._kept: list[Any] = []  # what the functions need as long as the process lives
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._again)

    def _again(self) -> None:
        self.asked = self.made is not None  # its thread is not here

    @property
    def made(self) -> Functions | None:
        """The functions; None before they are made."""
        return self._made

    @made.setter
    def made(self, functions: Functions | None) -> None:
        self._made = functions
        run = None if functions is None else functions.try_run
        self._door.install(try_run=run, needs_models=functions is not None)

    @property
    def functions(self) -> Functions | None:
        """The same; None where `config.native_after` is -1."""
        return self.made if config.native_after >= 0 else None

    def ask(self) -> None:
        """Has them made in a while, or at once."""
        if self.asked or config.native_after < 0:
            return
        self.asked = True
        if not _fits():
            return
        slots.known()  # here, since a thread that imports may meet one that does
        if config.native_after == 0:
            self.make()
            return
        with contextlib.suppress(RuntimeError):  # Python is about to end
            threading.Thread(target=self.make, daemon=True).start()

    def make(self, size: int = ctypes.sizeof(LaunchState)) -> None:
        """Makes them, if that can be. size: bytes of a launch structure as they have to know it."""
        from pathlib import Path

        from engine.compile.cpu.shared import headers_in, load

        try:
            folder = Path(__file__).parent / "native"
            library = load(
                folder / "launcher.cpp", _ENTRY, "the engine's launcher", [folder],
                headers_in(folder),
            )  # fmt: skip
            self.made = self._functions(library, size)
        except (EngineError, OSError, AttributeError):
            return  # all goes on as it did

    def _functions(self, library: ctypes.CDLL, size: int) -> Functions | None:
        made = slots.table(slots.known())
        if made is None:
            return None
        text, objects = made
        self._kept += [library, objects]  # of which the library has addresses, whatever comes
        found = (ctypes.c_void_p * (len(Functions._fields) + 1))()
        # Nobody else may read the table meanwhile.
        entry = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)(
            (_ENTRY, library)
        )
        if not entry(text, len(text), ctypes.addressof(found)):
            return None
        if not all(found) or found[-1] != size:
            return None
        new = ctypes.pythonapi["PyCFunction_NewEx"]
        new.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object)
        new.restype = ctypes.py_object
        methods = [
            _Method(name.encode(), address, _FASTCALL, None)
            for name, address in zip(Functions._fields[:_CALLED], found, strict=False)
        ]
        self._kept.append(methods)
        called = [new(ctypes.addressof(m), None, "engine") for m in methods]
        return Functions(*called, *found[_CALLED:-1])


def _fits() -> bool:
    """Whether this is a Python for which it is written."""
    return (
        sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.byteorder == "little" and "t" not in getattr(sys, "abiflags", "t")
        and ctypes.c_size_t.from_address(id(maker) + 8).value == id(Maker)
    )  # fmt: skip


maker = Maker(accelerator)


class Words:
    """What a function is told, at an address, which lives as long as this."""

    __slots__ = ("_kept", "at")

    def __init__(self, words: Sequence[int], *kept: object) -> None:
        # An array of ctypes would be of a type for each length, to be made first.
        memory = ctypes.c_char.from_buffer(bytearray(struct.pack(f"={len(words)}q", *words)))
        self._kept = memory, kept
        self.at = ctypes.addressof(memory)


def row_words(rows: Sequence[tuple[object, ...]], kind: type) -> Words | None:
    """Rows of objects: arrays with what is known of each.

    None where the first of a row is not just of that class, and Python has to look.
    """
    words = [len(rows)]
    for row in rows:
        if row[0].__class__ is not kind:
            return None
        words += map(id, row)
    return Words(words, rows)


def kinds_words(kinds: Sequence[tuple[Any, Type]]) -> Words | None:
    """What native launches are told of parameters; None where they cannot pack them.

    kinds: for each, the type of arrays that it takes (None for none), and its own.
    """
    words = [len(kinds)]
    for array, kind in kinds:
        code = 0 if array is not None else _CODES.get(kind)
        if code is None:
            return None
        words += [0 if array is None else id(array), code]
    return Words(words, kinds)


def run_words(
    entry: int, template: bytes, bound: bytes, marked: Sequence[int], soon: bool
) -> Words | None:
    """What native functions are told of a cached launch; None where there are too many arrays.

    entry: the kernel's address. template: its launch structure. marked: positions of the arrays
    that are written, or whose gradients follow the arguments. soon: no other thread of Python is
    let run meanwhile.
    """
    if len(marked) > MOST:
        return None
    begin = ctypes.create_string_buffer(template, len(template))
    more = ctypes.create_string_buffer(bound, max(len(bound), 1))
    first = [entry, ctypes.addressof(begin), ctypes.addressof(more), len(bound), soon, len(marked)]
    return Words([*first, *marked], begin, more)
