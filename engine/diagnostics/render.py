"""Prints a diagnostic as plain text: code and message, place, snippet, help, notes."""

from __future__ import annotations

from engine.characters import clean, line, spelled
from engine.diagnostics.diagnostic import Diagnostic
from engine.diagnostics.span import Span
from engine.reading import getline


def snippet(span: Span, line: str = "") -> str:
    """The source line of a span with carets under it; empty where the file is gone.

    line: the text, where it is known better than from the file.
    """
    text = (line or getline(span.file, span.line)).rstrip("\n")
    if not text:
        return ""
    shown = _shown(text)
    start = len(_shown(text[: span.col - 1]))
    last = span.end_col - 1 if span.end_line == span.line else len(text)
    width = max(1, len(_shown(text[:last])) - start)
    gutter = str(span.line)
    bar = " " * len(gutter) + " |"
    return f"{bar}\n{gutter} | {shown}\n{bar} {' ' * start}{'^' * width}"


def _shown(text: str) -> str:
    return spelled(text.expandtabs(4)).replace("\n", "\\n")


def render(d: Diagnostic) -> str:
    """One diagnostic as a block of text without colour."""
    lines = [clean(f"{d.severity}[{d.code}]: {d.message}")]
    if d.span is not None:
        lines.append(f"  --> {line(str(d.span))}")
        shown = snippet(d.span, d.line)
        if shown:
            lines.append(shown)
    if d.help:
        lines.append(clean(f"help: {d.help}"))
    lines.extend(clean(f"note: {n}") for n in d.notes)
    return "\n".join(lines)
