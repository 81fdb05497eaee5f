"""Small matrices as PNG images in `data:` addresses."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Sequence

Colour = tuple[int, int, int]

_NEGATIVE, _ZERO, _POSITIVE = (33, 102, 172), (255, 255, 255), (202, 80, 22)
_ERROR: tuple[Colour, ...] = ((255, 255, 255), (254, 217, 142), (236, 112, 20), (140, 22, 8))
_NAN: Colour = (160, 32, 200)
_DECADES = 8.0  # of errors, below the scale


def signed(rows: int, cols: int, values: Sequence[float]) -> str:
    """An image of values: blue below zero, orange above, purple where not finite."""
    top = largest(values)

    def colour(v: float) -> Colour:
        # A root: small entries are to be told from none.
        share = math.sqrt(abs(v) / top) if top else 0.0
        return _mixed(_ZERO, _POSITIVE if v > 0 else _NEGATIVE, share)

    return _address(rows, cols, values, colour)


def errors(rows: int, cols: int, values: Sequence[float], scale: float) -> str:
    """An image of errors, by their logarithm: white to dark red, purple where not finite.

    scale: what an error of is as dark as can be, as the largest entry of the Jacobian.
    """
    top = scale or largest(values)

    def colour(v: float) -> Colour:
        if not v or not top:
            return _ERROR[0]
        share = 1.0 + math.log10(abs(v) / top) / _DECADES
        at = min(max(0.0, share), 1.0) * (len(_ERROR) - 1)
        k = min(int(at), len(_ERROR) - 2)
        return _mixed(_ERROR[k], _ERROR[k + 1], at - k)

    return _address(rows, cols, values, colour)


def largest(values: Sequence[float]) -> float:
    """The largest finite magnitude, 0 for none."""
    return max((abs(v) for v in values if math.isfinite(v)), default=0.0)


def _mixed(a: Colour, b: Colour, share: float) -> Colour:
    r, g, c = (round(x + (y - x) * min(share, 1.0)) for x, y in zip(a, b, strict=True))
    return r, g, c


def _address(
    rows: int, cols: int, values: Sequence[float], colour: Callable[[float], Colour]
) -> str:
    if not rows or not cols or len(values) != rows * cols:
        return ""
    lines = bytearray()
    for r in range(rows):
        lines.append(0)  # no filter
        for v in values[r * cols : (r + 1) * cols]:
            lines += bytes(colour(v) if math.isfinite(v) else _NAN)
    head = struct.pack(">IIBBBBB", cols, rows, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(*c) for c in ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(lines), 9)),
                             (b"IEND", b""))
    )  # fmt: skip
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
