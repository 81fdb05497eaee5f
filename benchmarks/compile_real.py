"""Measures how long kernels of real packages take to compile, beside Warp.

    python -m benchmarks.compile_real [--packages newton ...] [--only WORD]... [--every N]

The kernels of Newton, MuJoCo Warp and Warp's examples, each alone, with a cache that has headers
and nothing else: what a launch on a tape and its backward pass compile here, by phases (both at
once, as there; `--apart` one after the other), and a module of that kernel in Warp. `--others`: and
what launches with arrays that are not contiguous, or share memory, would compile when they come.
Packages that are not installed are skipped by name. One JSON line for each kernel goes to a file
(`--results`), and kernels that have one are not compiled again; the table is of that file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.wild.beside import Server  # noqa: E402

# Packages, and their modules that are left out.
PACKAGES = {"newton": ["newton.tests.*", "newton.examples.*"], "mujoco_warp": ["*_test"],
            "warp.examples": ["warp.examples.benchmarks.*"]}  # fmt: skip
PHASES = ("frontend", "prepare", "reverse", "record", "threads", "emit", "g++")


def folder_of(package: str) -> Path | None:
    """Where a package lies; None where it is not installed."""
    top, _, below = package.partition(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent.joinpath(*filter(None, below.split(".")))
    return folder if folder.is_dir() else None


def chosen(kernels: Sequence[str], only: Sequence[str], every: int) -> list[str]:
    """Kernels that are named, and each so many-th of the rest."""
    named = [k for k in kernels if k.rsplit(":", 1)[-1] in only]
    rest = [] if only and every == 0 else kernels[:: max(every, 1)]
    return list(dict.fromkeys([*named, *rest]))


def measure(
    package: str, folder: Path, options: argparse.Namespace, rows: dict[str, dict[str, Any]]
) -> None:
    """Adds a row for each kernel of a package that has none."""
    program = (str(HERE / "compile_real_side.py"),)
    told = {"folder": str(folder), "skip": PACKAGES[package], "seconds": 120}
    with tempfile.TemporaryDirectory() as scratch:
        sides = [Server("engine", sys.executable, told, Path(scratch), program)]
        if options.peer:
            sides.append(Server("warp", sys.executable, told, Path(scratch), program))
        for kernel in chosen(sides[0].kernels, options.only, options.every):
            row = rows.get(kernel, {})
            if row.get("done") or (options.peer and kernel not in sides[1].kernels):
                continue
            task = {"kernel": kernel, "seconds": options.seconds, "scratch": scratch,
                    "apart": options.apart, "others": options.others}  # fmt: skip
            if options.keep:
                task["keep"] = str(options.keep.resolve())
            row = {"kernel": kernel, "package": package, "done": True}
            planned = sides[0].ask({**task, "do": "plan", "seconds": 30})
            if not planned["ok"]:
                row["cause"] = planned["cause"]
            else:
                for side in sides:
                    said = side.ask({**task, "do": "compile", "types": planned["types"]})
                    row["engine" if side is sides[0] else "warp"] = said
            rows[kernel] = row
            with options.results.open("a") as file:
                print(json.dumps(row), file=file)
            print(line(row), flush=True)
        for side in sides:
            side.close()


def line(row: dict[str, Any]) -> str:
    """A kernel in words: seconds here and in Warp, of phases here, and how large it is."""
    name = row["kernel"].rsplit(":", 1)[-1]
    here, there = row.get("engine", {}), row.get("warp", {})
    if not here.get("ok"):
        return f"{name}: {(here or row).get('cause')}"
    parts = " ".join(f"{p} {here['phases'].get(p, 0.0):.2f}" for p in PHASES)
    sizes = " ".join(
        f"{f}: {here[f]['chars'] // 1000} kB, {here[f]['weight']} operations"
        for f in ("forward", "adjoint")
    )
    peer = f"warp {there['seconds']:.2f}" if there.get("ok") else str(there.get("cause", ""))
    return f"{name}: {here['seconds']:.2f} {peer} | {parts} | {sizes}"


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """Sums over kernels that both compiled."""
    both = [r for r in rows if r.get("engine", {}).get("ok")]
    pairs = [r for r in both if r.get("warp", {}).get("ok")]
    if pairs:
        both = pairs
    total = sum(r["engine"]["seconds"] for r in both)
    there = sum(r["warp"]["seconds"] for r in pairs)
    phases = {p: sum(r["engine"]["phases"].get(p, 0.0) for r in both) for p in PHASES}
    words = ", ".join(f"{p} {s:.1f}" for p, s in phases.items())
    others = sum(r["engine"].get("others", 0.0) for r in both)
    words += f"; {others:.1f} s more where launches need it" if others else ""
    return f"{len(both)} kernels: engine {total:.1f} s, Warp {there:.1f} s ({words})"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), choices=PACKAGES)
    parser.add_argument("--only", action="append", default=[], metavar="KERNEL")
    parser.add_argument("--every", type=int, default=0, metavar="N",
                        help="also each Nth of the others; without --only, 0 is all")  # fmt: skip
    parser.add_argument("--no-peer", dest="peer", action="store_false")
    parser.add_argument("--apart", action="store_true", help="each form by itself, and timed so")
    parser.add_argument("--others", action="store_true",
                        help="also the forms for arrays that are not contiguous")  # fmt: skip
    parser.add_argument("--results", type=Path, default=Path("compile_real.jsonl"))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the text of kernels")
    parser.add_argument("--seconds", type=int, default=300, help="for one kernel")
    options = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    if options.results.exists():
        rows = {r["kernel"]: r for r in map(json.loads, options.results.read_text().splitlines())}
    for package in options.packages:
        folder = folder_of(package)
        if folder is None:
            print(f"{package} is not installed: skipped")
            continue
        measure(package, folder, options, rows)
    print(summary(list(rows.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
