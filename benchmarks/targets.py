"""The targets of the rows, and whether each row reaches its own.

A target is judged by medians. One that is missed or met by less than the samples scatter (half of
them lie between the quartiles) is marked as close.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

OURS = "engine"
HAND = "c++"  # written by hand, a measure and no peer

Kind = Literal["faster", "at most", "times", "bandwidth", "bytes"]


@dataclass(frozen=True)
class Target:
    """One condition of one pass.

    faster: the median of `of` is at least `value` times ours. at most: ours is at most `value`
    seconds. times: ours is at most `value` times that of `of`, a peer or
    another row ("row launch").
    bandwidth: what must be moved is moved at `value` of the bandwidth of copies at least.
    bytes: ours is at most that many.
    """

    kind: Kind
    value: float
    of: str = ""

    def words(self) -> str:
        """The condition, short."""
        if self.kind == "faster":
            return f"{self.value:g}x {self.of}"
        if self.kind == "at most":
            return f"<= {_short(self.value)}"
        if self.kind == "bytes":
            return f"<= {self.value:g} B"
        if self.kind == "times":
            return f"<= {self.value:g}x {self.of}"
        return f">= {self.value:.0%} of copy"


def _short(seconds: float) -> str:
    return f"{seconds * 1e6:g} µs" if seconds < 1e-3 else f"{seconds * 1e3:g} ms"


def faster(value: float, of: str = "warp") -> Target:
    """That many times as fast as a peer."""
    return Target("faster", value, of)


def at_most(seconds: float) -> Target:
    """Not longer than that."""
    return Target("at most", seconds)


def times(value: float, of: str) -> Target:
    """At most that many times the time of something else."""
    return Target("times", value, of)


@dataclass(frozen=True)
class Verdict:
    """What came of a target. found: the figure that stands for it, in words.

    `met` is None where it could not be judged. close: the samples scatter by more than what
    decided it.
    """

    target: str
    found: str
    met: bool | None
    close: bool = False

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


Times = Mapping[str, Mapping[str, float]]


def _within(ours: Mapping[str, float], limit: float, low: float, high: float) -> bool:
    """Whether the two ranges between quartiles meet."""
    return bool(ours["low"] <= high and low <= ours["high"]) and limit > 0.0


def judge(target: Target, row: Mapping[str, Any], others: Times) -> Verdict:
    """Whether a pass reaches a target.

    row: the pass as measured, by `measuring`. others: forward times of rows by name, as they were
    found in the same run.
    """
    times_ = row["times"]
    words = target.words()
    ours = times_.get(OURS)
    if ours is None:
        return Verdict(words, "", None)
    mine = ours["median"]
    if target.kind in ("at most", "bytes"):
        close = _within(ours, target.value, target.value, target.value)
        shown = f"{mine:.0f} B" if target.kind == "bytes" else ""
        return Verdict(words, shown, mine <= target.value, close)
    if target.kind == "bandwidth":
        share = row.get("share")
        return Verdict(words, "", None) if share is None else Verdict(
            words, f"{share:.0%}", share >= target.value
        )  # fmt: skip
    name = target.of.removeprefix("row ")
    theirs = others.get(name) if target.of != name else times_.get(name)
    if theirs is None:
        return Verdict(words, f"no {target.of}", None)
    if target.kind == "faster":
        value, factor = theirs["median"] / mine, 1.0 / target.value
        found, met = f"{value:.2g}x" if value < 10 else f"{value:.0f}x", value >= target.value
    else:
        value, factor = mine / theirs["median"], target.value
        found, met = f"{value:.2f}x", value <= target.value
    close = _within(ours, mine, theirs["low"] * factor, theirs["high"] * factor)
    return Verdict(words, found, met, close)


def slower_than(row: Mapping[str, Any]) -> list[Verdict]:
    """A verdict for each peer that is faster than `engine` in this pass."""
    ours = row["times"].get(OURS)
    peers = [n for n in row["times"] if n not in (OURS, HAND)]
    if ours is None:
        return []
    found = [judge(faster(1.0, name), row, {}) for name in peers]
    return [v for v in found if v.met is False]
