"""DLPack capsules: their names, and the field that NumPy cannot set.

NumPy makes and reads the capsules, and owns what is in them. It knows no bfloat16, which is
two bytes as uint16 is: the word that says so is changed on the way out, and on the way in.
"""

from __future__ import annotations

import ctypes
from typing import Any, Literal

# Where the type of the elements stands in what a capsule points to.
_TYPES = {"dltensor": 20, "dltensor_versioned": 52}
UNSIGNED, BFLOAT = 1, 4

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

Name = Literal["", "dltensor", "dltensor_versioned"]


def name_of(capsule: object) -> Name:
    """How a capsule that can be used is called; empty for all else."""
    if type(capsule).__name__ != "PyCapsule":
        return ""
    text = repr(capsule)
    if '"dltensor"' in text:
        return "dltensor"
    return "dltensor_versioned" if '"dltensor_versioned"' in text else ""


def element(capsule: Any, name: Name) -> tuple[int, int, int]:
    """The type of the elements, as DLPack has it: a code, bits, and lanes."""
    at = _pointer(capsule, name.encode()) + _TYPES[name]
    word = ctypes.c_uint32.from_address(at).value
    return word & 0xFF, word >> 8 & 0xFF, word >> 16


def rename(capsule: Any, name: Name, code: int) -> None:
    """Changes the code of the elements' type. Their size stays what it is."""
    at = _pointer(capsule, name.encode()) + _TYPES[name]
    ctypes.c_uint8.from_address(at).value = code
