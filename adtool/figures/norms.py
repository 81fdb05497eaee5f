"""A plot of the norm of the gradient along a tape."""

from __future__ import annotations

import io
import math

import numpy as np

from adtool.counts import more
from adtool.course import Course, growth_words
from adtool.figures.scale import log_limits

DPI = 150
# Told apart by colour-blind people too: one for each of the first kernels.
_PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b8a000")
_COLOURS = len(_PALETTE)


def plot(course: Course, kind: str, title: str) -> bytes:
    """The picture, as png, svg or pdf."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "adtool"
        figure = _figure(course, title)
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        out = io.BytesIO()
        figure.savefig(out, format=kind, dpi=DPI, metadata=dated.get(kind))
    return out.getvalue()


def _figure(course: Course, title: str):  # type: ignore[no-untyped-def]
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    seen = [(r.record, r.gradient, r.kernel) for r in course.rows if r.gradient is not None]
    finite = [x for x in seen if math.isfinite(x[1]) and x[1] > 0]
    names = list(dict.fromkeys(x[2] for x in finite))
    size = _size(len(finite))
    for k, name in enumerate(names[:_COLOURS]):
        mine = [x for x in finite if x[2] == name]
        axes.plot([x[0] for x in mine], [x[1] for x in mine], marker="o", ms=size, lw=0.8,
                  label=_plain(name), color=_PALETTE[k])  # fmt: skip
    rest = [x for x in finite if x[2] in names[_COLOURS:]]
    if rest:
        axes.plot([x[0] for x in rest], [x[1] for x in rest], marker="o", ms=size, lw=0,
                  label=more(len(names) - _COLOURS, "kernel"), color="#808080")  # fmt: skip
    if finite:
        axes.set_yscale("log")
        low, high = log_limits(x[1] for x in finite)
        middle, half = (low + high) / 2, max(0.55 * (high - low), 1.6)  # else no tick has a label
        axes.set_ylim(10.0 ** (middle - half), 10.0 ** (middle + half))
        _beyond(axes, finite, low, high)
    _lost(axes, [x[0] for x in seen if not math.isfinite(x[1])], "not finite", "#9040b0", "x", 0.97)
    _lost(axes, [x[0] for x in seen if x[1] == 0.0], "zero", "#606060", "s", 0.03)
    for turn, word, colour in (
        (course.explodes, "explodes", "#c03020"), (course.dies, "dies", "#2050a0"),
    ):  # fmt: skip
        if turn is not None:
            axes.axvline(turn.record, color=colour, lw=1, ls="--", zorder=0)
            where = f"launch {turn.launch}" if turn.launch is not None else f"record {turn.record}"
            axes.plot([], [], color=colour, ls="--", lw=1,
                      label=_plain(f"{word}: {where}, {turn.kernel}, {turn.array}"))  # fmt: skip
    if not seen:
        axes.text(0.5, 0.5, "no backward pass ran", ha="center", transform=axes.transAxes)
    axes.set_xlabel("operation on the tape (the backward pass goes from right to left)")
    axes.set_ylabel("norm of the incoming gradient")
    growth = ""
    if course.growth is not None:
        growth = f"\ngoing backward, the norm at {course.along} {growth_words(course.growth)}"
    axes.set_title(_plain(title + growth), fontsize=10)
    axes.grid(True, which="major", color="#e6e6e6", lw=0.6)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, loc="best")
    return figure


def _beyond(axes, seen: list[tuple[int, float, str]], low: float, high: float) -> None:  # type: ignore[no-untyped-def]
    """Outliers, at the edge that they are beyond."""
    above = [x for x in seen if math.log10(x[1]) > high + 1e-9]
    below = [x for x in seen if math.log10(x[1]) < low - 1e-9]
    for found, word, marker, height in (
        (above, f"above the scale: up to {max((x[1] for x in above), default=0):.3g}", "^", 0.97),
        (below, f"below the scale: down to {min((x[1] for x in below), default=0):.3g}", "v", 0.03),
    ):
        _lost(axes, [x[0] for x in found], word, "#c03020", marker, height)


def _lost(axes, places: list[int], label: str, colour: str, marker: str, height: float) -> None:  # type: ignore[no-untyped-def]
    """Norms that no logarithm has, at the edge of the plot."""
    if places:
        axes.scatter(
            places, np.full(len(places), height), s=(_size(len(places)) + 2) ** 2, marker=marker,
            color=colour, label=label, transform=axes.get_xaxis_transform(), zorder=3,
        )  # fmt: skip


def _size(count: int) -> float:
    return 4.0 if count < 200 else 2.0 if count < 5000 else 1.2


def _plain(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")
