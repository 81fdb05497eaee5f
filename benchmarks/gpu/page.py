"""What a GPU did, as a markdown page."""

from __future__ import annotations

from typing import Any

from benchmarks.page import GROUPS, group_table
from benchmarks.table import table
from benchmarks.verdicts import different, missed

HOW = """Measured by `python -m benchmarks --device cuda --and-tests`, which runs the tests that are
marked `gpu` first. Each framework lives in a process of its own; all make the same data and
take turns, round by round, with the order alternating, after calls that are not counted. A
sample is as many calls as fill ten milliseconds, and the wait for the GPU at their end, by the
wall clock. Figures are medians; *±* is half the distance of the quartiles. Beside a peer's time
stands how many times as long as the engine's it is. *Copy* is which part of the bandwidth of
copies in the GPU's memory, measured between the rounds of the same row, a pass moves all its
memory with: backward, that is the seed, which is put in place, read and cleared, what
derivatives need, and the gradients, which are added to. CuPy's rows are elementwise and
reduction kernels, its backward passes derived on paper; PyTorch runs eagerly, with the graph
that was kept; JAX's functions are compiled, its backward pass is one function from arguments
and seed to gradients."""


def tests(found: dict[str, Any]) -> list[str]:
    """What came of the tests."""
    failed, skipped = found["failed"], found["skipped"]
    ended = "" if found["ended"] else ", ended before all had run"
    words = (
        f"`{found['command']}`: {found['passed']} passed, {len(failed)} failed, "
        f"{sum(skipped.values())} skipped, in {found['seconds']:.0f} s{ended}."
    )
    lines = [f"- {f['test']}: {f['why']}" for f in failed]
    lines += [f"- skipped ({n}): {why}" for why, n in skipped.items()]
    return ["## Tests", words, *(["\n".join(lines)] if lines else [])]


def copies(result: dict[str, Any]) -> list[str]:
    """The bandwidth of copies, between the rounds of each row."""
    rows = [
        [row["title"], one["pass"], f"{8e-9 * row['size'] / one['copy']['median']:,.0f}"]
        for row in result["rows"] for one in row["passes"]
        if "copy" in one
    ]  # fmt: skip
    if not rows:
        return []
    words = "Bytes read and written in a second, for arrays of that row's size."
    return ["## Copies", words, table(["between the rounds of", "pass", "GB/s"], rows)]


def markdown(result: dict[str, Any]) -> str:
    """The whole page."""
    parts = [
        "# Measured on a GPU",
        ", ".join(f"{k}: {v}" for k, v in result["machine"].items()) + ".",
        HOW,
    ]
    absent = [f"{n}: {why}" for n, why in result.get("missing", {}).items()]
    parts += [f"Not measured: {'; '.join(absent)}."] if absent else []
    if result.get("tests"):
        parts += tests(result["tests"])
    for group in ("kernels", "launches", "starts"):
        rows = [r for r in result["rows"] if r["group"] == group and r["passes"]]
        if rows:
            parts += [f"## {GROUPS[group][0]}", group_table(rows, group == "kernels")]
            notes = [f"- {r['title']}: {r['note']}." for r in rows if r["note"]]
            parts += ["\n".join(notes)] if notes else []
    parts += copies(result)
    apart = different(result)
    if apart:
        parts += ["## Different results", "\n".join(f"- {a}" for a in apart)]
    behind = missed(result)
    behind += [f"{name}: {why}" for name, why in result.get("failures", {}).items()]
    if behind:
        parts += ["## Missed", "\n".join(f"- {m}" for m in behind)]
    return "\n\n".join(parts) + "\n"
