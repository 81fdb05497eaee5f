"""What GitHub is told of a step that runs the tool, without being asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from adtool.exits import because
from adtool.saying import say


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
            with open(summary, "ab") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            say(f"warning: the step's summary cannot be written: {because(error)}",
                  file=sys.stderr)  # fmt: skip
