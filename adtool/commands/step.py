"""Writes annotations and a summary in a step of GitHub Actions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from adtool.exits import ToolError
from adtool.saying import say
from adtool.writing import append


def tell(format: str, data: bool, rendered: Callable[[str], str]) -> None:
    """Prints annotations below a text report, and adds to the step's summary.

    Only where the environment says that this is a step (GITHUB_ACTIONS), or with `github` as
    the format. format: that of the report. data: whether standard output is taken by it.
    rendered: gives the report in a format.
    """
    step = os.environ.get("GITHUB_ACTIONS") == "true"
    if format == "text" and step:
        sys.stdout.write(rendered("github"))
        sys.stdout.flush()
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary and (format == "github" or (step and not data)):
        text = "\n" + rendered("markdown")
        try:
            append(text.encode("utf-8", "backslashreplace"), Path(summary))
        except ToolError as error:
            say(f"warning: the step's summary cannot be written: {error.message}", file=sys.stderr)
