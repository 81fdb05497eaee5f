"""Measures one row: every peer makes it, then they take turns."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from benchmarks.case import Case
from benchmarks.limits import cores
from benchmarks.peers import Failure, Peer
from benchmarks.targets import HAND, OURS

PASSES = ("forward", "backward")
ALIKE = 1e-3  # by how much results may differ, of what rounding and the order of sums explain


@dataclass(frozen=True)
class Plan:
    """How much is measured. seconds: of a peer in one round; most: in all rounds of a pass."""

    rounds: int = 7
    seconds: float = 0.08
    most: float = 4.0
    least: int = 3  # rounds that even the slowest peer takes part in
    limit: float = 120.0  # seconds that one command may take
    row: float = 60.0  # seconds after which a row goes on with the least rounds only
    copier: str = HAND  # the peer that measures copies


def spread(times: Iterable[float], per: int = 1) -> dict[str, float]:
    """Median, quartiles, extremes and number of samples."""
    found = sorted(t / per for t in times)
    low, _, high = quantiles(found, n=4) if len(found) > 1 else found * 3
    return {
        "median": median(found), "low": low, "high": high, "min": found[0], "max": found[-1],
        "samples": len(found),
    }  # fmt: skip


def take_turns(
    peers: Mapping[str, Peer], which: str, rounds: int, repeat: int
) -> dict[str, list[float]]:
    """Seconds of each call of one pass: the peers alternate, and who begins alternates too."""
    times: dict[str, list[float]] = {name: [] for name in peers}
    for turn in range(rounds):
        for name in list(peers) if turn % 2 == 0 else list(peers)[::-1]:
            times[name] += peers[name].ask({"time": which, "repeat": repeat})
    return times


def relative_gap(a: list[list[float]], b: list[list[float]]) -> float:
    """Largest difference of two result summaries, relative to the sums of magnitudes.

    1, as of results that have nothing in common, where one is not finite.
    """
    gaps = [
        max(abs(x[0] - y[0]), abs(x[1] - y[1])) / max(x[1], y[1], 1e-30)
        for x, y in zip(a, b, strict=False)
    ]
    return max((g if math.isfinite(g) else 1.0 for g in gaps), default=0.0)


class Row:
    """One case while it is measured. Who fails is left out from then on, with what it said."""

    def __init__(self, case: Case, size: int, peers: Mapping[str, Peer], plan: Plan) -> None:
        self.case, self.size, self.peers, self.plan = case, size, peers, plan
        self.failed: dict[str, str] = {}
        self.cannot: list[str] = []
        self.made: dict[str, Any] = {}
        self.end = time.monotonic() + plan.row

    def _ask(self, name: str, command: dict[str, Any]) -> Any:
        """The answer, or None where the peer has failed, now or before."""
        if name in self.failed:
            return None
        try:
            return self.peers[name].ask(command, self.plan.limit)
        except Failure as e:
            self.failed[name] = (str(e).splitlines() or [""])[0]
            return None

    def make(self) -> None:
        """Has all peers make the case, at once: they compile."""
        command = {"make": self.case.name, "size": self.size}
        with ThreadPoolExecutor(max_workers=cores()) as pool:
            for name, made in pool.map(lambda n: (n, self._ask(n, command)), self.peers):
                if made is not None and made.get("cannot"):
                    self.cannot.append(name)
                elif made is not None:
                    self.made[name] = made

    def turns(self, which: str) -> tuple[dict[str, list[float]], list[float]]:
        """Samples of one pass of each peer, and of copies between them."""
        plan = self.plan
        able = [n for n in self.made if which in self.made[n]["passes"]]
        paces = {n: self._ask(n, {"pace": which, "seconds": plan.seconds}) for n in able}
        times: dict[str, list[float]] = {n: [] for n in able if paces[n] is not None}
        copies: list[float] = []
        for turn in range(plan.rounds):
            if turn >= plan.least and time.monotonic() > self.end:
                break
            for name in list(times) if turn % 2 == 0 else list(reversed(times)):
                pace = paces[name]
                took = pace["once"] * pace["inner"] * min(pace["repeat"], 5)
                if turn >= plan.least and took * turn > plan.most:
                    continue
                repeat = min(pace["repeat"], 5)
                given = {"time": which, "repeat": repeat, "inner": pace["inner"]}
                times[name] += self._ask(name, given) or []
            if self.case.moved is not None and plan.copier in self.peers:
                given = {"copy": self.size, "repeat": 3, "cores": cores()}
                copies += self._ask(plan.copier, given) or []
        return {n: t for n, t in times.items() if t and n not in self.failed}, copies

    def gaps(self, which: str, names: Iterable[str]) -> dict[str, float]:
        """By how much the results of others differ from those of `engine`."""
        key = "outputs" if which == "forward" else "gradients"
        ours = self.made.get(OURS)
        if ours is None:
            return {}
        return {n: relative_gap(ours[key], self.made[n][key]) for n in names if n != OURS}

    def measure(self, which: str) -> dict[str, Any] | None:
        """Everything about one pass; None where nobody has it."""
        index = PASSES.index(which)
        times, copies = self.turns(which)
        if not times:
            return None
        case = self.case
        found: dict[str, Any] = {
            "pass": case.passes[index],
            "times": {n: spread(t, case.per or self.size) for n, t in times.items()},
            "gaps": self.gaps(which, times),
        }
        ours = found["times"].get(OURS)
        if case.moved is not None and copies:
            found["copy"] = spread(copies)
            # A copy reads one array and writes one.
            found["limit"] = found["copy"]["median"] * case.moved[index] / 2
            if ours is not None:
                found["share"] = found["limit"] / ours["median"]
        if case.flops and which == "forward" and ours is not None:
            found["operations"] = case.flops(self.size) / ours["median"]
        return found


def measure(case: Case, size: int, peers: Mapping[str, Peer], plan: Plan) -> dict[str, Any]:
    """All figures of one row, in seconds."""
    row = Row(case, size, peers, plan)
    try:
        row.make()
        passes = [row.measure(which) for which in PASSES]
    finally:
        for name in peers:
            row._ask(name, {"drop": True})
    return {
        "name": case.name, "title": case.title, "group": case.group, "size": size,
        "note": case.note, "unit": "s", "passes": [p for p in passes if p is not None],
        "cannot": row.cannot, "failed": row.failed,
    }  # fmt: skip
