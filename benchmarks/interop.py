"""Measures conversions and kernels in other frameworks beside NVIDIA Warp; writes INTEROP.md.

    python -m benchmarks.interop            all rows, some minutes
    python -m benchmarks.interop --quick    small sizes, to see that everything runs

As `python -m benchmarks`: a process for each of the two, which take turns. Needs the packages of
tests/interop/requirements.txt; a row whose framework is missing, or fails in Warp, says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.case import Case
from benchmarks.interop_cases import CONVERSIONS, INTEROP
from benchmarks.machine import describe, package
from benchmarks.measuring import take_turns
from benchmarks.peers import Peer
from benchmarks.table import ratio, seconds, table

HERE = Path(__file__).resolve().parent
LIMIT = 20e-6  # seconds that a conversion may take
PAIRS = 3  # of processes, for short calls
HOW = f"""Measured by `python -m benchmarks.interop`. `engine` and Warp run in separate
processes. Both make the same data and take turns, round by round, with alternating order. Short
calls run in {PAIRS} pairs of processes, both of a pair on the same core. The first round in each
process is not counted, because Python speeds up code during its first runs. Figures are medians. A
ratio below 1 means that `engine` is faster. Conversions are of {CONVERSIONS:,} float32 elements, of
the same object each time, and copy nothing."""


def measure(case: Case, size: int, rounds: int, repeat: int) -> dict[str, Any]:
    """Seconds of one row, by who was measured. A framework that fails has its error instead."""
    row: dict[str, Any] = {"name": case.name, "title": case.title, "size": size}
    found: dict[str, list[float]] = {"engine": [], "warp": []}
    # Short calls are asked of several processes, and both of a pair are asked on the same core.
    short = case.inner > 1 and rounds > 1
    for number in range(PAIRS if short else 1):
        with Peer("engine") as ours, Peer("warp") as theirs:
            peers = {"engine": ours, "warp": theirs}
            for name in list(peers):
                try:
                    peers[name].ask({"make": case.name, "size": size})
                    if short:
                        peers[name].settle(number)
                        peers[name].ask({"time": "forward", "repeat": 1})  # not counted
                except RuntimeError:
                    del peers[name]
            times = take_turns(peers, "forward", rounds, repeat)
            for name in peers:
                found[name] += times[name]
    row.update({name: median(times) if times else None for name, times in found.items()})
    return row


def run(quick: bool, only: str) -> dict[str, Any]:
    """Measures everything that the installed frameworks allow, and returns it as data."""
    rounds, repeat = (1, 1) if quick else (5, 2)
    machine = describe() | {n: package(n) for n in ("torch", "jax", "paddlepaddle")}
    result: dict[str, Any] = {"schema": 1, "quick": quick, "machine": machine, "rows": []}
    for case in INTEROP:
        if only not in case.name:
            continue
        needed = case.name.split("_")[-1 if case.name.startswith(("dlpack", "launch")) else 0]
        if needed in ("torch", "jax", "paddle", "ctype") and not find_spec(
            "torch" if needed == "ctype" else needed
        ):
            print(f"{case.name}: {needed} is not installed", file=sys.stderr)
            continue
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        result["rows"].append(
            measure(case, case.quick if quick else case.size, rounds, 1 if quick else repeat)
        )
    return result


def _cells(row: dict[str, Any]) -> list[str]:
    ours, theirs = row["engine"], row["warp"]
    times = [seconds(t) if t is not None else "fails" for t in (ours, theirs)]
    return [*times, "" if None in (ours, theirs) else ratio(ours, theirs)]


def _missed(rows: list[dict[str, Any]]) -> list[str]:
    """Targets that are missed, in words."""
    by_name = {r["name"]: r for r in rows}
    out = []
    for r in rows:
        if r["name"] == "dlpack_alone_jax":
            continue
        if r["engine"] is None:
            out.append(f"{r['title']} fails")
            continue
        if r["size"] == CONVERSIONS and r["name"] in _CONVERSIONS and r["engine"] > LIMIT:
            out.append(f"{r['title']} takes {seconds(r['engine'])}{_why(r, by_name)}")
        if r["warp"] is not None and r["engine"] > r["warp"]:
            out.append(f"{r['title']}, {r['size']:,}: {ratio(r['engine'], r['warp'])} times Warp's")
    for size in ("small", "large"):
        inside, tape = by_name.get(f"jax_grad_{size}"), by_name.get(f"tape_grad_{size}")
        if inside and tape and inside["engine"] and inside["engine"] > 1.5 * tape["engine"]:
            more = ratio(inside["engine"], tape["engine"])
            out.append(f"`jit(grad)` of {inside['size']:,}: {more} times the tape's own time")
    return out


def _why(row: dict[str, Any], by_name: dict[str, dict[str, Any]]) -> str:
    alone, made = by_name.get("dlpack_alone_jax"), by_name.get("dlpack_made")
    if row["name"] != "dlpack_to_jax" or alone is None or made is None:
        return ""
    own, here = seconds(alone["engine"]), seconds(made["engine"])
    return f": JAX takes {own} for an array of its own; {here} are spent here (see `to_jax`)"


_CONVERSIONS = {c.name for c in INTEROP if c.size == CONVERSIONS and c.inner == 200}


def markdown(result: dict[str, Any]) -> str:
    """The whole page."""
    rows = result["rows"]
    head = ["engine", "warp", "engine / warp"]
    conversions = [[r["title"], *_cells(r)] for r in rows if r["name"] in _CONVERSIONS]
    others = [
        [r["title"], f"{r['size']:,}", *_cells(r)] for r in rows if r["name"] not in _CONVERSIONS
    ]
    missed = _missed(rows)
    words = "\n".join(f"- {m}" for m in missed) if missed else "None."
    parts = [
        "# Other frameworks, beside NVIDIA Warp",
        ", ".join(f"{key}: {value}" for key, value in result["machine"].items()) + ".",
        HOW,
        "## Conversions",
        table(["what", *head], conversions),
        "## Launches, and kernels inside of frameworks",
        table(["what", "size", *head], others),
        "## Targets that are missed",
        "No row slower than Warp; conversions under 20 µs; a gradient by JAX within 1.5 times that "
        "of a fresh tape.",
        words,
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--only", default="", metavar="NAME", help="rows whose name contains NAME")
    options = parser.parse_args()
    result = run(options.quick, options.only)
    text = markdown(result)
    print(text)
    if not options.only and not options.quick:
        out = HERE / "results" / "interop.json"
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (HERE / "INTEROP.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
