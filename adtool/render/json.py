"""The report as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adtool import __version__
from adtool.codec import dumps
from adtool.folds import folds, items_of
from adtool.report import LINES, SCHEMA, Launch, Report, runs_exit_code, to_json

if TYPE_CHECKING:
    from adtool.render.formats import Setting

WORST = 100  # launches of a kernel, pair and verdict that have their worst entry


def render(reports: Sequence[Report], setting: Setting) -> str:
    """One strict JSON object and a line's end; of several scripts `runs` has one for each."""
    kept = [_bounded(r) for r in reports]
    if not setting.several:
        return to_json(kept[0]) + "\n"
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": f"adtool {__version__}",
        "ok": all(r.ok for r in reports),
        "exit_code": runs_exit_code(reports),
        "runs": kept,
    }
    if setting.notes:
        data["notes"] = setting.notes
    return dumps(data, indent=2, lines=LINES) + "\n"


def _bounded(report: Report) -> Report:
    """The report with the worst entries of the worst launches of each kernel, pair and verdict."""
    dropped: set[tuple[int, int]] = set()  # by identity of launch and pair
    for fold in folds(items_of(report.launches)):
        known = [i for i in fold.items if i.pair is not None and i.pair.worst is not None]
        rest = sorted(known, key=lambda i: -i.excess)[WORST:]
        dropped |= {(id(i.launch), id(i.pair)) for i in rest}
    if not dropped:
        return report
    return replace(report, launches=tuple(_without(x, dropped) for x in report.launches))


def _without(launch: Launch, dropped: set[tuple[int, int]]) -> Launch:
    if not any((id(launch), id(p)) in dropped for p in launch.pairs):
        return launch
    pairs = (replace(p, worst=None) if (id(launch), id(p)) in dropped else p for p in launch.pairs)
    return replace(launch, pairs=tuple(pairs))
