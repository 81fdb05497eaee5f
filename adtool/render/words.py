"""Shared parts of text output: the user's text, and tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table

from engine.characters import clean as clean

_LEAST = 80  # columns: on narrower terminals lines of tables are broken by these


def print_table(table: Table, console: Console, above: Sequence[str] = ()) -> None:
    """Prints a table without spaces at the ends of its lines.

    above: lines to be put above each of its rows, if any; the rows have one line each, then.
    """
    out: list[Segment] = []
    options = console.options.update(width=max(console.width, _LEAST))
    lines = console.render_lines(table, options, pad=False)
    head = len(lines) - len(above)
    for number, line in enumerate(lines):
        if above and number >= head:
            out += [Segment(above[number - head]), Segment.line()]
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        out += [*line, Segment.line()]
    console.print(Segments(out), end="", crop=False)
