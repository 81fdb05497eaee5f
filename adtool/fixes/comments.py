"""Fix: removes a suppressing comment that suppresses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adtool.report import Edit, Fix
from engine.reading import getline

if TYPE_CHECKING:
    from adtool.suppressions import Comment


def removed(comment: Comment) -> Fix | None:
    """Removes a comment that names one code; None where words stand around it."""
    line = getline(comment.file, comment.line).rstrip("\r\n")
    if len(comment.codes) != 1 or line[comment.end_column - 1 :].strip():
        return None
    before = line[: comment.column - 1]
    if "#" in before and before.rstrip().endswith("#"):
        return None
    kept = len(before.rstrip())
    first, last = (comment.line, kept + 1), (comment.line, len(line) + 1)
    if not kept:  # the line with its end
        first, last = (comment.line, 1), (comment.line + 1, 1)
    return Fix("remove the comment", True, (Edit(comment.file, *first, *last, ""),))
