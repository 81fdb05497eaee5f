"""The results as a markdown page."""

from __future__ import annotations

from typing import Any

from benchmarks.table import ratio, seconds, table, times
from benchmarks.targets import HAND, OURS
from benchmarks.verdicts import different, missed, parts_behind

HOW = """Measured by `python -m benchmarks`. Each framework runs in its own process with its own
kernel cache. All make the same data and take turns, round by round, with alternating order, after a
call that is not counted. Figures are medians; *±* is half the distance between the quartiles. The
number beside the time of a peer is that time divided by the time of the engine: above 1, the engine
is faster. See [how to run and read the benchmarks](README.md)."""
GROUPS = {
    "launches": ("Small launches", "Backward is only `Tape.backward`, unless the pass names more."),
    "kernels": (
        "Kernels",
        "Backward is only `Tape.backward` for one recorded launch, with a seed. *Copy* compares "
        "the bandwidth of the pass, for the data that it must at least read and write, with the "
        "bandwidth of copies by all cores, measured between the rounds of the same row.",
    ),
    "checks": ("Checks", ""),
    "starts": (
        "Starts",
        "Fresh processes take turns, with an empty kernel cache (cold) and then with the cache "
        "that this run left (warm). PyTorch compiles nothing.",
    ),
}
MARKS = {True: "met", False: "**missed**", None: "not measured"}


def amount(value: float, unit: str) -> str:
    """A figure with its unit."""
    return seconds(value) if unit == "s" else f"{value:,.0f} {unit}"


def _ours(found: dict[str, float], unit: str) -> str:
    half = (found["high"] - found["low"]) / 2 / found["median"]
    return f"{amount(found['median'], unit)} ±{half:.0%}"


def _target(t: dict[str, Any]) -> str:
    found = f" ({t['found']})" if t["found"] else ""
    mark = MARKS[t["met"]] + (", close" if t["close"] and t["met"] is False else "")
    return f"{t['target']}{found}: {mark}"


def _cells(row: dict[str, Any], one: dict[str, Any], peers: list[str]) -> list[str]:
    """The cells of peers."""
    ours = one["times"].get(OURS)
    cells = []
    for name in peers:
        found = one["times"].get(name)
        if found is None:
            cells.append("failed" if name in row["failed"] else "")
        elif ours is None:
            cells.append(amount(found["median"], row["unit"]))
        else:
            factor = times(found["median"] / ours["median"])
            cells.append(f"{amount(found['median'], row['unit'])} ({factor})")
    return cells


def group_table(rows: list[dict[str, Any]], kernels: bool) -> str:
    """Rows of one group."""
    order = ["warp", "cupy", "jax", "torch", "numba", "taichi", HAND]
    seen = {n for row in rows for p in row["passes"] for n in p["times"]}
    seen |= {n for row in rows for n in row["failed"]}
    peers = [n for n in order if n in seen]
    lines = []
    for row in rows:
        for one in row["passes"]:
            ours = one["times"].get(OURS)
            share = f"{one['share']:.0%}" if one.get("share") else ""
            size = f"{row['size']:,}" if row["size"] > 1 else ""
            lines.append(
                [row["title"], size, one["pass"], _ours(ours, row["unit"]) if ours else "failed"]
                + _cells(row, one, peers)
                + [share] * kernels
                + ["; ".join(_target(t) for t in one["targets"]) or one["verdict"]]
            )
    head = ["what", "size", "pass", OURS, *peers, *["copy"] * kernels, "targets"]
    return table(head, lines)


def summary(result: dict[str, Any]) -> str:
    """How many passes reach what they should."""
    passes = [p for row in result["rows"] for p in row["passes"]]
    count = {v: sum(p["verdict"] == v for p in passes) for v in ("met", "ahead", "missed", "alone")}
    targets = [t for p in passes for t in p["targets"] if t["met"] is not None]
    met = sum(t["met"] for t in targets)
    return (
        f"{len(passes)} passes: {count['met'] + count['ahead']} meet their targets or are ahead of "
        f"every peer, {count['missed']} miss something, {count['alone']} stand alone. "
        f"Of {len(targets)} conditions that were judged, {met} are met."
    )


def limits(result: dict[str, Any]) -> str:
    """The machine."""
    found = result.get("limits") or {}
    rows = [
        [name, f"{v / 1e9:.3g} {'GB/s' if name.startswith('copy') else 'GFLOP/s'}"]
        for name, v in found.items()
    ]
    for row in result["rows"]:
        for one in row["passes"]:
            peak = found.get("arithmetic, all cores")
            if one.get("operations") and peak:
                share = one["operations"] / peak
                rows.append([f"{row['title']}: arithmetic", f"{share:.0%} of that of all cores"])
    return table(["limit", "measured"], rows) if rows else "Not measured: no compiler with OpenMP."


def _curves(result: dict[str, Any]) -> list[str]:
    parts = ["## Cost by size", "![cost by size](results/cost.svg)"]
    lines = []
    for curve in result["curves"]:
        for name, by in curve["passes"].items():
            for who, points in by.items():
                each = " · ".join(f"{n:,}: {seconds(t / n)}" for n, t in points)
                grown = curve["growth"].get(name) if who == OURS else None
                last = f"{grown:.2f}" if grown is not None else ""
                lines.append([curve["title"], name, who, each, last])
    parts.append(
        "Time for one element, or one launch, by their number. *Growth* is the time for one at the "
        "largest size, divided by the time for one at a tenth of that size: 1 is linear."
    )
    return [*parts, table(["what", "pass", "who", "each", "growth"], lines)]


def _startup(result: dict[str, Any]) -> list[str]:
    base = result["startup"]["import numpy"]["cpu"]
    rows = [
        [f"`{n}`", seconds(t["wall"]), seconds(t["cpu"]),
         f"{(t['cpu'] - base) * 1e3:+.0f} ms" if t["cpu"] != base else ""]
        for n, t in result["startup"].items()
    ]  # fmt: skip
    return [
        "## Start-up",
        "Whole processes, from start to end, with existing byte code. The commands take turns. "
        "*CPU* is user and system time. `import engine` loads neither matplotlib, graphviz, "
        "rich's tables, cupy, torch nor jax (checked in the same run).",
        table(["command", "time", "CPU", "CPU beyond `import numpy`"], rows),
    ]


def markdown(result: dict[str, Any]) -> str:
    """The whole page; `verdicts.judge_all` comes first."""
    machine = result["machine"]
    absent = [f"{n}: {why}" for n, why in result.get("missing", {}).items()]
    parts = [
        "# Speed of the engine and other frameworks",
        ", ".join(f"{key}: {value}" for key, value in machine.items()) + ".",
        HOW,
        summary(result),
        *([f"Not measured: {'; '.join(absent)}."] if absent else []),
        "![how many times as fast](results/peers.svg)",
        "## The machine",
        limits(result),
    ]
    for group, (title, words) in GROUPS.items():
        rows = [r for r in result["rows"] if r["group"] == group]
        if rows:
            parts += [f"## {title}", *([words] if words else [])]
            parts.append(group_table(rows, group == "kernels"))
            notes = [f"- {r['title']}: {r['note']}." for r in rows if r["note"]]
            parts += ["\n".join(notes)] if notes else []
    alone = result.get("alone") or []
    if alone:
        rows = [
            [r["title"], f"{r['size']:,}", seconds(r["seconds"]), f"{r['peak'] / 1e6:.0f} MB",
             r["note"]]
            for r in alone
        ]  # fmt: skip
        parts += [
            "## Checks of large launches",
            "Only `engine` can check launches of this size. Each runs in its own process. *Memory* "
            "is the peak of the whole process, Python and NumPy included.",
            table(["what", "size", "engine", "memory", "the peer"], rows),
        ]
    if result.get("curves"):
        parts += _curves(result)
    if result.get("startup"):
        parts += _startup(result)
    lines = missed(result)
    parts += ["## What is missed", "\n".join(f"- {m}" for m in lines) or "Nothing."]
    lines = parts_behind(result)
    if lines:
        parts += [
            "## Parts of rows in which a peer is faster",
            "These times do not include the work before a first launch, and each framework does "
            "other work there. So the targets are for the whole scripts, in the rows above.",
            "\n".join(f"- {m}" for m in lines),
        ]
    gaps = different(result)
    if gaps:
        parts += [
            "## Results that differ",
            "Sums over all elements, relative to the sums of magnitudes, by more than 1/1000.",
            "\n".join(f"- {g}" for g in gaps),
        ]
    return "\n\n".join(parts) + "\n"


def line(row: dict[str, Any], one: dict[str, Any]) -> str:
    """One pass for a terminal."""
    unit = row["unit"]
    ours = one["times"].get(OURS)
    mine = _ours(ours, unit) if ours else "failed"
    others = [
        f"{n} {amount(t['median'], unit)}"
        + (f" ({ratio(t['median'], ours['median'])}x)" if ours else "")
        for n, t in one["times"].items()
        if n != OURS
    ]
    share = f"  [{one['share']:.0%} of copy]" if one.get("share") else ""
    targets = "; ".join(_target(t) for t in one.get("targets", []))
    return f"{row['name']:<16} {one['pass']:<22} {mine:<14} {', '.join(others)}{share}  {targets}"
