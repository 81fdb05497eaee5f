"""Copies elements of noncontiguous arrays for a block of threads at a time.

`native/lend.cpp` is compiled and kept like kernels are, when the first launch asks for it: a launch
structure says where its address is, or will be.
"""

from __future__ import annotations

import _thread
import ctypes
from typing import Any

from engine.diagnostics import CompilerError
from engine.locks import Lock
from engine.logger import log_warning

_NAME = "eng_lend"
# Arguments, launch, extents of arrays, kernel, what runs threads for any arrays.
FORM = ctypes.CFUNCTYPE(ctypes.c_bool, *5 * [ctypes.c_void_p])


class _Lending(ctypes.Structure):
    """`eng::lending_t`. lend: the address of the function, when it is made."""

    _fields_ = (("lend", ctypes.c_void_p), ("make", ctypes.CFUNCTYPE(None)))
    lend: int | None


class _Lender:
    """Makes it, once. Threads of the pool may be the ones that ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._library: ctypes.CDLL | None = None
        self._made: Any = None
        self.lending = _Lending(None, _Lending._fields_[1][1](self._ask))

    def _ask(self) -> None:
        # Who has the lock may wait for this launch: it does without.
        if not self._lock.taken_at_once():
            return
        try:
            self.make()
        except KeyboardInterrupt:  # a kernel has called this, and cannot raise it
            _thread.interrupt_main()
        except BaseException as e:
            log_warning(f"launches with strided arrays take longer: {e}")
        finally:
            self._lock.leave()

    def make(self) -> Any:
        """The function, which launches call from now on."""
        with self._lock:
            if self._made is None:
                self._made = self._load()
                self.lending.lend = ctypes.cast(self._made, ctypes.c_void_p).value
        return self._made

    def _load(self) -> Any:
        from pathlib import Path  # late: most launches need none of it

        from engine.compile.cpu.shared import load

        source = Path(__file__).parent / "native" / "lend.cpp"
        try:
            self._library = load(source, _NAME, "the code that lends memory to launches")
            return FORM((_NAME, self._library))
        except (CompilerError, OSError, AttributeError) as e:
            log_warning(f"launches with arrays that are not contiguous take longer: {e}")
            return _NOBODY


_NOBODY = FORM(lambda *given: False)
lender = _Lender()
LEND = ctypes.addressof(lender.lending)
