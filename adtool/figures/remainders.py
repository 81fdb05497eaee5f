"""Log-log plots of Taylor remainders over the step."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adtool.exits import ToolError
from adtool.writing import write_file

if TYPE_CHECKING:
    from adtool.taylor_report import Taylor

MOST = 12  # panels
_COLOURS = ("0.6", "tab:blue", "tab:orange")


def save_remainders(tests: tuple[Taylor, ...], file: str) -> None:
    """Writes a panel for each test that has remainders, the last ones where there are too many.

    The format follows the file's name (png, svg, pdf). Raises ToolError where there is nothing to
    plot, and for a file that cannot be written.
    """
    shown = [t for t in tests if t.rows][-MOST:]
    if not shown:
        raise ToolError("the Taylor test left no remainders to plot",
                        "if only rounding is left, there is no slope")  # fmt: skip
    kind = Path(file).suffix[1:].lower()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure: Any = Figure(figsize=(4.4 * columns, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for k, t in enumerate(shown):
        _panel(figure.add_subplot(rows, columns, k + 1), t)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, metadata={"Date": None} if kind == "svg" else None)
    write_file(drawn.getvalue(), Path(file))


def _ticks(low: float, high: float) -> list[float]:
    """At most four round numbers between two steps, or the steps where there are too few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [d * 10.0**p for p in powers for d in (1, 2, 5) if low <= d * 10.0**p <= high]
    tens = [v for v in found if f"{v:.0e}".startswith("1")]
    if len(tens) > 1:
        found = tens
    return found[:: math.ceil(len(found) / 4)] if len(found) > 1 else [low, high]


def _panel(ax: Any, t: Taylor) -> None:
    steps = [row.step for row in t.rows]
    for order in range(t.expected):
        values = [row.remainders[order] for row in t.rows]
        ax.loglog(steps, values, "o-", ms=3, color=_COLOURS[order], label=f"order {order}")
        top = values[0]
        if top > 0:  # the slope that it has where the derivatives are right
            line = [top * (h / steps[0]) ** (order + 1) for h in steps]
            last = order == t.expected - 1
            label = "slope of right derivatives" if last else "_"
            ax.loglog(steps, line, ":", color=_COLOURS[order], lw=1, label=label)
    ax.axhline(t.floor, color="tab:red", lw=0.8, label="rounding")
    what = f"launch {t.launch}: {t.kernel}" if t.launch >= 0 else "as a whole"
    rate = "" if t.rate is None else f", rate {t.rate:.2f} of {t.expected}"
    ax.set_title(f"tape {t.tape}, {what}\n{t.verdict}{rate}", fontsize=9)
    ticks = _ticks(min(steps), max(steps))
    ax.set_xticks(ticks, [f"{v:.0e}" for v in ticks], fontsize=8)
    ax.xaxis.set_minor_formatter("")
    ax.tick_params(axis="y", labelsize=8)
    ax.set_xlabel("step")
    ax.set_ylabel("remainder")
    ax.legend(fontsize=7)
