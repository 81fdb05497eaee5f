"""Patterns of paths: `*` and `?` within a name, `[...]`, and `**` for any number of folders."""

from __future__ import annotations

import os
import re
from functools import lru_cache


def fits(path: str, pattern: str, folder: str) -> bool:
    """Whether a file's path fits a pattern that is written as seen from a folder.

    A pattern without a `/` fits the name of the file, or of a folder that it is in, at or below
    `folder`. Any other one fits the path as a whole; one that ends with `/` all in that folder.
    """
    absolute = os.path.abspath(path)
    below = os.path.relpath(absolute, folder).replace(os.sep, "/")
    if "/" not in pattern:
        inside = not below.startswith("../")
        names = below.split("/") if inside else [os.path.basename(absolute)]
        return any(_expression(pattern).fullmatch(n) for n in names)
    if pattern.startswith("./"):
        pattern = pattern[2:]
    if pattern.endswith("/"):
        pattern += "**"
    if os.path.isabs(pattern):
        return _expression(pattern).fullmatch(absolute.replace(os.sep, "/")) is not None
    return _expression(pattern).fullmatch(below) is not None


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    out, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            out, at = out + "(?:[^/]+/)*", at + 3
        elif pattern[at:] == "**" and (at == 0 or pattern[at - 1] == "/"):
            out, at = out + ".*", at + 2
        elif pattern[at] == "*":
            out, at = out + "[^/]*", at + 1
        elif pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            inner = "^" + inner[1:] if inner.startswith("!") else inner.replace("^", "\\^")
            out, at = f"{out}(?!/)[{inner}]", end + 1
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    try:
        return re.compile(out, re.DOTALL)
    except re.error:  # a range that goes backwards: it means itself
        return re.compile(re.escape(pattern))
