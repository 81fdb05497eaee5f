"""The remainder test as data, which `--taylor` adds to a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.classes import dataclass

if TYPE_CHECKING:
    from engine.autograd import Remainders, TapeResult


@dataclass(frozen=True, slots=True)
class TaylorRow:
    """One step: remainders of orders 0 and 1 (and 2, else null), and their rates of convergence.

    Rates are null for the first step. rounding: whether the remainder is no longer clear of it.
    """

    step: float
    remainders: tuple[float, ...]
    rates: tuple[float | None, ...]
    rounding: bool


@dataclass(frozen=True, slots=True)
class Taylor:
    """The test of a launch, or of a tape as a whole (launch -1), along one random direction.

    rate: of the highest order, null where nothing but rounding is left; expected: what it is where
    the derivatives are right. derivative: along the direction, by the adjoint. floor: what rounding
    makes of the function.
    """

    tape: int
    launch: int
    kernel: str
    verdict: str
    expected: int
    rate: float | None
    derivative: float
    floor: float
    rows: tuple[TaylorRow, ...]
    reason: str = ""


def taylor_of(tapes: tuple[TapeResult, ...]) -> tuple[Taylor, ...]:
    """The tests of all tapes, in their order."""
    return tuple(_taylor(t.tape, r) for t in tapes for r in t.remainders)


def _taylor(tape: int, r: Remainders) -> Taylor:
    count = r.order + 1
    rows = tuple(
        TaylorRow(
            x.step, (x.zeroth, x.first, x.second)[:count],
            tuple(map(_known, (x.rate_zeroth, x.rate_first, x.rate_second)[:count])), x.rounding,
        )
        for x in r.rows
    )  # fmt: skip
    return Taylor(
        tape, r.launch, r.kernel, r.verdict, count, _known(r.rate), r.derivative, r.floor, rows,
        r.reason,
    )  # fmt: skip


def _known(x: float) -> float | None:
    return None if math.isnan(x) else x
