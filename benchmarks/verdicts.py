"""The verdict of each row: its targets, the faster peers, and known reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES
from benchmarks.measuring import ALIKE
from benchmarks.scaling import LINEAR, growth
from benchmarks.targets import OURS, Target, faster, judge, slower_than

GPU = "gpu:"  # begins the keys of reasons on GPUs
REASONS = Path(__file__).resolve().parent / "reasons.json"

Wanted = dict[tuple[str, str], tuple[Target, ...]]

# Of the rows that are no cases, by row and pass.
OTHERS: dict[tuple[str, str], tuple[Target, ...]] = {
    ("start", "cold"): (faster(4),),
    ("start", "warm"): (faster(1),),
    ("first", "cold"): (faster(4),),
    ("first", "warm"): (faster(1),),
    ("memory", "record"): (Target("bytes", 1024),),
}

# Rows that are a part of another one, which is judged beside every peer. What comes before a first
# launch is not in them: in their imports, peers do what others leave to the launch. So they are
# judged by their targets alone, and who else is faster is told.
PARTS = frozenset({"first", "first_gradient"})


def reasons() -> dict[str, str]:
    """Why a row misses a target, by "row/pass"; what was found by reading and counting."""
    if not REASONS.exists():
        return {}
    found: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8"))
    return found


def targets() -> dict[tuple[str, str], tuple[Target, ...]]:
    """All targets by row and pass."""
    found = dict(OTHERS)
    for case in CASES:
        for name, given in zip(case.passes, case.targets, strict=True):
            if given:
                found[case.name, name] = given
    return found


def _forward(result: dict[str, Any]) -> dict[str, Any]:
    """Times of `engine` in the first pass of each row."""
    return {
        row["name"]: row["passes"][0]["times"][OURS]
        for row in result["rows"]
        if row["passes"] and OURS in row["passes"][0]["times"]
    }


def judge_all(result: dict[str, Any], wanted: Wanted | None = None) -> None:
    """Writes into each pass what came of it: "targets", "verdict" and "reason".

    wanted: the targets, by row and pass; None: those of the CPU. Reasons of others are those of
    GPUs, whose keys say so.
    """
    known = reasons()
    if wanted is not None:
        known = {k.removeprefix(GPU): why for k, why in known.items() if k.startswith(GPU)}
    wanted, forward = targets() if wanted is None else wanted, _forward(result)
    for row in result["rows"]:
        for one in row["passes"]:
            key = row["name"], one["pass"]
            verdicts = [judge(t, one, forward) for t in wanted.get(key, ())]
            named = {t.of for t in wanted.get(key, ()) if t.kind == "faster"}
            behind = [v for v in slower_than(one) if v.target.split()[-1] not in named]
            one["targets"] = [v.data() for v in (*verdicts, *behind)]
            if row["name"] in PARTS:
                one["told"] = [v.data() for v in behind]
                one["why"] = known.get("/".join(key), "") if behind else ""
                one["targets"], behind = [v.data() for v in verdicts], []
            judged = [v.met for v in verdicts if v.met is not None]
            if OURS not in one["times"]:
                one["verdict"] = "failed"
            elif behind or not all(judged):
                one["verdict"] = "missed"
            else:
                one["verdict"] = "met" if judged else "ahead"
            if len(one["times"]) == 1 and not judged and one["verdict"] == "ahead":
                one["verdict"] = "alone"
            one["reason"] = known.get("/".join(key), "") if one["verdict"] == "missed" else ""
    for curve in result.get("curves", []):
        found = {p: growth(lines[OURS]) for p, lines in curve["passes"].items() if OURS in lines}
        curve["growth"] = {p: g for p, g in found.items() if g is not None}
        over = {p for p, g in curve["growth"].items() if g > LINEAR}
        curve["verdict"] = "missed" if over else "met"
        curve["reason"] = known.get(f"curve {curve['name']}", "") if over else ""


def missed(result: dict[str, Any]) -> list[str]:
    """Every pass that misses something, in words."""
    lines = []
    for row in result["rows"]:
        for name, why in row["failed"].items():
            lines.append(f"{row['title']}: {name} failed ({why})")
        for one in row["passes"]:
            if one["verdict"] == "missed":
                what = "; ".join(_said(t) for t in one["targets"] if t["met"] is False)
                reason = one["reason"] or "the reason is not known yet"
                lines.append(f"{row['title']}, {one['pass']}: {what}. {reason}")
    for curve in result.get("curves", []):
        for p, g in curve["growth"].items():
            if g > LINEAR:
                reason = curve["reason"] or "the reason is not known yet"
                lines.append(
                    f"{curve['title']}, {p}: {g:.2f} times the cost of one at a tenth of the size. "
                    f"{reason}"
                )
    return [line if line.endswith((".", ")")) else f"{line}." for line in lines]


def parts_behind(result: dict[str, Any]) -> list[str]:
    """Where a peer is faster in a part of a row, in words."""
    return [
        f"{row['title']}, {one['pass']}: {'; '.join(map(_said, one['told']))}. {one['why']}".strip()
        for row in result["rows"] for one in row["passes"] if one.get("told")
    ]  # fmt: skip


def _said(target: dict[str, Any]) -> str:
    close = ", within the scatter" if target["close"] else ""
    if target["target"].startswith("1x "):
        return f"slower than {target['target'].split()[-1]} ({target['found']}{close})"
    found = f": {target['found']}" if target["found"] else ""
    return f"wanted {target['target']}{found}{close}"


def different(result: dict[str, Any]) -> list[str]:
    """Where a peer's results differ from those of `engine`, in words."""
    return [
        f"{row['title']}, {one['pass']}: {name} by {gap:.0e}"
        for row in result["rows"]
        for one in row["passes"]
        for name, gap in one["gaps"].items()
        if gap > ALIKE
    ]
