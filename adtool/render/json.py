"""The report as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adtool import __version__
from adtool.codec import dumps
from adtool.report import SCHEMA, Report, runs_exit_code, to_json

if TYPE_CHECKING:
    from adtool.render.formats import Setting


def render(reports: Sequence[Report], setting: Setting) -> str:
    """One strict JSON object and a line's end; of several scripts `runs` has one for each."""
    if not setting.several:
        return to_json(reports[0]) + "\n"
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": f"adtool {__version__}",
        "ok": all(r.ok for r in reports),
        "exit_code": runs_exit_code(reports),
        "runs": reports,
    }
    if setting.notes:
        data["notes"] = setting.notes
    return dumps(data, indent=2) + "\n"
