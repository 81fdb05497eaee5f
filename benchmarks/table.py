"""The measurements as a markdown page."""

from __future__ import annotations

from typing import Any

HOW = """Measured by `python benchmarks/run.py`. Each framework lives in a process of its own with
its own kernel cache; both make the same data and take turns, round by round, with the order
alternating. Figures are medians; a ratio below 1 means that `engine` is faster. Backward is the
time of `Tape.backward` alone for one recorded launch, seeded. *Limit* is the time in which the
arrays that the pass must at least read and write could be copied by NumPy on one core, from copies
measured between the rounds of the same row. *Gap* is the difference of the two frameworks' results
(sums over all elements, relative to the sums of magnitudes)."""


def seconds(value: float) -> str:
    """A time with a unit and three digits."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def ratio(ours: float, theirs: float) -> str:
    """Two digits, however small."""
    return f"{ours / theirs:.2g}" if ours < theirs else f"{ours / theirs:.2f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def kernel_rows(result: dict[str, Any]) -> list[list[str]]:
    """One table row for each pass of each case."""
    rows = []
    for row in result["rows"]:
        for which, figures in row["passes"].items():
            limit = figures.get("limit")
            rows.append(
                [
                    row["title"],
                    f"{row['size']:,}",
                    which,
                    seconds(figures["engine"]),
                    seconds(figures["warp"]),
                    ratio(figures["engine"], figures["warp"]),
                    seconds(limit) if limit else "",
                    f"{figures['gap']:.0e}" if figures["gap"] else "0",
                ]
            )
    return rows


def markdown(result: dict[str, Any]) -> str:
    """The whole page."""
    machine = result["machine"]
    parts = [
        "# Measured beside NVIDIA Warp",
        ", ".join(f"{key}: {value}" for key, value in machine.items()) + ".",
        HOW,
        "## Kernels",
        table(
            ["what", "size", "pass", "engine", "warp", "engine / warp", "limit", "gap"],
            kernel_rows(result),
        ),
    ]
    notes = [f"- {row['title']}: {row['note']}." for row in result["rows"] if row["note"]]
    parts += ["\n".join(notes)] if notes else []
    if result.get("alone"):
        rows = [
            [r["title"], f"{r['size']:,}", seconds(r["seconds"]), f"{r['peak'] / 1e6:.0f} MB",
             r["note"]]
            for r in result["alone"]
        ]  # fmt: skip
        parts += [
            "## Checks of large launches",
            "What only `engine` can do at this size, each in a process of its own. The memory is "
            "the most that the whole process took, Python and NumPy included.",
            table(["what", "size", "engine", "memory", "the peer"], rows),
        ]
    if "compile" in result:
        ours, theirs = result["compile"]["engine"], result["compile"]["warp"]
        rows = [
            [s, seconds(ours[s]), seconds(theirs[s]), ratio(ours[s], theirs[s])]
            for s in ("cold", "warm")
        ]
        parts += [
            "## Compile time",
            "From the first launch to the first gradient: a module of three kernels, launched on "
            "a tape, forward and backward, in a fresh process; imports are not counted.",
            table(["kernel cache", "engine", "warp", "engine / warp"], rows),
        ]
    if "startup" in result:
        base = result["startup"]["import numpy"]["cpu"]
        rows = [
            [f"`{n}`", seconds(t["wall"]), seconds(t["cpu"]),
             f"{(t['cpu'] - base) * 1e3:+.0f} ms" if t["cpu"] != base else ""]
            for n, t in result["startup"].items()
        ]  # fmt: skip
        parts += [
            "## Start-up",
            "Whole processes, from start to end, with byte code in place; the commands take turns. "
            "*CPU* is user and system time. `import engine` loads neither matplotlib, graphviz, "
            "rich's tables, cupy, torch nor jax (checked in the same run).",
            table(["command", "time", "CPU", "CPU beyond `import numpy`"], rows),
        ]
    return "\n\n".join(parts) + "\n"
