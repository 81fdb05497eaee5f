"""What must hold of every report that a check has made."""

from __future__ import annotations

from typing import Any


def passing_errors(report: dict[str, Any]) -> list[Any]:
    """Pairs, and tapes as wholes, that pass beside a relative error above their tolerance."""
    runs = report.get("runs", [report])  # of scripts
    pairs = [p for run in runs for x in run["launches"] for p in x["pairs"]]
    rows = [(p, p["max_rel_error"]) for p in pairs]
    rows += [(e, e["rel_error"]) for run in runs for e in run["end_to_end"]]
    return [x for x, error in rows if x["verdict"] == "pass" and not _is_right(x, error)]


def _is_right(row: dict[str, Any], error: Any) -> bool:
    if error is None:
        return True
    tolerance = row["tolerance"]
    return isinstance(error, (float, int)) and tolerance is not None and error <= tolerance
