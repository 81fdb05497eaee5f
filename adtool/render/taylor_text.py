"""The remainder test as text: a table for each launch and each whole tape."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adtool.render import styles
from adtool.render.words import clean, print_table
from adtool.taylor_report import Taylor

_HEADS = ("step", "J(h)-J(0)", "rate", "minus h J'", "rate", "minus h^2/2 J''", "rate")


def print_taylor(tests: tuple[Taylor, ...], console: Console) -> None:
    """Prints the tests, and what their rates mean."""
    if not tests:
        return
    for t in tests:
        what = f"launch {t.launch}, kernel {clean(t.kernel)}" if t.launch >= 0 else "as a whole"
        console.print(Text(f"Taylor test of tape {t.tape}, {what}", styles.HEAD), soft_wrap=True)
        if t.rows:
            print_table(_table(t), console)
        rate = "" if t.rate is None else f"rate {t.rate:.3f}, expected {t.expected}: "
        why = f" ({t.reason})" if t.reason else ""
        line = Text(rate)
        line.append(t.verdict, styles.VERDICT.get(t.verdict, ""))
        line.append(why)
        console.print(line, soft_wrap=True)
        console.print()
    words = (
        "(r): within 100 times the rounding error of J; the rate is the median of the other "
        f"steps. With a wrong derivative the rate is 1, not {tests[0].expected}."
    )
    console.print(Text(words, styles.DIM))
    console.print()


def _table(t: Taylor) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
        header_style=styles.HEAD,
    )  # fmt: skip
    for head in _HEADS[: 1 + 2 * t.expected]:
        table.add_column(head, justify="right", no_wrap=True)
    for row in t.rows:
        cells = [f"{row.step:.2e}" + (" (r)" if row.rounding else "")]
        for remainder, rate in zip(row.remainders, row.rates, strict=True):
            cells += [f"{remainder:.3e}", "" if rate is None else f"{rate:.2f}"]
        table.add_row(*cells)
    cells = ["floor", f"{t.floor:.1e}"]
    table.add_row(*cells, *[""] * (2 * t.expected - 1))
    return table
