"""What copies the elements of arrays that are not contiguous for some threads at a time.

`native/lend.cpp` is compiled and kept like kernels are, when the first launch asks for it: a launch
structure says where its address is, or will be.
"""

from __future__ import annotations

import _thread
import ctypes
from typing import Any

from engine.compile.cpu.late import LEND, cells
from engine.diagnostics import CompilerError
from engine.locks import Lock
from engine.logger import log_warning

_NAME = "eng_lend"
_AT = 0  # in `cells`


class _Lender:
    """Makes it, once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._library: ctypes.CDLL | None = None
        self._made: Any = None

    def ask(self, *given: int) -> bool:
        """What it says, when it is made: `eng::late_t`'s `lend`."""
        try:
            return bool(self.make()(*given))
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
                cells[_AT] = ctypes.cast(self._made, ctypes.c_void_p).value
        return self._made

    def _load(self) -> Any:
        from pathlib import Path  # late: most launches need none of it

        from engine.compile.cpu.shared import load

        source = Path(__file__).parent / "native" / "lend.cpp"
        try:
            self._library = load(source, _NAME, "what lends memory to launches")
            made = self._library[_NAME]
            made.restype = ctypes.c_bool
            made.argtypes = (ctypes.c_void_p,) * 5
            return made
        except (CompilerError, OSError, AttributeError) as e:
            log_warning(f"launches with arrays that are not contiguous take longer: {e}")
            return _NOBODY


_NOBODY = LEND(lambda *given: False)
lender = _Lender()
