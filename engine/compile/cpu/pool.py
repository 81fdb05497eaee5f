"""The threads of this process that run parts of launches."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import config
from engine.diagnostics import CompilerError, Diagnostic, LaunchError
from engine.locks import Lock
from engine.logger import log_warning

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RUN = "eng_pool_run"
_MOST = 4096  # threads
_KEPT = 32 << 20  # bytes of memory that is kept for the next launch
LINE = 128  # bytes: what two processors would take from each other
DONE, LEFT, NO_MEMORY = -1, -2, -3  # what `Pool.launch` gives beside the number of a round


class Pool:
    """Threads that wait for work. They are made when the first launch needs them."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._run = library[_RUN]
        self._run.restype = None
        self._run.argtypes = (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p,
            ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
        )  # fmt: skip
        self._launch = library.eng_pool_launch
        self._launch.restype = ctypes.c_int64
        self._launch.argtypes = (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p,
            ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64,
        )  # fmt: skip
        self._add = library.eng_pool_add
        self._add.restype = None
        self._add.argtypes = (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
            ctypes.c_int64, ctypes.c_int64, ctypes.c_int64,
        )  # fmt: skip
        self._copy = library.eng_pool_copy
        self._copy.restype = None
        self._copy.argtypes = (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
        )  # fmt: skip
        self._memory: list[NDArray[np.uint8]] = []  # of parts, at most one
        new = library.eng_pool_new
        new.restype = ctypes.c_void_p
        self._handle = new()

    def run(
        self, entry: Any, args: bytes, stride: int, launches: Any, parts: Any, threads: int
    ) -> None:
        """Runs parts of a launch, in no order, and returns when all are done.

        entry: the kernel. args, stride: the arguments of part k begin at byte `k * stride`.
        launches: an array of launch structures, one for each part. parts: an array of 64-bit
        numbers, which of them to run. A part that fails keeps others from being begun.
        """
        self._run(
            self._handle, ctypes.cast(entry, ctypes.c_void_p), args, stride,
            ctypes.addressof(launches), ctypes.addressof(parts), len(parts), threads,
        )  # fmt: skip

    def launch(
        self, entry: Any, args: bytes, launches: Any, count: int, words: bytes, memory: Any,
        threads: int,
    ) -> int:  # fmt: skip
        """Runs a launch whole. See `engine.compile.cpu.rounds` for `words`.

        launches: launch structures, one for each part. memory: of what each part has of its own,
        with anything in it.
        """
        came: int = self._launch(
            self._handle, entry, args, len(args), launches, count, words, memory, threads
        )
        return came

    def memory(self, size: int) -> NDArray[np.uint8]:
        """So many bytes or more, with anything in them.

        New memory is given page by page, which takes longer than its use: NumPy asks for large
        pages, which also makes additions at random places quicker.
        """
        try:
            found = self._memory.pop()
        except IndexError:
            return np.empty(size, np.uint8)
        return found if len(found) >= size else np.empty(size, np.uint8)

    def keep(self, memory: NDArray[np.uint8]) -> None:
        """Takes memory back that nobody needs any more, to be given again."""
        if not self._memory and len(memory) <= _KEPT:
            self._memory.append(memory)

    def add(self, target: int, first: int, step: int, count: int, size: int, bytes: int) -> None:
        """Adds copies of an array of floats to it, one after the other; zeros change nothing.

        target, first: addresses of the array and of the first copy, both contiguous. step: bytes
        from one copy to the next. size: numbers in each, of so many bytes (4 or 8).
        """
        self._add(self._handle, target, first, step, count, size, bytes, thread_count())

    def copy(self, target: int, source: int, size: int) -> None:
        """Copies so many bytes from an address to one; they must not overlap."""
        self._copy(self._handle, target, source, size, thread_count())


def thread_count() -> int:
    """How many threads launches may use: `config.num_threads`, or as many as there are cores.

    Raises LaunchError (E202) where the setting is no whole number from 0 on.
    """
    chosen = config.num_threads
    if not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 <= chosen <= _MOST:
        problem = f"config.num_threads is {chosen!r}"
        help = "set it to a whole number of threads, or to 0 for one per core"
        raise LaunchError(Diagnostic("E202", problem, help=help))
    return chosen if chosen > 0 else processors()


@functools.lru_cache(maxsize=1)
def processors() -> int:
    """Processors that this process may use: its affinity, and the limit of its control group."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        if quota != "max":
            count = min(count, max(1, -(-int(quota) // int(period))))
    except (OSError, ValueError):
        pass
    return count


class _Holder:
    """The pool of this process. A forked child makes its own: threads do not follow it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.pool: Pool | None = None
        self.library: ctypes.CDLL | None = None
        self.failed = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self.pool = None

    def get(self) -> Pool | None:
        with self.lock:
            if self.pool is None and not self.failed:
                self._make()
            return self.pool

    def _make(self) -> None:
        from pathlib import Path

        from engine.compile.cpu.shared import headers_in, load  # late: small launches need none

        folder = Path(__file__).parent / "native"
        try:
            if self.library is None:
                self.library = load(
                    folder / "pool.cpp", _RUN, "the engine's own threads", [folder],
                    headers_in(folder),
                )  # fmt: skip
            self.pool = Pool(self.library)
        except (CompilerError, OSError, AttributeError) as e:
            self.failed = True
            log_warning(f"launches run on one core: their threads cannot be made: {e}")


_holder = _Holder()


def pool() -> Pool | None:
    """The pool, made where there was none; None where that fails, of which a warning tells."""
    return _holder.pool or _holder.get()
