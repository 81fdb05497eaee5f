"""Divides the derivatives of Jacobians among processes.

Each is the same to the bit whoever evaluates it, and so are the matrices.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass

Array = NDArray[Any]
_TYPES = ("bfloat16", "float16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class Derivative:
    """Entries of one. of: which matrices it is of; numbers: little-endian, in base64."""

    of: str
    number: int
    dtype: str
    numbers: str


class Share:
    """Which derivatives to evaluate: those whose number is `number`, modulo `count`; and the others
    as far as they are known. `found`: those of a part that were evaluated; `evaluated`: how many.

    Raises ValueError for numbers that are none.
    """

    def __init__(
        self, number: int = 0, count: int = 1, known: Iterable[Derivative] = ()
    ) -> None:  # fmt: skip
        if not 0 <= number < count:
            raise ValueError(f"share {number} of {count}")
        self._number, self._count = number, count
        self._known = {(d.of, d.number): _values(d) for d in known}
        self.found: list[Derivative] = []
        self.evaluated = 0

    @property
    def whole(self) -> bool:
        """Whether it is all of them."""
        return self._count == 1

    def take(self, of: str, number: int, evaluate: Callable[[], Array], size: int) -> Array | None:
        """The entries of a derivative, so many; None where others evaluate it."""
        known = self._known.get((of, number))
        if known is not None and len(known) == size:
            return known
        if number % self._count != self._number:
            return None
        values = evaluate()
        self.evaluated += 1
        if not self.whole:
            text = base64.b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes())
            self.found.append(Derivative(of, number, values.dtype.name, text.decode("ascii")))
        return values


def _values(d: Derivative) -> Array:
    if d.dtype not in _TYPES:
        raise ValueError(f"derivative {d.number} is of the type {d.dtype!r}")
    dtype = np.dtype(d.dtype)
    try:
        data = base64.b64decode(d.numbers, validate=True)
        return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"derivative {d.number} cannot be read: {error}") from None


ALL = Share()
