"""The addresses in Python and in the engine's classes that `native/interpreter.h` needs.

Of an object's slots it gets their places in memory. These are found by an experiment: a slot is
set to an object that is nowhere else, and that is looked for. Where anything is not as it is in
CPython, there is no table.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

# The faster one, where it gives as much.
_AS_LONG = "PyLong_AsLong" if ctypes.sizeof(ctypes.c_long) == 8 else "PyLong_AsLongLong"
# In the order of `python_t`, as are all below.
_CALLS = (
    "PyList_Size", "PyList_GetItem", "PyList_New", "PyList_GetSlice", "PyList_SetItem",
    "PyList_Append",
    "PyTuple_Size", "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyDict_New",
    "PyDict_Size",
    "PyDict_GetItem", "PyDict_SetItem", "PySet_Contains", "PyObject_GetAttr",
    "PyBytes_FromStringAndSize", "PyBytes_AsString", "PyBytes_Size", _AS_LONG,
    "PyLong_FromLongLong", "PyFloat_AsDouble", "PyObject_CallFunctionObjArgs",
    "PyType_GenericAlloc", "PyWeakref_NewRef", "PyContextVar_Get", "Py_IncRef", "Py_DecRef",
    "PyErr_SetNone", "PyErr_Occurred", "PyErr_Clear", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyErr_CheckSignals", "PyObject_GC_UnTrack",
)  # fmt: skip
# All of them, or none.
_FRAMES = ("PyEval_GetFrame", "PyFrame_GetBack", "PyFrame_GetCode", "PyFrame_GetLasti")
_NAMES = (
    "before_write", "hold", "requires_grad", "recipe", "options", "module", "enable_backward",
    "_records", "_overwrites",
)  # fmt: skip
_SETTINGS = (
    "print_launches", "verify_fp", "device", "stack_limit_bytes", "journal_limit_bytes",
    "enable_backward", "verify_autograd_array_access", "overwrites", "restore", "tape_snapshots",
    "lazy", "snapshot_limit_bytes", "native_after", "LEAST",
)  # fmt: skip
# By the names of `known`.
CLASSES = ("array", "plain_kind", "cached_launch", "storage", "hold", "chunk", "record", "tape",
           "kernel", "plan")  # fmt: skip
OBJECTS = (
    "no_aliases",
    "settings",
    "schedule",
    "host_name",
    "here",
    "site",
    "total",
    "allocate",
    "host_device",
    "finish",
)
_SLOTS = {
    "array": ("_ir", "_packed", "storage", "is_contiguous", "lo", "hi", "_grad", "_flag", "_origin",
              "_shared", "_ptr", "_retain", "dtype", "ndim", "shape", "size", "strides", "_info",
              "_grad_view", "_interface", "_outline", "_own_view", "_whole"),
    "storage": ("writable", "guard", "_hold", "version", "external", "_views", "lo", "nbytes",
                "owner", "device", "_copier", "_frozen", "kept", "reads"),
    "hold": ("storage", "lo", "hi", "version", "unseen", "start", "end", "chunks"),
    "cached_launch": ("address", "_work", "stack", "journal"),
    "executable": ("cached_launches",),
    "selection": ("executable", "watched", "adjoint", "ready_grids"),
    "record": ("plan", "dim", "values", "blob", "input_count", "_site", "aliased", "selection",
               "journal", "stack_bytes", "held"),
    "overwrites": ("_read",),
    "site_type": ("code",),
    "chunk": ("data",),
    "kernel": ("_plan",),
    "plan": ("recipe",),
}  # fmt: skip


def place_of(cls: type, name: str) -> int | None:
    """How many bytes into an object of a class a slot is; None where that is not clear."""
    mark = object()
    made: Any = object.__new__(cls)
    setattr(made, name, mark)
    count = cls.__basicsize__ // 8
    words = struct.unpack(f"<{count}Q", ctypes.string_at(id(made), 8 * count))
    delattr(made, name)
    return 8 * words.index(id(mark)) if words.count(id(mark)) == 1 else None


_VERSION = 24  # where Python 3.10 to 3.12 have it: behind the number of entries


def version_place() -> int:
    """How many bytes into a dictionary a number is that changes whenever it does; 0 for none.

    It was meant for Python itself (PEP 509), and later versions have it no more.
    """
    if sys.version_info >= (3, 13) or sys.implementation.name != "cpython":
        return 0
    module = ModuleType("probe")
    own, other = vars(module), dict.fromkeys("ab", 0)
    seen = ctypes.c_uint64.from_address(id(own) + _VERSION)

    def put(k: int) -> None:
        module.x = k  # type: ignore[attr-defined]

    def read(k: int) -> None:
        other["a"] = k
        assert module.x is own["x"] is own.get("x")

    changes: list[Callable[[int], object]] = [
        put, lambda k: own.update(x=-k), lambda k: own.__setitem__("x", k), lambda k: own.pop("x"),
        put, lambda k: own.setdefault(f"y{k}", k), lambda k: delattr(module, f"y{k}"),
    ]  # fmt: skip
    versions = set[int]()
    for k in range(1000, 1100):  # often, since Python makes code faster that runs often
        for change in changes:
            before = seen.value
            change(k)
            if seen.value == before or seen.value in versions:
                return 0
            versions.add(seen.value)
        put(k)
        before = seen.value
        read(k)
        if seen.value != before:
            return 0
    return _VERSION


def is_counted() -> bool:
    """Whether objects begin with the plain number of their references.

    So they do before Python 3.12, which has objects that nobody counts, but where Python is built
    to count all references of all objects, too.
    """
    if sys.version_info >= (3, 12) or hasattr(sys, "gettotalrefcount"):
        return False
    mark = object()
    count = ctypes.c_int64.from_address(id(mark))
    before = count.value
    more = [mark] * 1000
    return (before, count.value) == (1, 1001) and len(more) == 1000


def items_place() -> int | None:
    """How many bytes into a list the address of what it has is; None where that is not clear."""
    marks = [object() for _ in range(5)]
    count, at, room = struct.unpack("<qQq", ctypes.string_at(id(marks) + 16, 24))
    if count != len(marks) or not count <= room <= 2 * count or not at:
        return None
    there = struct.unpack("<5Q", ctypes.string_at(at, 40))
    return 24 if there == tuple(map(id, marks)) else None


def known() -> dict[str, Any]:
    """The engine's own classes and objects that the functions use, by name."""
    from engine import config
    from engine.accel.recipes import finish
    from engine.compile.cpu import CPU, schedule
    from engine.compile.cpu.cached_launch import CachedLaunch
    from engine.diagnostics.site import Site, call_site
    from engine.lang.types import ArrayType
    from engine.runtime import events, storage
    from engine.runtime.array import array
    from engine.runtime.chunks import Chunk
    from engine.runtime.device import HOST
    from engine.runtime.execute import Executable
    from engine.runtime.kernel import Kernel
    from engine.runtime.plan import Plan
    from engine.runtime.plan_parts import NOBODY, Selection
    from engine.tape.overwrites import Overwrites
    from engine.tape.records import LaunchRecord
    from engine.tape.tape import Tape

    return {
        "array": array, "plain_kind": ArrayType, "cached_launch": CachedLaunch,
        "hold": storage.Hold, "chunk": Chunk, "storage": storage.Storage, "executable": Executable,
        "selection": Selection, "site_type": Site, "no_aliases": NOBODY, "settings": vars(config),
        "schedule": vars(schedule), "host_name": HOST.alias, "here": events.here, "site": call_site,
        "total": Chunk.total, "allocate": CPU.allocate, "host_device": HOST, "kernel": Kernel,
        "plan": Plan, "record": LaunchRecord, "tape": Tape, "overwrites": Overwrites,
        "finish": finish,
    }  # fmt: skip


def table(known: Mapping[str, Any]) -> tuple[bytes, list[Any]] | None:
    """The table, and what it has addresses of; None where the interpreter is not as it has to be.

    known: classes, by the names of `_SLOTS` and `CLASSES`, and `OBJECTS`.
    """
    from engine.runtime import events
    from engine.runtime.device import others

    quiet = (events.everywhere, others)  # lists that are empty where nobody listens
    calls = [_address(name) for name in _CALLS]
    frames = [_address(name) for name in _FRAMES]
    if not all(calls):
        return None
    if not all(frames):
        frames = [0] * len(frames)
    names = {n: sys.intern(n) for n in (*_NAMES, *_SETTINGS)}
    objects = (
        None, True, False, float, int, list, tuple, bytes, 0, OverflowError, TypeError,
        AttributeError, MemoryError, *map(known.get, OBJECTS),
        *map(known.get, CLASSES), *map(names.get, _NAMES), *map(names.get, _SETTINGS),
        *quiet,
    )  # fmt: skip
    words = [
        *calls,
        *frames,
        id(None),
        *(0 if o is None else id(o) for o in objects[1:]),
    ]
    for name, slots in _SLOTS.items():
        cls = known.get(name)
        found = [0 if cls is None else place_of(cls, s) for s in slots]
        if None in found:
            return None
        words += found  # type: ignore[arg-type]
    items = items_place()
    if items is None:
        return None
    words += [version_place(), is_counted(), items]
    return struct.pack(f"<{len(words)}Q", *words), list(objects)


def _address(name: str) -> int:
    function = getattr(ctypes.pythonapi, name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0
