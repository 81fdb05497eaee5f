"""Another tool that applies a fix from SARIF makes the change of `--fix`."""

from __future__ import annotations

import json

from adtool.fixes.edits import applied
from adtool.render.formats import Setting
from adtool.render.sarif import render
from adtool.report import Edit, Fix
from tests.reports import finding, report

TEXT = "a = f(1)\nb = '日', f(2)\nlaunch()\nc = 3\n"
EDITS = (
    Edit("/w/a.py", 1, 8, 1, 8, ", x=True"),
    Edit("/w/a.py", 2, 12, 2, 13, "3"),
    Edit("/w/a.py", 3, 1, 3, 9, "with tape:\n    launch()"),
    Edit("/w/a.py", 4, 1, 5, 1, ""),
)


def test_the_same_text() -> None:
    text = render([report(findings=(finding(fix=Fix("do it", True, EDITS)),))], Setting("/w"))
    (run,) = json.loads(text)["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    (fix,) = run["results"][0]["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "a.py"
    starts = [0]
    for line in TEXT.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = TEXT
    for r in sorted(change["replacements"], key=lambda r: -r["deletedRegion"]["startLine"]):
        region = r["deletedRegion"]
        first = starts[region["startLine"] - 1] + region["startColumn"] - 1
        last = starts[region["endLine"] - 1] + region["endColumn"] - 1
        found = found[:first] + r["insertedContent"]["text"] + found[last:]
    assert found == applied(TEXT.encode(), EDITS).decode()
    assert found == "a = f(1, x=True)\nb = '日', f(3)\nwith tape:\n    launch()\n"
