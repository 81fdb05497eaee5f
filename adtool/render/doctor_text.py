"""The result of `adtool doctor` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from adtool.render import styles
from adtool.render.words import clean

if TYPE_CHECKING:
    from adtool.doctor import DoctorReport

_WORDS = {"ok": "ok", "missing": "missing", "problem": "problem"}


def print_report(report: DoctorReport, console: Console) -> None:
    """Prints a line for each piece, and below what is wrong with it what to do."""
    width = max(len(i.name) for i in report.items)
    for item in report.items:
        style = styles.GOOD if item.status == "ok" else styles.DIM
        if item.status == "problem" or (item.needed and item.status != "ok"):
            style = styles.BAD
        line = Text.assemble(
            f"{item.name:<{width}}  ", (f"{_WORDS[item.status]:<7}", style),
            f"  {clean(item.found)}",
        )  # fmt: skip
        _line(console, line)
        if item.help and item.status != "ok":
            _line(console, Text(" " * (width + 11) + clean(item.help), styles.DIM))
    console.print()
    if report.ok:
        _line(console, Text("kernels run on the CPU", styles.GOOD))
    else:
        _line(console, Text("kernels do not run here: fix the marked problems above", styles.BAD))


def _line(console: Console, text: Text) -> None:
    console.print(text, no_wrap=True, overflow="ignore", crop=False)
