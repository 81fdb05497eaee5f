"""What must hold of every report that a check has made."""

from __future__ import annotations

from typing import Any

PASSES = 1e-2  # the largest relative error in a row that passes


def passing_errors(report: dict[str, Any]) -> list[Any]:
    """Pairs that pass beside a relative error that nobody would call right.

    What tolerances leave of derivatives that are next to zero beside others is far below.
    """
    launches = [x for run in report.get("runs", [report]) for x in run["launches"]]  # of scripts
    pairs = [p for x in launches for p in x["pairs"] if p["verdict"] == "pass"]
    return [p for p in pairs if p["max_rel_error"] is not None and not _told_right(p)]


def _told_right(pair: dict[str, Any]) -> bool:
    error = pair["max_rel_error"]
    return isinstance(error, (float, int)) and error <= PASSES
