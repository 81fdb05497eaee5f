"""Invariants of every report of a check."""

from __future__ import annotations

from typing import Any


def passing_errors(report: dict[str, Any]) -> list[Any]:
    """Pairs, and tapes as wholes, that pass beside an error above their tolerance.

    Of pairs also those whose worst entry is off by more than is allowed there, or has an error
    relative to a reference that is zero as far as can be told; and pairs whose worst entry is off
    by more than the largest error.
    """
    runs = report.get("runs", [report])  # of scripts
    pairs = [p for run in runs for x in run["launches"] for p in x["pairs"]]
    rows = [(p, p["max_rel_error"]) for p in pairs]
    rows += [(e, e["rel_error"]) for run in runs for e in run["end_to_end"]]
    wrong = [x for x, error in rows if x["verdict"] == "pass" and not _is_right(x, error)]
    wrong += [p for p in pairs if not _has_its_worst(p)]
    return wrong + [p for p in pairs if p["verdict"] == "pass" and not _is_told_right(p)]


def _is_right(row: dict[str, Any], error: Any) -> bool:
    if error is None:
        return True
    tolerance = row["tolerance"]
    return isinstance(error, (float, int)) and tolerance is not None and error <= tolerance


def _has_its_worst(pair: dict[str, Any]) -> bool:
    worst, most = pair.get("worst"), pair.get("max_abs_error")
    if worst is None or not isinstance(most, (float, int)):
        return True
    error = abs(float(worst["ad"]) - float(worst["oracle"]))
    return not error > most * (1.0 + 1e-9)


def _is_told_right(pair: dict[str, Any]) -> bool:
    worst = pair.get("worst")
    if worst is None:
        return True
    allowed, reference = worst["allowed"], worst["oracle"]
    zero = abs(reference) <= allowed
    return abs(worst["ad"] - reference) <= allowed and (worst["rel_error"] is None) == zero
