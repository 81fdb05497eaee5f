"""Tests whether cost grows linearly with elements and with launches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.case import Case
from benchmarks.kernel_cases import KERNELS
from benchmarks.launch_cases import make_launches
from benchmarks.measuring import Plan, measure
from benchmarks.peers import Peer

NAMES = ("engine", "warp")
ELEMENTS = tuple(10**k for k in range(3, 9))
LAUNCHES = tuple(10**k for k in range(6))
# By how much an element, or a launch, may cost more at the largest size than at a tenth of it.
LINEAR = 1.25
_BYTES = 4 * 9 * len(NAMES)  # of one element in all arrays of a case, in all processes

CURVES = [
    Case("launches", "launches of 64 elements on a tape", LAUNCHES[-1], 10, make_launches,
         passes=("record", "backward"), group="curves"),
]  # fmt: skip


def available() -> int:
    """Bytes of memory that are free, as far as the system says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError):
        return 4 << 30


def curves(peers: Mapping[str, Peer], plan: Plan, quick: bool = False) -> list[dict[str, Any]]:
    """Times at each size: {"name", "title", "unit", "sizes", "passes": {pass: {peer: [...]}}}."""
    own = {n: p for n, p in peers.items() if n in NAMES}
    plan = replace(plan, rounds=min(3, plan.rounds), seconds=0.05, most=2.0, least=1)
    cases = [c for c in KERNELS if c.name in ("saxpy", "elementwise")]
    found = []
    for case, sizes in (*((c, ELEMENTS) for c in cases), (CURVES[0], LAUNCHES)):
        fit = [n for n in sizes if n * _BYTES < 0.6 * available() or n < 10**7]
        points = []
        for size in fit[:2] if quick else fit:
            # Without copies: the machine's limit is not asked here.
            points.append((size, measure(replace(case, moved=None), size, own, plan)))
        found.append(_curve(case, points))
    return found


def _curve(case: Case, points: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    passes: dict[str, Any] = {}
    for size, row in points:
        for p in row["passes"]:
            for name, times in p["times"].items():
                lines = passes.setdefault(p["pass"], {})
                lines.setdefault(name, []).append([size, times["median"]])
    unit = "launch" if case.group == "curves" else "element"
    return {
        "name": case.name, "title": case.title, "unit": unit, "passes": passes,
        "failed": {n: why for _, row in points for n, why in row["failed"].items()},
    }  # fmt: skip


def growth(line: list[list[float]]) -> float | None:
    """How much more an element costs at the largest size than at the one before it."""
    if len(line) < 2:
        return None
    (n, s), (m, t) = line[-2:]
    return (t / m) / (s / n)
