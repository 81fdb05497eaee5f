"""Writes the results of a GPU run as a Markdown page."""

from __future__ import annotations

from typing import Any

from benchmarks.page import GROUPS, group_table
from benchmarks.table import table
from benchmarks.verdicts import different, missed

HOW = """Measured by `python -m benchmarks --device cuda --and-tests`, which runs the tests that are
marked `gpu` first. Each framework runs in its own process. All make the same data and take
turns, round by round, with alternating order, after calls that are not counted. A sample is as
many calls as fill ten milliseconds, with the wait for the GPU at their end, by the wall clock.
Figures are medians; *±* is half the distance between the quartiles. The number beside the time
of a peer is that time divided by the time of the engine. *Copy* compares the bandwidth of a
pass, for all its memory, with the bandwidth of copies in the memory of the GPU, measured
between the rounds of the same row. In a backward pass, that memory is the seed (which the pass
writes, reads and clears), the values that derivatives need, and the gradients (to which the
pass adds). The rows of CuPy are elementwise and reduction kernels, with backward passes derived
on paper. PyTorch runs eagerly, with the graph of the forward pass. JAX compiles its functions;
its backward pass is one function from arguments and seed to gradients."""


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
