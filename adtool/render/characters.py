"""Removes control characters from the user's text before it is printed."""

from __future__ import annotations


def whole(text: str) -> str:
    """The text as it is, but for half characters: these are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def bounded(text: str, limit: int) -> str:
    """The text, cut where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."
