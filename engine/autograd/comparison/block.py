"""The entries of a Jacobian that were compared one by one."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from engine.classes import dataclass

Array = NDArray[Any]


@dataclass(frozen=True)
class EntryBlock:
    """The compared entries of one pair: which rows and columns, and both values.

    error: of the reference, by its own estimate.
    """

    rows: tuple[int, ...]
    cols: tuple[int, ...]
    ad: Array
    reference: Array
    error: Array
