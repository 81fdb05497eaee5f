"""Pictures of the results: how many times as fast, and cost by size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.targets import HAND, OURS

COLOURS = {
    OURS: "black", "warp": "tab:green", "jax": "tab:blue", "torch": "tab:red",
    "numba": "tab:purple", "taichi": "tab:orange", HAND: "tab:gray",
}  # fmt: skip


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})


def draw(result: dict[str, Any], folder: Path) -> None:
    """Writes peers.svg and cost.svg."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.hashsalt": "benchmarks", "svg.fonttype": "none"}):
        for name, figure in (("peers", _peers(pyplot, result)), ("cost", _cost(pyplot, result))):
            if figure is not None:
                _save(figure, folder / f"{name}.svg")
                pyplot.close(figure)


def _peers(pyplot: Any, result: dict[str, Any]) -> Any:
    """A dot for each peer in each pass, right of 1 where the engine is faster; targets as bars."""
    lines = [
        (f"{row['title']}, {one['pass']}".replace("`", ""), one)
        for row in result["rows"]
        for one in row["passes"]
        if OURS in one["times"] and len(one["times"]) > 1
    ]
    if not lines:
        return None
    figure, axes = pyplot.subplots(figsize=(9, 0.8 + 0.24 * len(lines)))
    seen = set()
    for height, (_, one) in enumerate(reversed(lines)):
        ours = one["times"][OURS]["median"]
        for name, found in one["times"].items():
            if name == OURS:
                continue
            label = None if name in seen else name
            seen.add(name)
            axes.plot(
                found["median"] / ours, height, "d" if name == HAND else "o",
                color=COLOURS.get(name), label=label, markersize=5,
            )  # fmt: skip
        for target in one.get("targets", []):
            factor, _, peer = target["target"].partition("x ")
            if peer == "warp" and factor not in ("1", ""):
                axes.plot(float(factor), height, "|", color=COLOURS["warp"], markersize=11)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(lines)), [text for text, _ in reversed(lines)], fontsize=7)
    axes.set_ylim(-0.7, len(lines) - 0.3)
    axes.set_xlabel("time of the peer over that of the engine (bars: targets beside Warp)")
    axes.grid(axis="both", linewidth=0.3)
    axes.legend(loc="lower right", fontsize=7)
    return figure


def _cost(pyplot: Any, result: dict[str, Any]) -> Any:
    """Time by size, both as logarithms: a line of slope 1 is linear."""
    curves = result.get("curves")
    if not curves:
        return None
    figure, panels = pyplot.subplots(1, len(curves), figsize=(4.2 * len(curves), 3.6))
    for axes, curve in zip([panels] if len(curves) == 1 else panels, curves, strict=True):
        for style, (name, by) in zip(("-", "--"), curve["passes"].items(), strict=False):
            for who, points in by.items():
                n, t = zip(*points, strict=True)
                axes.plot(
                    n, t, f"o{style}", color=COLOURS.get(who), markersize=3, label=f"{who}, {name}"
                )
                if who == OURS:
                    guide = [points[-1][1] * k / n[-1] for k in n]
                    axes.plot(n, guide, ":", color="silver", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel=f"{curve['unit']}s", ylabel="seconds")
        axes.set_title(curve["title"].replace("`", ""), fontsize=8)
        axes.grid(linewidth=0.3)
        axes.legend(fontsize=6)
    return figure
