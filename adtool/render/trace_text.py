"""A tape as a table, or as JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adtool import __version__
from adtool.codec import dumps
from adtool.counts import counted, more
from adtool.render import styles
from adtool.render.words import clean, print_table
from adtool.report import SCHEMA, Failure

if TYPE_CHECKING:
    from adtool.course import Course, Row, Turn
    from adtool.last import Last
    from engine.autograd import MemoryUse, TapeTrace

_HEADS = ("launch", "kernel", "in", "out", "dim", "bytes", "forward", "backward", "gradient")
# Where the line is too short for three columns of names, they share one, on two lines.
_STACKED = ("launch", "kernel\n  in -> out", *_HEADS[4:])
_LEFT = (*_HEADS[1:4], _STACKED[1])
_WIDE = 110  # columns of a terminal
_NAMES = 3  # arrays named in a cell


def print_trace(
    last: Last, trace: TapeTrace, course: Course, rows: Sequence[Row], top: int, plot: str,
    console: Console,
) -> None:  # fmt: skip
    """Prints the rows that were chosen, what the tape takes up, and how its gradient goes."""
    from adtool.course import growth_words

    shown = rows if top <= 0 else rows[:top]
    listing = trace.listing
    many = f"tape {trace.tape} of {last.traces.recorded}"
    _line(console, f"{many} of {last.script}: {counted(listing.records, 'operation')}, "
          f"{counted(len(listing.arrays), 'array')}", styles.HEAD)  # fmt: skip
    heads = _HEADS if console.width >= _WIDE else _STACKED
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
                  collapse_padding=True, header_style=styles.HEAD)  # fmt: skip
    for head in heads:
        names = head in _LEFT
        table.add_column(head, justify="left" if names else "right", no_wrap=not names,
                         overflow="fold", vertical="top")  # fmt: skip
    found = [_cells(trace.tape, r) for r in shown]
    if heads is _STACKED:
        found = _stacked(found, console.width)
    for r, row in zip(shown, found, strict=True):
        cells = [Text(clean(c)) for c in row]
        if r.gradient is not None and not math.isfinite(r.gradient):
            cells[-1].stylize(styles.BAD)
        elif not r.gradient:
            cells[-1].stylize(styles.DIM)
        table.add_row(*cells)
    print_table(table, console)
    if len(shown) < len(rows):
        _line(console, f"and {more(len(rows) - len(shown), 'row')} (--top 0 shows all)", styles.DIM)
    missing = listing.records - len(listing.operations)
    if missing:
        lost = counted(missing, "operation")
        _line(console, f"not kept: {lost} in the middle of the tape", styles.DIM)
    console.print()
    forward, backward = (
        _seconds(_sum(getattr(r, w) for r in rows)) for w in ("forward", "backward")
    )
    _line(
        console, f"times: forward {forward}, backward {backward} (of {counted(len(rows), 'row')})"
    )
    _line(console, _memory(trace.memory))
    if not trace.ran:
        _line(console, "gradients: no backward pass ran on this tape")
    elif course.growth is not None:
        _line(console, f"gradient: at the launches of `{course.along}`, its norm "
              f"{growth_words(course.growth)}, going backward")  # fmt: skip
    for turn, word in ((course.explodes, "explodes"), (course.dies, "dies")):
        if turn is not None:
            _line(console, f"gradient {word} at {_where(trace.tape, turn)}: {turn.why}", styles.BAD)
    if plot:
        _line(console, f"plot written to {plot}")


def _cells(tape: int, r: Row) -> list[str]:
    return [
        f"{tape}:{r.launch}" if r.launch is not None else "-",
        r.kernel if r.kind == "launch" else f"({r.kernel})",
        _names(r.inputs),
        _names(r.outputs),
        "x".join(map(str, r.dim)) or "-",
        _bytes(r.bytes),
        _seconds(r.forward),
        _seconds(r.backward),
        "-" if r.gradient is None else f"{r.gradient:.4g}",
    ]


def _stacked(rows: list[list[str]], width: int) -> list[list[str]]:
    """The same with kernel and arrays in one column, broken between names."""
    others = [0, *range(4, len(_HEADS))]
    taken = sum(max([len(_HEADS[i]), *(len(r[i]) for r in rows)]) + 2 for i in others)
    room = max(20, width - taken)
    out = []
    for r in rows:
        arrays = textwrap.fill(
            f"{r[2]} -> {r[3]}", room, initial_indent="  ", subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        out.append([r[0], f"{r[1]}\n{arrays}", *r[4:]])
    return out


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more or "-"


def _where(tape: int, turn: Turn) -> str:
    if turn.launch is None:
        return f"record {turn.record} (`{turn.kernel}`)"
    return f"launch {tape}:{turn.launch} of kernel `{turn.kernel}`"


def _memory(use: MemoryUse | None) -> str:
    if use is None:
        return "memory: unknown"
    return (f"memory in addition to arrays and gradients: {_bytes(use.inputs)} for copies of "
            f"arrays from before they changed, {_bytes(use.journals)} for journals, "
            f"{_bytes(use.stack)} for the stack")  # fmt: skip


def _sum(values: object) -> float | None:
    known = [v for v in values if v is not None]  # type: ignore[attr-defined]
    return sum(known) if known else None


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 1.0:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


def _bytes(count: int) -> str:
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.4g} {units[0]}"


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(clean(text), style=style), soft_wrap=True)


def print_json(
    script: str, last: Last | None, trace: TapeTrace | None, course: Course | None,
    rows: Sequence[Row], plot: str, failure: Failure | None, stream: TextIO,
) -> None:  # fmt: skip
    """Writes the same as one strict JSON object and a line's end."""
    data = {
        "schema": SCHEMA,
        "tool": f"adtool {__version__}",
        "script": script,
        "ok": failure is None,
        "exit_code": 0 if failure is None else 2,
        "tape": None if trace is None else trace.tape,
        "tapes": 0 if last is None else last.traces.recorded,
        "operations": 0 if trace is None else trace.listing.records,
        "memory": None if trace is None else trace.memory,
        "backward": False if trace is None else trace.ran,
        "growth": None if course is None else course.growth,
        "along": "" if course is None else course.along,
        "explodes": None if course is None else course.explodes,
        "dies": None if course is None else course.dies,
        "rows": tuple(rows),
        "plot": plot,
        "error": failure,
    }
    stream.write(dumps(data, indent=2) + "\n")
