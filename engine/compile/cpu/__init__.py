"""The CPU: C++ by the system's compiler, memory by NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.compile.backend import (
    Backend,
    CachedLaunch,
    Entry,
    Journal,
    Limits,
    Marks,
    Outcome,
)

if TYPE_CHECKING:
    from engine.ir.nodes import Function

# Memory begins at a multiple of this: a line of the cache, and what JAX asks of memory that it
# takes without a copy.
ALIGNMENT = 64

# Memory of up to one line comes from blocks of many: to make an array of NumPy, and to ask where it
# is, takes longer than all else about a small array. What is let go of is not used again.
_CELLS = 64
_cells: list[tuple[object, int]] = []  # a list gives and takes one at a time

# For few bytes: without a word to other threads, which would take as long as the work.
_set = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)(
    ("memset", ctypes.pythonapi)
)
_move = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)(
    ("memmove", ctypes.pythonapi)
)
FEW = 1 << 14
VAST = 8 << 20  # bytes, from which on several threads copy

# What compiles and runs kernels is imported late: programs that launch nothing need none of it.


@cache
def _typestr(dtype: Any) -> str:
    found: str = np.dtype(dtype).str
    return found


def _new_cells() -> tuple[object, int]:
    block = np.zeros((_CELLS + 1) * ALIGNMENT, np.uint8)
    first = block.__array_interface__["data"][0]
    first += -first % ALIGNMENT
    _cells.extend((block, first + k * ALIGNMENT) for k in range(_CELLS - 1, 0, -1))
    return block, first


class Exported:
    """Hands memory to NumPy and keeps its owner alive.

    Being no ndarray itself, it ends NumPy's chain of bases: the array made from it
    stays alive as long as any view of that array does.
    """

    __slots__ = ("__array_interface__", "owner")
    __array_interface__: dict[str, Any]
    owner: object


class Cpu(Backend):
    """The processor that Python runs on."""

    kind = "cpu"
    on_host = True

    _runner: Callable[..., Outcome] | None = None

    def emit(self, fn: Function, symbol: str) -> str:
        from engine.compile.cpu import loops

        return loops.text(fn, symbol)

    def compile(self, fns: Sequence[Function]) -> list[Entry]:
        from engine.compile.cpu import compiler

        return compiler.compile_functions(fns)

    def is_cached(self, fn: Function) -> bool:
        from engine.compile.cpu import compiler

        return compiler.is_cached(fn)

    def load(self, key: str, symbol: str) -> Entry | None:
        from engine.compile.cpu.libraries import loader

        return loader.entry(key, symbol)

    def allocate(self, ordinal: int, nbytes: int, zero: bool) -> tuple[Any, int]:
        del ordinal
        if nbytes <= ALIGNMENT:
            try:
                return _cells.pop()
            except IndexError:
                return _new_cells()
        size = nbytes + ALIGNMENT
        if size <= FEW:
            block = ctypes.c_char.from_buffer(bytearray(size))
            address = ctypes.addressof(block)
            return block, address + -address % ALIGNMENT
        try:
            memory = np.zeros(size, np.uint8) if zero else np.empty(size, np.uint8)
        except (ValueError, OverflowError):
            raise MemoryError from None
        address = memory.__array_interface__["data"][0]
        return memory, address + -address % ALIGNMENT

    def view(
        self, owner: object, address: int, shape: Sequence[int],
        strides: Sequence[int] | None,
        dtype: Any, writable: bool,
    ) -> np.ndarray[Any, Any]:  # fmt: skip
        made = Exported()  # as short as it can be: every exchange of arrays comes here
        made.owner = owner
        interface = made.__array_interface__ = {
            "shape": shape,
            "typestr": dtype if dtype.__class__ is str else _typestr(dtype),
            "data": (address, not writable),
        }
        if strides is not None:
            interface["strides"] = strides
        return np.asarray(made)

    def owner_of(self, view: Any) -> object | None:
        root = view
        while isinstance(root.base, np.ndarray):
            root = root.base
        return root.base.owner if isinstance(root.base, Exported) else None

    def to_host(self, view: Any) -> np.ndarray[Any, Any]:
        return view  # type: ignore[no-any-return]

    def reader(self, owner: object, lo: int, hi: int) -> Callable[[int, int], bytes]:
        del owner, lo, hi
        return ctypes.string_at

    def put(self, view: Any, values: np.ndarray[Any, Any]) -> None:
        own = getattr(values, "dtype", None)
        if own is not None and own == view.dtype:  # to NumPy, None is float64
            if values.nbytes < VAST:
                view[...] = values
                return
            from engine.compile.cpu.copies import write

            write(view, values)
            return
        with np.errstate(all="ignore"):  # of the conversion
            view[...] = values

    def clear(self, address: int, nbytes: int) -> None:
        """Sets a few bytes to zero."""
        _set(address, 0, nbytes)

    def read(self, address: int, nbytes: int) -> bytes:
        """A copy of a few bytes."""
        return ctypes.string_at(address, nbytes)

    def write(self, address: int, data: bytes) -> None:
        """Writes a few bytes."""
        _move(address, data, len(data))

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
        if self._runner is None:
            from engine.compile.cpu import runner

            self._runner = runner.run
        return self._runner(entry, dim, args, limits, threads, journal, spare)

    def cached_launch(
        self, entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits,
        marks: Marks | None = None,
    ) -> CachedLaunch | None:  # fmt: skip
        from engine.compile.cpu import cached_launch

        return cached_launch.cached_launch(entry, dim, args, limits, marks)


CPU = Cpu()
