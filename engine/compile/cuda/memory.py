"""Memory of a GPU: its owners, and copies between arrays of any layout."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codegen import headers
from engine.compile.cuda.gpu import parameters
from engine.compile.cuda.pinned import Pinned
from engine.compile.cuda.view import View, geometry

_COPIES = "copies.h"
_AXES = 8
_BLOCK, _MOST_BLOCKS = 256, 1 << 16


class Copy(ctypes.Structure):
    """`eng_copy`."""

    _fields_ = (
        ("to", ctypes.c_void_p), ("of", ctypes.c_void_p), ("count", ctypes.c_int64),
        ("ndim", ctypes.c_int64), ("shape", ctypes.c_int64 * _AXES),
        ("to_strides", ctypes.c_int64 * _AXES), ("of_strides", ctypes.c_int64 * _AXES),
    )  # fmt: skip


class Fill(ctypes.Structure):
    """`eng_fill`."""

    _fields_ = (("to", ctypes.c_void_p), ("count", ctypes.c_int64), ("word", ctypes.c_uint64))


def to_host(view: View) -> NDArray[Any]:
    """The elements on the host."""
    seen = view if view.packed else view.copy()
    found = view.backend.gpu.read(seen.address, seen.nbytes)
    return found.view(view.dtype).reshape(view.shape)


def put(view: View, values: Any, pinned: Pinned | None = None) -> None:
    """Writes values of the host, or of an array of the same device, which are broadcast.

    pinned: whose memory they are, where that may be read later.
    """
    if not view.size:
        np.broadcast_shapes(view.shape, np.shape(values))
        return
    backend = view.backend
    if isinstance(values, View):
        if values.backend is backend and values.dtype == view.dtype:
            _copy(view, values)
            return
        values = values.host()
    given = _converted(values, view.dtype)
    # Only what is there is sent, and spread there.
    extra = given.ndim - view.ndim
    if extra > 0:
        given = given.reshape(given.shape[extra:])
    if given.shape == view.shape and view.packed and given.size > 1:
        backend.gpu.write(view.address, given, pinned)
        return
    if given.size == 1 and view.packed and not any(given.tobytes()):
        backend.gpu.clear(view.address, view.nbytes)
        return
    if given.size == 1 and view.packed and given.nbytes in (1, 2, 4, 8):
        _fill(view, given.tobytes())
        return
    owner, address = backend.allocate(0, given.nbytes, False)
    backend.gpu.write(address, given, pinned)
    # The pool gives that memory to later work of the stream only, so that nothing need be kept.
    _copy(view, View(backend, owner, geometry(address, given.shape, None, given.dtype, False)))


def _converted(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Side by side, as NumPy's assignment converts them."""
    found = np.asarray(values)
    if found.dtype != dtype:
        out = np.empty(found.shape, dtype)
        with np.errstate(all="ignore"):
            out[...] = found
        return out
    return np.ascontiguousarray(found).reshape(found.shape)


def _copy(view: View, source: View) -> None:
    """Copies elements of one type, which are broadcast."""
    to, of = view.lies, source.lies
    if of.shape != to.shape:  # NumPy takes a while over that
        of = np.broadcast_to(of, to.shape)
    gpu = view.backend.gpu
    addresses = (view.address, source.address)
    if to.flags.c_contiguous and of.flags.c_contiguous:
        gpu.move(*addresses, view.nbytes)
        return
    axes = [(n, a, b) for n, a, b in zip(to.shape, to.strides, of.strides, strict=True) if n > 1]
    word = math.gcd(16, to.itemsize, *addresses, *(abs(s) for _, a, b in axes for s in (a, b)))
    if to.itemsize > word:
        axes.append((to.itemsize // word, word, word))
    axes = _joined(axes) or [(1, 0, 0)]
    count = math.prod(n for n, _, _ in axes)
    shape, tos, ofs = (_words(x) for x in zip(*axes, strict=True))
    made = Copy(*addresses, count, len(axes), shape, tos, ofs)
    blocks = min(-(-count // _BLOCK), _MOST_BLOCKS)
    copies = view.backend.helper(_COPIES, f"eng_copy_{word}")
    gpu.launch(copies, blocks, _BLOCK, parameters(made))


def _fill(view: View, element: bytes) -> None:
    """Writes one element everywhere; it goes with the launch."""
    gpu, size = view.backend.gpu, len(element)
    made = Fill(view.address, view.size, int.from_bytes(element, "little"))
    blocks = min(-(-view.size // _BLOCK), _MOST_BLOCKS)
    gpu.launch(view.backend.helper(_COPIES, f"eng_fill_{size}"), blocks, _BLOCK, parameters(made))


def _joined(axes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Neighbouring axes that are one in both arrays, as one."""
    out: list[tuple[int, int, int]] = []
    for n, a, b in axes:
        if out and out[-1][1] == n * a and out[-1][2] == n * b:
            n *= out.pop()[0]
        out.append((n, a, b))
    return out


def _words(numbers: tuple[int, ...]) -> Any:
    return (ctypes.c_int64 * _AXES)(*numbers)


def text() -> str:
    """What the helpers are compiled from."""
    return headers.in_one(headers.CUDA, _COPIES)
