"""Measures `engine` beside NVIDIA Warp, and writes what it found to benchmarks/.

    python benchmarks/run.py            all rows, a few minutes; writes RESULTS.md
    python benchmarks/run.py --quick    small sizes, to see that everything runs

Each framework lives in a process of its own. Both make the same case, then take turns, round by
round, so that what else the machine does hits both. Medians are reported, and ratios of medians.
Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from cases import CASES, Case
from machine import describe
from peers import FRAMEWORKS, Peer, compile_times
from startup import startup_times
from table import markdown

HERE = Path(__file__).resolve().parent


def take_turns(
    peers: dict[str, Peer], which: str, rounds: int, repeat: int, copy: int
) -> dict[str, list[float]]:
    """Seconds of each call of one pass: the peers alternate, and who begins alternates too.

    Between them, NumPy copies an array of `copy` values, for the memory limit (unless 0).
    """
    times: dict[str, list[float]] = {name: [] for name in (*peers, "copy")}
    for turn in range(rounds):
        order = list(peers) if turn % 2 == 0 else list(reversed(peers))
        for name in order:
            times[name] += peers[name].ask({"time": which, "repeat": repeat})
        if copy:
            times["copy"] += peers[order[0]].ask({"copy": copy, "repeat": repeat})
    return times


def relative_gap(a: list[list[float]], b: list[list[float]]) -> float:
    """Largest difference of two result summaries, relative to the sums of magnitudes."""
    gaps = [
        max(abs(x[0] - y[0]), abs(x[1] - y[1])) / max(x[1], y[1], 1e-30)
        for x, y in zip(a, b, strict=True)
    ]
    return max(gaps, default=0.0)


def measure(peers: dict[str, Peer], case: Case, size: int, rounds: int, repeat: int) -> Any:
    """All figures of one row, in seconds."""
    made = {name: peer.ask({"make": case.name, "size": size}) for name, peer in peers.items()}
    row: dict[str, Any] = {"name": case.name, "title": case.title, "size": size, "note": case.note}
    row["passes"] = {}
    for index, which in enumerate(("forward", "backward")):
        if which == "backward" and not all(m["backward"] for m in made.values()):
            continue
        times = take_turns(peers, which, rounds, repeat, size if case.moved else 0)
        figures: dict[str, Any] = {name: median(times[name]) for name in peers}
        key = "outputs" if which == "forward" else "gradients"
        figures["gap"] = relative_gap(*(m[key] for m in made.values()))
        if case.moved is not None:
            figures["copy"] = median(times["copy"])
            # A copy reads one array and writes one.
            figures["limit"] = figures["copy"] * case.moved[index] / 2
        row["passes"][which] = figures
    return row


def measure_alone(case: Case, size: int, rounds: int) -> Any:
    """Seconds and peak memory of a case that only `engine` runs, in a fresh process."""
    with Peer("engine") as peer:
        peer.ask({"make": case.name, "size": size})
        times = peer.ask({"time": "forward", "repeat": rounds})
        peak = peer.ask({"peak": True})
    return {
        "name": case.name, "title": case.title, "size": size, "note": case.note,
        "seconds": median(times), "peak": peak,
    }  # fmt: skip


def run(quick: bool, only: str) -> dict[str, Any]:
    """Measures everything and returns it as data."""
    rounds, repeat = (2, 1) if quick else (7, 3)
    result: dict[str, Any] = {"schema": 1, "quick": quick, "machine": describe(), "rows": []}
    cases = [case for case in CASES if only in case.name]
    with Peer("engine") as ours, Peer("warp") as theirs:
        peers = {"engine": ours, "warp": theirs}
        for case in (c for c in cases if not c.alone):
            size = case.quick if quick else case.size
            print(f"{case.name} ...", file=sys.stderr, flush=True)
            result["rows"].append(measure(peers, case, size, rounds, repeat))
    result["alone"] = []
    for case in (c for c in cases if c.alone):
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        size = case.quick if quick else case.size
        result["alone"].append(measure_alone(case, size, rounds))
    if not only:
        print("compile times, start-up times ...", file=sys.stderr, flush=True)
        result["compile"] = compile_times(FRAMEWORKS, rounds=1 if quick else 3)
        result["startup"] = startup_times(rounds=3 if quick else 11)
    return result


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--only", default="", metavar="NAME", help="rows whose name contains NAME")
    options = parser.parse_args()
    result = run(options.quick, options.only)
    text = markdown(result)
    print(text)
    if not options.only:
        name = "quick" if options.quick else "full"
        out = HERE / "results" / f"{name}.json"
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        if not options.quick:
            (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
