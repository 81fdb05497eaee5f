"""What all text output shares: paths, the user's own text, tables."""

from __future__ import annotations

import os

from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table


def short(file: str) -> str:
    """A path below the current directory, relative to it."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # it was removed
        return file
    return file[len(here) :] if file.startswith(here) else file


def clean(text: str) -> str:
    """Text of the user's without the control characters that would drive the terminal."""
    return "".join(
        c if c == "\n" or c.isprintable() else " " if c == "\t" else f"\\x{ord(c):02x}"
        for c in text
    )


def print_table(table: Table, console: Console) -> None:
    """Prints a table without spaces at the ends of its lines."""
    out: list[Segment] = []
    for line in console.render_lines(table, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        out += [*line, Segment.line()]
    console.print(Segments(out), end="", crop=False)
