"""What launches of arrays that are not contiguous need, made when the first one asks for it.

Launch structures lead kernels to the addresses of `cells`, an `eng::late_t`: of functions of Python
until there is what they stand for. Threads of the pool may be the ones that ask.
"""

from __future__ import annotations

import ctypes

# What lends: arguments, launch, extents of arrays, kernel, what runs threads for any arrays.
LEND = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
    ctypes.c_void_p,
)  # fmt: skip
# What makes a form (`eng::form_t`): the address of its function, or null.
MAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def _lend(*given: int) -> bool:
    from engine.compile.cpu.lender import lender  # late, as all of this

    return lender.ask(*given)


def _make(form: int) -> int | None:
    from engine.compile.cpu.forms import forms

    return forms.ask(form)


_first = (LEND(_lend), MAKE(_make))
cells = (ctypes.c_void_p * 2)(*(ctypes.cast(f, ctypes.c_void_p).value for f in _first))
LATE = ctypes.addressof(cells)
