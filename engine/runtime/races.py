"""Looks for races: threads of one launch that access one element, at least one with a write.

A launch of which it is not proven that its threads keep apart is run on what it will find, one
thread after the other, with a shadow of the arrays in question: for every few bytes, which
threads wrote, read and updated them. Then its memory is put back. So the launch itself, which
comes after it, is as it would have been.

A launch on a GPU is run so by the CPU, on copies of its arrays, and nothing is put back.

What a launch does depends on its arguments, and on what its arrays of integers contain; where
floats decide nothing, it is looked at once for each of these. Else, and where something was
found, it is looked at again: eight times, and then each time that the count doubles. So are
launches that differ in their integers alone, after the first 64 of them.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass
from engine.codegen.layout import FAULT, HEAD, arg_bytes, arg_offsets
from engine.compile.backend import Backend, Limits
from engine.compile.cpu.copies import view
from engine.compile.pipeline import NONE, Variants
from engine.compile.threads import Placed
from engine.compile.watching import Watched, watched
from engine.diagnostics import CompilerError
from engine.diagnostics.site import call_span
from engine.ir import nodes as n
from engine.lang.types import ArrayType, is_float, is_integer, scalar_of
from engine.runtime.device import HOST
from engine.runtime.faults import Fault, Kind
from engine.runtime.watch import (
    AT,
    COUNT,
    MIXED,
    OTHER,
    PLACE,
    SAME,
    THREAD,
    coordinates,
    memory,
)

# Bytes that a shadow may take up, those that are copied of a device, and of one cell of a shadow
# (`cell_t`).
SHADOW_BYTES = 1 << 30
COPIED_BYTES = 4 << 30
_CELL = 48
_ALIGNED = 256  # bytes that an element may be aligned to, at most
# Bytes of integers by which launches are told apart.
_DIGEST_BYTES = 8 << 20
_ALWAYS = 8  # times that equal launches are looked at, if they may differ
_MOST = 64  # times that launches which differ in their integers alone are


@dataclass(slots=True)
class _Known:
    """How often launches of a kind came, and whether one of them did something wrong."""

    came: int = 0
    found: bool = False


def races(backend: Backend, variants: Variants, dim: tuple[int, ...], args: bytes) -> list[Fault]:
    """What the threads of a launch that is about to run do to each other, by places of the code.

    Nothing where it is proven that they keep apart, or where it is not time to look.
    """
    total = math.prod(dim)
    if total < 2 or total >= (1 << 31) - 1 or not variants.written:
        return []
    kernel = watched(variants, "races")
    if kernel.known_free(dim, args):
        return []
    arrays = [a for a in variants.threads.arrays(args) if not a.empty]
    classes = variants.threads.classes_of(dim, args)
    open_ = {
        name
        for g in classes.groups if g.sharing in ("ordered", "unproven", "take")
        for name in g.names
    } if classes.known else {a.name for a in arrays}  # fmt: skip
    if not open_:
        kernel.note_free(dim, args)
        return []
    shapes = (dim, tuple((a.name, a.shape, a.strides) for a in arrays))
    key = (shapes, _scalars(variants, args), _digest(backend, variants, arrays))
    if key not in kernel.book:
        kinds: _Known = kernel.book.setdefault(shapes, _Known())
        kinds.came += 1
        if not _now(kinds.came, _MOST):
            return []
    seen: _Known = kernel.book.setdefault(key, _Known())
    seen.came += 1
    again = seen.found or kernel.floats_decide
    if seen.came > 1 and not (again and _now(seen.came, _ALWAYS)):
        return []
    try:
        found = _look(backend, variants, dim, args, arrays, open_)
    except BaseException:  # as where a device is capturing: then it is run again
        seen.came -= 1
        raise
    seen.found = seen.found or bool(found)
    kernel.raced = kernel.raced or any(f.kind == "race" for f in found)
    return found


def _now(came: int, always: int) -> bool:
    """Whether to look at a launch of a kind: at the first ones, and then whenever it doubles."""
    return came <= always or came & (came - 1) == 0


def _scalars(variants: Variants, args: bytes) -> bytes:
    """The arguments that are no arrays and no floats."""
    types = [p.type for p in variants.ir.params]
    return b"".join(
        args[at : at + arg_bytes(t)]
        for t, at in zip(types, arg_offsets(types), strict=False)
        if not isinstance(t, ArrayType) and not is_float(t)
    )


def _digest(backend: Backend, variants: Variants, arrays: Sequence[Placed]) -> tuple[int, ...]:
    """Of what arrays of integers contain; of large ones, of a part."""
    out, left = [], _DIGEST_BYTES
    for a in arrays:
        if a.name in variants.read and is_integer(scalar_of(a.type)) and left > 0:
            begin, end = a.ends
            size = min(end - begin, left)
            left -= size
            out.append(zlib.crc32(_bytes(backend, begin, size).data))
    return tuple(out)


def _bytes(backend: Backend, begin: int, size: int) -> NDArray[np.uint8]:
    """What memory contains; a copy, unless it is the host's."""
    found: NDArray[np.uint8] = backend.to_host(
        backend.view(None, begin, (size,), None, np.uint8, False)
    )
    return found


class _Copies:
    """Memory of a device on the host: what overlaps there, overlaps here."""

    def __init__(self, backend: Backend, arrays: Sequence[Placed]) -> None:
        self._moves: list[tuple[int, int, int]] = []
        self._kept: list[NDArray[np.uint8]] = []
        for begin, end in _spans(arrays):
            room = np.empty(end - begin + _ALIGNED, np.uint8)
            shift = (begin - room.ctypes.data) % _ALIGNED
            room[shift : shift + end - begin] = _bytes(backend, begin, end - begin)
            self._moves.append((begin, end, room.ctypes.data + shift - begin))
            self._kept.append(room)

    def moved(self, args: bytes, arrays: Sequence[Placed]) -> tuple[bytes, list[Placed]]:
        """Arguments and arrays that are the copies."""
        block, out = bytearray(args), []
        for a in arrays:
            begin = a.ends[0]
            (by,) = (by for lo, hi, by in self._moves if lo <= begin < hi)
            out.append(replace(a, address=a.address + by))
            struct.pack_into("<q", block, a.at, out[-1].address)
        return bytes(block), out


def _compiles(kernel: Watched) -> bool:
    """Whether the host can run a kernel of a device: native text may be for that alone."""
    if kernel.compiles is None:
        try:
            kernel.entry(HOST.backend, "forward")
            kernel.compiles = True
        except CompilerError:
            kernel.compiles = False
    return kernel.compiles


def _look(
    backend: Backend, variants: Variants, dim: tuple[int, ...], args: bytes,
    arrays: Sequence[Placed], names: Collection[str],
) -> list[Fault]:  # fmt: skip
    name, total = variants.name, int(np.prod(dim, dtype=np.int64))
    gap = Fault("unwatched", name, variants.ir.span, "forward", "store", "", (), (), (), 1)
    shadow = _Shadow([a for a in arrays if a.name in names])
    copied = 0 if backend.on_host else sum(end - begin for begin, end in _spans(arrays))
    if shadow.bytes > SHADOW_BYTES or copied > COPIED_BYTES:
        return [gap]
    kernel = watched(variants, "races")
    copies = None
    if not backend.on_host:
        if not _compiles(kernel):
            return [replace(gap, kind="unseen")]
        copies, backend = _Copies(backend, arrays), HOST.backend
        args, arrays = copies.moved(args, arrays)
        shadow = _Shadow([a for a in arrays if a.name in names])
    entry = kernel.entry(backend, "forward")
    places = kernel.watched("forward", NONE, NONE)[1]
    words = memory(len(places))
    words[1:HEAD] = shadow.made()
    native = any(f.native is not None for f in n.callees(variants.ir))
    changed = [a for a in arrays if native or a.name in variants.written]
    with kept(changed) if copies is None else nullcontext():
        at = struct.pack("<q", words.ctypes.data)
        backend.run(entry, dim, args + at, Limits(0, 0), (0, total))
    site = call_span()
    out = []
    for p, row in zip(places, words[HEAD:].reshape(-1, FAULT).tolist(), strict=False):
        count = row[COUNT] or row[MIXED] or row[SAME]
        if not count:
            continue
        other = places[row[PLACE]]
        kind: Kind = "race"
        if not row[COUNT] and row[MIXED] and (p.monotone or other.monotone):
            kind = "mixed"
        elif not row[COUNT] and not row[MIXED]:
            if p.constant or other.constant:
                continue
            kind = "same"
        owner, index = _named(row[AT], arrays, p.name)
        out.append(
            Fault(
                kind, name, p.span, "forward", p.access, owner.name,
                coordinates(row[THREAD], dim), index, owner.shape, count,
                coordinates(row[OTHER], dim), other.span, other.access, site,
            )
        )  # fmt: skip
    return out


def _named(address: int, arrays: Sequence[Placed], wanted: str) -> tuple[Placed, tuple[int, ...]]:
    """The array that an address is of, and the index there; the one of a name comes first."""
    for a in sorted(arrays, key=lambda a: a.name != wanted):
        begin, end = a.ends
        if begin <= address < end:
            index, rest = [0] * len(a.shape), address - a.address
            for d in sorted(range(len(a.shape)), key=lambda d: -abs(a.strides[d])):
                if a.strides[d] > 0 and a.shape[d] > 1:
                    index[d] = min(rest // a.strides[d], a.shape[d] - 1)
                    rest -= index[d] * a.strides[d]
            if 0 <= rest < a.type.element.size:
                return a, tuple(index)
    return next(a for a in arrays if a.ends[0] <= address < a.ends[1]), ()


def _spans(arrays: Sequence[Placed]) -> list[list[int]]:
    """Begin and end of the stretches of memory that arrays cover."""
    spans: list[list[int]] = []
    for begin, end in sorted(a.ends for a in arrays):
        if spans and begin < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([begin, end])
    return spans


class _Shadow:
    """Cells for the memory of some arrays. bytes: what it takes up once it is made."""

    def __init__(self, arrays: Sequence[Placed]) -> None:
        spans = _spans(arrays)
        # Cells of a scalar each, where all are as large and none lies across two cells.
        size = min(scalar_of(a.type).size for a in arrays)
        while size > 1 and any(
            (x - s[0]) % size for s in spans for a in arrays if s[0] <= a.address < s[1]
            for x in (a.address, *(a.address + k for k in a.strides))
        ):  # fmt: skip
            size //= 2
        self._shift, self._spans = size.bit_length() - 1, spans
        self.bytes = sum((end - begin >> self._shift) + 1 for begin, end in spans) * _CELL

    def made(self) -> tuple[int, int, int]:
        """The number of regions, the size of cells and the regions' address, as `watch_t` has."""
        self._cells = [
            np.zeros((end - begin >> self._shift) + 1, f"V{_CELL}") for begin, end in self._spans
        ]
        rows = [(*s, c.ctypes.data) for s, c in zip(self._spans, self._cells, strict=True)]
        self._regions: NDArray[np.int64] = np.array(rows, np.int64)
        return len(rows), self._shift, self._regions.ctypes.data


@contextmanager
def kept(arrays: Sequence[Placed]) -> Iterator[None]:
    """Puts back what arrays contain."""
    before = [(v, v.copy()) for v in map(view, arrays)]
    try:
        yield
    finally:
        for v, contents in before:
            v[...] = contents
