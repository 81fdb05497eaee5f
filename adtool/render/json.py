"""The report as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adtool.codec import dumps
from adtool.report import SCHEMA, Report, to_json

if TYPE_CHECKING:
    from adtool.render.formats import Setting


def render(reports: Sequence[Report], setting: Setting) -> str:
    """One strict JSON object and a line's end; of several scripts `runs` has one for each."""
    if not setting.several:
        return to_json(reports[0]) + "\n"
    data = {
        "schema": SCHEMA,
        "tool": reports[0].tool,
        "ok": all(r.ok for r in reports),
        "exit_code": max(r.exit_code for r in reports),
        "runs": reports,
    }
    return dumps(data, indent=2) + "\n"
