"""What copies the elements of arrays that are not contiguous for some threads at a time.

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
FORM = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


class _Lender:
    """Makes it, once. Threads of the pool may be the ones that ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._library: ctypes.CDLL | None = None
        self._made: Any = None
        self._first = FORM(self._ask)
        address = ctypes.cast(self._first, ctypes.c_void_p).value
        self.cell = ctypes.c_void_p(address)

    def _ask(self, args: int, launch: int, arrays: int, how: int) -> bool:
        try:
            return bool(self.make()(args, launch, arrays, how))
        except KeyboardInterrupt:  # a kernel has called this, and cannot raise it
            _thread.interrupt_main()
            return False
        except BaseException as e:
            log_warning(f"launches with strided arrays take longer: {e}")
            return False

    def make(self) -> Any:
        """The function, which launches call from now on."""
        with self._lock:
            if self._made is None:
                self._made = self._load()
                self.cell.value = ctypes.cast(self._made, ctypes.c_void_p).value
        return self._made

    def _load(self) -> Any:
        from pathlib import Path  # late: most launches need none of it

        from engine.compile.cpu.shared import load

        source = Path(__file__).parent / "native" / "lend.cpp"
        try:
            self._library = load(source, _NAME, "what lends memory to launches")
            made = self._library[_NAME]
            made.restype = ctypes.c_bool
            made.argtypes = (ctypes.c_void_p,) * 4
            return made
        except (CompilerError, OSError, AttributeError) as e:
            log_warning(f"launches with arrays that are not contiguous take longer: {e}")
            return _NOBODY


_NOBODY = FORM(lambda args, launch, arrays, how: False)
lender = _Lender()
LEND = ctypes.addressof(lender.cell)
